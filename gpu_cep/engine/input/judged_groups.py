"""Judge the row groups of a Parquet file by their statistics: which may have an event that counts, and whether values are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.encodings import widen_schema
from gpu_cep.engine.input.machine_values import Flags
from gpu_cep.engine.input.wanted_events import Near, Wanted

if TYPE_CHECKING:
    from pyarrow import dataset, parquet

# So many row groups of a file tell first whether a condition rules out any, a few of them before the others: to judge all by some
# conditions takes longer than to read them.
SAMPLED, FIRST = 32, 4


class WantedGroups(NamedTuple):
    """The row groups of a fragment that may have a wanted event, by their numbers in the file (None: all of the fragment).

    `holds` says which of them may have an event of each variable near which others must be (None: those far from them are needed, too).
    """

    numbers: list[int] | None
    holds: Mapping[int, Flags] | None


def wanted_groups(fragment: dataset.ParquetFileFragment, schema: pa.Schema, columns: Sequence[str], wanted: Wanted) -> WantedGroups:
    """Return the row groups of a fragment that may have a wanted event; whether each event has a time is for the caller to ask.

    All are wanted if Arrow casts some of `columns` to the types of `schema`, which may be an error.
    """
    if is_cast(fragment, schema, columns):
        return WantedGroups(None, None)
    judged, near = _Judged.of(fragment, schema), wanted.near
    if near is not None and near.complete:
        # to judge by the condition of all wanted events, too, would tell nothing more
        holds = judged.held_by_each(near)
        held: Flags = np.logical_or.reduce(list(holds.values()))
        return WantedGroups(judged.numbers[held].tolist(), {number: marks[held] for number, marks in holds.items()})
    left = judged.those(judged.held(wanted.condition))
    return WantedGroups(left.numbers.tolist(), None if near is None else left.held_by_each(near))


def unite_holds(parts: Sequence[Mapping[int, Flags] | None]) -> Mapping[int, Flags] | None:
    """Return each variable's marks over the row groups of all fragments.

    They are None if those of a fragment are.
    """
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return {number: np.concatenate([part[number] for part in known]) for number in known[0]}


class _Judged(NamedTuple):
    """Row groups of a file, with their numbers, and samples of them.

    A condition is tried on the samples first, in turn; few row groups have none.
    """

    fragment: dataset.ParquetFileFragment
    schema: pa.Schema
    numbers: npt.NDArray[np.int64]
    samples: tuple[dataset.ParquetFileFragment, ...]

    @classmethod
    def of(cls, fragment: dataset.ParquetFileFragment, schema: pa.Schema) -> _Judged:
        """Return the row groups with a sample; it is drawn, since row groups at regular distances may be alike."""
        numbers = np.array([group.id for group in fragment.row_groups], np.int64)
        if len(numbers) < 2 * SAMPLED:
            return cls(fragment, schema, numbers, ())
        drawn = np.random.default_rng(0).choice(numbers, SAMPLED, replace=False)
        samples = (fragment.subset(row_group_ids=np.sort(part).tolist()) for part in np.split(drawn, [FIRST]))
        return cls(fragment, schema, numbers, tuple(samples))

    def those(self, held: Flags) -> _Judged:
        """Return the row groups with a mark in `held`."""
        return self if held.all() else _Judged.of(self.fragment.subset(row_group_ids=self.numbers[held].tolist()), self.schema)

    def held_by_each(self, near: Near) -> Mapping[int, Flags]:
        """Return for each variable which row groups may have an event of it."""
        return near.judge_each(self.held)

    def held(self, condition: dataset.Expression) -> Flags:
        """Return which row groups may have an event for which a condition is true; all if it rules out none of the sample."""
        if self.samples and all(len(not_ruled_out(sample, condition, self.schema)) == sample.num_row_groups for sample in self.samples):
            return np.ones(len(self.numbers), np.bool_)
        return np.isin(self.numbers, not_ruled_out(self.fragment, condition, self.schema))


def is_cast(fragment: dataset.ParquetFileFragment, schema: pa.Schema, columns: Sequence[str]) -> bool:
    """Return whether Arrow casts some of the columns of a file to the types of `schema`; to codes of more bits is no cast."""
    own = widen_schema(fragment.physical_schema)
    return any(name in own.names and own.field(name).type != schema.field(name).type for name in columns)


def not_ruled_out(fragment: dataset.ParquetFileFragment, condition: dataset.Expression, schema: pa.Schema) -> list[int]:
    """Return the row groups of a fragment for which statistics do not rule out the condition."""
    return [group.id for part in fragment.split_by_row_group(condition, schema=schema) for group in part.row_groups]


def is_never_null(fragment: dataset.ParquetFileFragment, column: str) -> bool:
    """Return whether statistics say that no value of a column is NULL or NaN in any row group."""
    metadata = fragment.metadata
    place = next((number for number in range(metadata.num_columns) if metadata.schema.column(number).path == column), None)
    if place is None or metadata.schema.column(place).physical_type in ("FLOAT", "DOUBLE", "FIXED_LEN_BYTE_ARRAY"):
        # statistics do not count NaN
        return False
    return all(_is_complete(metadata.row_group(group.id).column(place).statistics) for group in fragment.row_groups)


def _is_complete(known: parquet.Statistics | None) -> bool:
    """Return whether statistics say that no value is NULL."""
    return known is not None and bool(known.has_null_count) and known.null_count == 0
