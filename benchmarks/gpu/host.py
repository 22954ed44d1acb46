"""The host's memory, where a machine has it only once it was used."""

from __future__ import annotations

import numpy as np

from gpu_cep_kernels.compile.launch import available_threads, slices, spread

_PAGE = 1 << 12


def touch(size: int) -> None:
    """Write to each page of so many bytes, and let them go.

    A virtual machine may show little free memory until it was used. Results are refused, and sizes cut, by what it shows.
    """
    held = np.empty(size, np.uint8)

    def write(span: tuple[int, int]) -> None:
        held[span[0] : span[1] : _PAGE] = 1

    spread(write, slices(size, available_threads()), available_threads())
