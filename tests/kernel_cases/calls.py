"""What a kernel's test needs to know of it, and a call that it makes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import Kernel
from tests.kernel_cases.inputs import Array, Random

# Names of cases, and what they hand on to the function that makes their arguments.
Variants = Mapping[str, Mapping[str, Any]]


class Call(NamedTuple):
    """Arguments of a kernel, all but low, high and slot, and the number of indices that they are for (1 if it is sequential)."""

    size: int
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class KernelCase:
    """One kernel with arguments of certain types.

    ``make(size, random, slots)`` gives arguments for about `size` events,
    windows or matches, equal ones for equal states of `random`; scratch has
    so many slots. `reads` are the arrays of which it reads every sector of
    memory, or nearly; there are none if the case is not for timing on a card, which
    may not run the kernel at all.
    ``table.column`` is a part of a parameter.
    """

    kernel: Kernel[..., Any]
    variant: str
    make: Callable[[int, Random, int], Call]
    reads: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The kernel's name and the variant."""
        return f"{self.kernel.__name__}-{self.variant}" if self.variant else self.kernel.__name__


def cases(
    kernel: Kernel[..., Any],
    make: Callable[..., Call],
    variants: Variants,
    reads: tuple[str, ...] = (),
) -> list[KernelCase]:
    """A case for each variant, which names further arguments of `make`."""
    return [KernelCase(kernel, variant, partial(make, **given), reads) for variant, given in variants.items()]


def parameters(kernel: Kernel[..., Any]) -> tuple[str, ...]:
    """The kernel's parameters but low, high and slot."""
    names = tuple(inspect.signature(kernel.body).parameters)
    return names[2 + kernel.slotted :] if kernel.parallel else names


def bytes_moved(case: KernelCase, call: Call) -> int:
    """Bytes that the call must at least read and write."""
    return sum(array.nbytes for value in (*selected(case.kernel, case.reads, call), *written(case, call)) for array in arrays_in(value))


def written(case: KernelCase, call: Call) -> list[Any]:
    """The arguments in which the kernel leaves its results."""
    return selected(case.kernel, case.kernel.writes, call)


def selected(kernel: Kernel[..., Any], names: tuple[str, ...], call: Call) -> list[Any]:
    """The arguments, or parts of arguments, of these names."""
    arguments = SimpleNamespace(**dict(zip(parameters(kernel), call.arguments, strict=True)))
    return [attrgetter(name)(arguments) for name in names]


def may_write(case: KernelCase, call: Call) -> set[int]:
    """The ids of the arrays that the kernel may write."""
    return {id(array) for value in selected(case.kernel, (*case.kernel.writes, *case.kernel.scratch), call) for array in arrays_in(value)}


def arrays_in(value: Any) -> Iterator[Array]:
    """The arrays in an argument: itself, or those of a (named) tuple."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays_in(part)
