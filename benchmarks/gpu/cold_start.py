"""What the first query of a kind takes to compile for a card, with nothing on disk; no card is needed.

``python -m benchmarks.gpu.cold_start [--questions NAME …]`` asks each question of :mod:`benchmarks.gpu.questions` over few events on a
device that the CPU plays, and keeps with what types of arguments each kernel was launched. Then a new process compiles these for the
newest architecture, one after the other as a query does, to PTX and to machine code. Printed are the seconds of processor time, those
of imports among them, and the kernel that takes longest.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import numba

from benchmarks.gpu.counting import CountingDevice
from benchmarks.gpu.device_code import CAPABILITIES, machine_code, ptx_of
from benchmarks.gpu.questions import QUESTIONS, Question
from benchmarks.record import pages
from gpu_cep.engine.answers import answer
from gpu_cep_kernels.compile.jit import Kernel
from tests.gpu.strict_arrays import opened

EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The kernels that a question launches, and the seconds of a processor to import numba-cuda and the engine, and to compile all."""

    question: str
    kernels: int
    imports: float
    compiling: float
    slowest: str
    slowest_seconds: float

    def cells(self) -> list[str]:
        """The cells of a row of the table."""
        seconds = (self.imports, self.compiling, self.imports + self.compiling)
        return [self.question, str(self.kernels), *(f"{each:.1f}" for each in seconds), f"{self.slowest}, {self.slowest_seconds:.1f}"]


class _NotingDevice(CountingDevice):
    """A device that the CPU plays, which notes with what types each kernel was launched."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: dict[tuple[str, str], tuple[Kernel[..., Any], Any]] = {}

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """One call of the CPU's kernel, noted."""
        types = numba.void(numba.int64, numba.typeof(opened(arguments)))
        self.launched.setdefault((kernel.__name__, str(types)), (kernel, types))
        super().launch(kernel, size, *arguments)


def measure(name: str) -> ColdStart:
    """What a question takes; to be called in a process that has compiled nothing for a card."""
    import_module("numba.cuda")
    imports = time.process_time()
    spent: list[tuple[float, str]] = []
    for kernel, types in launched(QUESTIONS[name]):
        begin = time.process_time()
        machine_code(ptx_of(kernel, types, CAPABILITIES[-1]), CAPABILITIES[-1])
        spent.append((time.process_time() - begin, kernel.__name__))
    longest, slowest = max(spent)
    return ColdStart(name, len(spent), imports, sum(seconds for seconds, _ in spent), slowest, longest)


def launched(question: Question) -> list[tuple[Kernel[..., Any], Any]]:
    """The kernels that a question launches, each with its types, in the order of their first launches."""
    device, table = _NotingDevice(), question.events(EVENTS)
    with patch("gpu_cep.engine.phase_one.engine_choice.open_device", lambda: device):
        answer(question.plan(EVENTS, table.schema, "gpu"), table)
    return list(device.launched.values())


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure what the first query compiles for a card.")
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), metavar="NAME", help="some instead of all")
    asked = parser.parse_args(argv).questions
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        rows = list(pool.map(measure, asked))
    head = ["question", "kernels", "imports, s", "compiling, s", "both, s", "slowest kernel, s"]
    print(pages.table([head, *(row.cells() for row in rows)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
