"""Compare the CUDA form of a kernel, run on this CPU, with its CPU form, on the table of kernel cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks.gpu.card_code.launch import LANES, CardForm, card_form
from benchmarks.gpu.device_code import types_of
from tests.kernel_cases import CASES, KernelCase
from tests.kernel_cases.calls import arrays_in, selected, written
from tests.kernels.runs import HANDS_ON_SCRATCH, SIZES, compiled, image, made, spoil

# Each instruction as it stands, and optimised: undefined behaviour shows in one of them.
LEVELS = (0, 2)


class Differs(AssertionError):
    """Say that a kernel does on a card's code what its CPU form does not; the message says where."""


def alike() -> list[list[KernelCase]]:
    """Return the table of cases in groups, each of one kernel with arguments of the same types."""
    groups: dict[tuple[str, str], list[KernelCase]] = {}
    for case in CASES:
        groups.setdefault((case.kernel.__name__, str(types_of(case))), []).append(case)
    return [*groups.values()]


def compare(group: Sequence[KernelCase], texts: list[str], sizes: Sequence[int] = SIZES) -> int:
    """Return how many launches of cases gave the same as the CPU form, bit for bit; all have the code `texts`.

    Raises
    ------
    Differs
        One gave something else.
    """
    launches = 0
    for level in LEVELS:
        form = card_form(group[0].kernel, texts, level)
        for case, size, at_end in product(group, sizes, (True, False)):
            if found := _difference(compiled(case, size), launched(form, case, size, at_end)):
                raise Differs(f"{case.name}, size {size}, optimised {level}: {found}")
            launches += 1
    return launches


def launched(form: CardForm, case: KernelCase, size: int, at_end: bool) -> Any:
    """Return what the CUDA form returns and writes; scratch of a parallel kernel holds anything at first."""
    random = np.random.default_rng([size, at_end])
    call = made(case, size, LANES if case.kernel.parallel else 1)
    # a search resumes from what its scratch holds
    spoilt = case.kernel.scratch if case.kernel.parallel and case.kernel.__name__ not in HANDS_ON_SCRATCH else ()
    for scratch in arrays_in(tuple(selected(case.kernel, spoilt, call))):
        spoil(scratch, random)
    returned = form.launch(call.size if case.kernel.parallel else 1, call.arguments, random, at_end)
    return (returned if case.kernel.returns else None), image(written(case, call))


def _difference(expected: Any, found: Any) -> str:
    """Return in words where two results differ, or nothing."""
    if expected[0] != found[0]:
        return f"returns {found[0]} for {expected[0]}"
    return "; ".join(_differing(expected[1], found[1]))


def _differing(expected: list[Any], found: list[Any]) -> Iterator[str]:
    """Yield which of the arrays written differ, and in how many bytes."""
    for number, (before, after) in enumerate(zip(expected, found, strict=True)):
        if before != after:
            pairs = zip(before[2] + before[3], after[2] + after[3], strict=False)
            yield f"array {number} of those written, {before[0]}{list(before[1])}, differs in {sum(a != b for a, b in pairs)} bytes"
