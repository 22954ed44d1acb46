"""Say where tables are joined: on the CPU's threads, or on a device, and how many rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_cep.engine.lowering.programs import program_registers
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.device.interface import HOST, Array, Backend, Device
from gpu_cep_kernels.device.primitives import stable_order
from gpu_cep_kernels.joins.table_joins import Partners, Tables, filter_partners
from gpu_cep_kernels.matches.groups import order_by_group
from gpu_cep_kernels.phase_one.input_buffers import Streams
from gpu_cep_kernels.rules.tables import Conditions, Registers

# On the CPU: candidates that one call tests, and rows that are gathered for a join's left and right side.
_CANDIDATES, _ROWS, _INDEXED = 1 << 18, 1 << 15, 1 << 20
# Candidates that a call tests at most so that each thread has a row, if rows have many candidates.
_SHARED_CANDIDATES = 1 << 24
# Registers from one thread's slot to the next. Threads share no cache line, even if registers have one byte.
REGISTER_STRIDE = 64


class WorkBounds(NamedTuple):
    """Bound the work of a call: its candidates, and the rows that are gathered for a join's left and right side.

    A call may test `shared` candidates if otherwise a thread would have no row.
    """

    candidates: int
    shared: int
    rows: int
    indexed: int


class Workplace(Protocol):
    """Where tables are joined. `threads` work on a call, each on rows of its own."""

    @property
    def place(self) -> Backend:
        """Return the device, or the host."""

    @property
    def bounds(self) -> WorkBounds:
        """Return the bounds of one call."""

    @property
    def threads(self) -> int:
        """Return how many threads work on a call."""

    def run(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run a parallel kernel over [0, size)."""

    def order(self, groups: Array, number: int) -> Array:
        """Return the rows in a stable order by group; groups are numbered below `number`."""

    def group(self, groups: Array, number: int) -> tuple[Array, Array]:
        """Return the order that :meth:`order` returns, and where each group begins in it, with the end."""

    def filter_partners(self, begin: int, tables: Tables, streams: Streams, conditions: Conditions, partners: Partners) -> None:
        """Write the partners of each row of a chunk, which begins at row `begin` of the left table."""


@dataclass(frozen=True, slots=True)
class CpuWorkplace:
    """The CPU's threads; each has a slot in the `registers`, `REGISTER_STRIDE` from the next."""

    registers: Registers
    bounds: WorkBounds
    threads: int
    place: Backend = HOST

    def run(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Run the kernel slice by slice, in threads."""
        spread(lambda part: kernel(*part, *arguments), slices(size, self.threads), self.threads)

    def order(self, groups: Array, number: int) -> Array:
        """Return the order by a counting sort."""
        return order_by_group(groups, number)[0]

    def group(self, groups: Array, number: int) -> tuple[Array, Array]:
        """Return the order and the groups by a counting sort."""
        return order_by_group(groups, number)

    def filter_partners(self, begin: int, tables: Tables, streams: Streams, conditions: Conditions, partners: Partners) -> None:
        """Filter the partners in threads, each of which has rows with about as many candidates."""

        def keep(part: tuple[int, tuple[int, int]]) -> None:
            slot, (low, high) = REGISTER_STRIDE * part[0], part[1]
            filter_partners(low, high, slot, begin, tables, streams, conditions, self.registers, partners)

        spread(keep, [*enumerate(_split_evenly(partners, self.threads))], self.threads)


def cpu_workplace(conditions: Conditions, threads: int) -> CpuWorkplace:
    """Return the CPU as the workplace for a batch's joins; the tables fit its caches."""
    registers = program_registers(np, conditions.programs, REGISTER_STRIDE * threads, conditions.table.roles)
    return CpuWorkplace(registers, WorkBounds(_CANDIDATES, _SHARED_CANDIDATES, _ROWS, _INDEXED), threads)


def _split_evenly(partners: Partners, parts: int) -> list[tuple[int, int]]:
    """Return the rows of a chunk as at most `parts` ranges with about as many candidates each."""
    if parts == 1:
        return [(0, len(partners.size))]
    candidates = len(partners.rows)
    borders = np.searchsorted(partners.place, [candidates * part // parts for part in range(parts)])
    return [*pairwise(np.unique([0, *borders, len(partners.size)]).tolist())]


@dataclass(frozen=True, slots=True)
class DeviceWorkplace:
    """A device, whose threads each have a row of the left table."""

    place: Device
    bounds: WorkBounds
    threads: int = 1

    def run(self, kernel: Kernel[Any, Any], size: int, *arguments: Any) -> None:
        """Launch the kernel."""
        self.place.launch(kernel, size, *arguments)

    def order(self, groups: Array, number: int) -> Array:
        """Return the order by a stable sort."""
        return stable_order(self.place.xp, [groups]) if len(groups) else self.place.xp.empty(0, np.int64)

    def group(self, groups: Array, number: int) -> tuple[Array, Array]:
        """Return the order by a stable sort, and the groups by searches."""
        xp, order = self.place.xp, self.order(groups, number)
        return order, xp.searchsorted(groups[order], xp.arange(number + 1, dtype=np.int64)).astype(np.int64)

    def filter_partners(self, begin: int, tables: Tables, streams: Streams, conditions: Conditions, partners: Partners) -> None:
        """Launch the kernel, with registers for each of its slots."""
        rows = len(partners.size)
        registers = program_registers(self.place.xp, conditions.programs, self.place.slots(rows), conditions.table.roles)
        self.place.launch(filter_partners, rows, begin, tables, streams, conditions, registers, partners)


def places_in(place: Backend, ends: Array, values: Sequence[int]) -> list[int]:
    """Return for each value how many of `ends`, which ascend at `place`, are no greater."""
    found: list[int] = place.download(place.xp.searchsorted(ends, place.upload(np.array(values)), side="right")).tolist()
    return found
