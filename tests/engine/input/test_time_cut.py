"""Slices of time partition it, and each reads all events that bear on the matches which start in it."""

from __future__ import annotations

import math
import pickle
import tempfile
from dataclasses import replace
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import dataset, parquet

from gpu_cep.engine.input.row_groups import UNCOUNTED, RowGroups, limits_of, read_row_groups, unite_row_groups
from gpu_cep.engine.input.time_cut import Most, SliceReach, TimeCut, cut_by_budget, cut_by_number
from tests.effort import examples

INTEGERS = (-(2**63), 2**63 - 1)
FEW = st.integers(-6, 12)
TIMES = {
    "integers": FEW,
    "extremes": st.one_of(FEW, st.sampled_from((*INTEGERS, INTEGERS[0] + 1, INTEGERS[1] - 1))),
    "floats": st.sampled_from((-math.inf, -1.5, 0.0, 0.1, 0.2, 0.30000000000000004, 1.0, 2.5, 1e300, math.inf)),
}
WINDOWS = {"integers": st.integers(0, 8), "extremes": st.sampled_from((0, 3, 2**63, 2**64 - 1)), "floats": st.sampled_from((0.0, 0.1, 2.0))}


class Drawn:
    """Row groups, and the times of the events in each."""

    def __init__(self, times: list[list[Any]], known: list[bool], float_times: bool) -> None:
        self.times = [np.array(each, np.float64 if float_times else np.int64) for each in times]
        low, high = (-math.inf, math.inf) if float_times else INTEGERS
        bounds = [
            (each.min(), each.max()) if knows and len(each) else (low, low if knows else high)
            for each, knows in zip(self.times, known, strict=True)
        ]
        sizes = np.array([len(each) for each in self.times], np.int64)
        kind = np.float64 if float_times else np.int64
        self.groups = RowGroups(
            np.zeros(len(sizes), np.int64), np.arange(len(sizes)), sizes, 10 * sizes, np.array([b[0] for b in bounds], kind),
            np.array([b[1] for b in bounds], kind), np.array(known, np.bool_), np.zeros(len(sizes), np.int64),
        )  # fmt: skip


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Drawn, SliceReach, TimeCut, Most | None]:
    kind = draw(st.sampled_from(sorted(TIMES)))
    held = draw(st.lists(st.lists(TIMES[kind], max_size=5), max_size=8))
    if draw(st.booleans()):
        ordered = sorted(time for each in held for time in each)
        sizes = np.cumsum([len(each) for each in held])
        held = [ordered[end - len(each) : end] for end, each in zip(sizes.tolist(), held, strict=True)]
    known = draw(st.lists(st.sampled_from((True, True, True, False)), min_size=len(held), max_size=len(held)))
    drawn = Drawn(held, known, kind == "floats")
    reach = SliceReach(draw(WINDOWS[kind]), draw(st.booleans()))
    if draw(st.booleans()):
        return drawn, reach, cut_by_number(drawn.groups, reach, draw(st.integers(1, 5))), None
    most = Most(draw(st.integers(0, 30)), draw(st.sampled_from(("rows", "size"))))
    return drawn, reach, cut_by_budget(drawn.groups, reach, most), most


def owns(begin: Any, end: Any, times: Any) -> Any:
    return ((times >= begin) if begin is not None else True) & ((times < end) if end is not None else True)


@examples(200, full=2000)
@given(cuts())
def test_slices_read_what_bears_on_their_matches(case: tuple[Drawn, SliceReach, TimeCut, Most | None]) -> None:
    drawn, reach, cut, _ = case
    assert cut.slices[0].begin is None
    assert cut.slices[-1].end is None
    assert all(left.end == right.begin for left, right in zip(cut.slices, cut.slices[1:], strict=False))
    everything = np.concatenate([np.empty(0, drawn.groups.latest.dtype), *drawn.times])
    for each in cut.slices:
        assert each.begin is None or each.end is None or each.begin < each.end
        assert (np.diff(each.groups) > 0).all()
        missed = np.setdiff1d(np.arange(len(drawn.times)), each.groups)
        first = everything[owns(each.begin, each.end, everything)]
        for place in missed.tolist():
            distances = [exact(time, start) for start in first.tolist() for time in drawn.times[place].tolist()]
            assert not any(0 <= distance <= reach.window for distance in distances)
            assert not reach.back or not any(-reach.window <= distance <= 0 for distance in distances)
    held = np.flatnonzero(drawn.groups.rows > 0)
    assert set(held.tolist()) == {int(place) for each in cut.slices for place in each.groups}
    assert cut.rows_read == sum(int(drawn.groups.rows[each.groups].sum()) for each in cut.slices)


def exact(time: Any, start: Any) -> Any:
    """Times of integers as Python subtracts them, floats as the engine does."""
    return 0.0 if time == start else time - start


@examples(200, full=2000)
@given(cuts())
def test_slices_are_as_large_as_the_budget_allows(case: tuple[Drawn, SliceReach, TimeCut, Most | None]) -> None:
    drawn, _, cut, most = case
    if most is None:
        return
    amounts = getattr(drawn.groups, most.of)
    taken = [int(amounts[each.groups].sum()) for each in cut.slices]
    ends = {each.end for each in cut.slices}
    for each, amount in zip(cut.slices, taken, strict=True):
        latest = drawn.groups.latest[(drawn.groups.rows > 0) & (drawn.groups.latest != limits_of(drawn.groups.latest)[0])]
        inside = np.unique(latest[np.broadcast_to(owns(each.begin, each.end, latest), latest.shape)])
        # a slice beyond the budget holds one border only: it ends as soon as it can
        assert amount <= most.amount or len(inside) <= 1
    if int(amounts.sum()) <= most.amount:
        assert ends == {None}


@examples(200, full=2000)
@given(cuts(), st.integers(1, 4))
def test_as_many_slices_as_are_asked_for_read_as_little_as_can_be(
    case: tuple[Drawn, SliceReach, TimeCut, Most | None], number: int
) -> None:
    drawn, reach, finest, _ = case
    finest = cut_by_budget(drawn.groups, reach, Most(0))
    borders = [each.end for each in finest.slices[:-1]]
    found = cut_by_number(drawn.groups, reach, number)
    assert len(found.slices) <= number
    tried = chain.from_iterable(combinations(borders, few) for few in range(number))
    assert most_read(found) == min(max(_read(finest, each) for each in pairwise((None, *ends, None))) for ends in tried)


def most_read(cut: TimeCut) -> int:
    return max(int(cut.groups.rows[each.groups].sum()) for each in cut.slices)


def _read(finest: TimeCut, bounds: tuple[Any, Any]) -> int:
    """The rows that a slice reads, which are those of the finest slices in it."""
    begin, end = bounds
    first = 0 if begin is None else next(place for place, each in enumerate(finest.slices) if each.begin == begin)
    last = len(finest.slices) if end is None else next(place + 1 for place, each in enumerate(finest.slices) if each.end == end)
    return int(finest.groups.rows[np.unique(np.concatenate([each.groups for each in finest.slices[first:last]]))].sum())


@pytest.mark.parametrize(("workers", "rows"), [(1, 260), (2, 160), (3, 120), (4, 80), (9, 80)])
def test_workers_take_the_next_slice_when_they_are_free(workers: int, rows: int) -> None:
    drawn = Drawn([[number] * 20 for number in range(13)], [True] * 13, float_times=False)
    whole = cut_by_budget(drawn.groups, SliceReach(0), Most(0)).slices
    ends = [whole[place - 1].end if place < 13 else None for place in (3, 7, 9, 13)]
    slices = [
        replace(whole[0], begin=begin, end=end, groups=np.arange(0 if begin is None else begin, 13 if end is None else end))
        for begin, end in pairwise((None, *ends))
    ]
    assert TimeCut(tuple(slices), drawn.groups).longest_turn(workers) == rows


def test_files_in_order_are_read_once_but_for_windows() -> None:
    drawn = Drawn([list(range(10 * number, 10 * number + 10)) for number in range(100)], [True] * 100, float_times=False)
    cut = cut_by_budget(drawn.groups, SliceReach(3), Most(200, "rows"))
    assert max(int(drawn.groups.rows[each.groups].sum()) for each in cut.slices) == 200
    assert [each.groups[0] for each in cut.slices] == list(range(0, 99, 19))
    assert cut.overlap == 1.05
    back = cut_by_budget(drawn.groups, SliceReach(3, back=True), Most(200, "rows"))
    assert back.slices[1].groups[[0, -1]].tolist() == [18, 37]
    assert [len(each.groups) for each in cut_by_number(drawn.groups, SliceReach(0), 4).slices] == [25, 25, 25, 25]
    assert cut_by_number(drawn.groups, SliceReach(3), 4).largest == 26 * 100


CLOCKS = (
    *(pa.int8(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(), pa.date32(), pa.date64()),
    *(pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ns")),
)


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
def test_footers_give_bounds_in_ticks(tmp_path: Path, clock: pa.DataType) -> None:
    day = 86_400_000 if pa.types.is_date64(clock) else 1
    held = [3 * day, 1 * day, None, 7 * day, 100 * day, 90 * day]
    plain = pa.float64() if pa.types.is_floating(clock) else pa.int32() if pa.types.is_date32(clock) else pa.int64()
    table = pa.table({"ts": pa.array(held, plain).cast(clock), "x": range(6)})
    parquet.write_table(table, tmp_path / "events.parquet", row_group_size=2)
    found = dataset.dataset(tmp_path / "events.parquet")
    groups = read_row_groups(tuple(found.get_fragments()), found.schema, "ts", ("ts", "x"))
    # Parquet has no seconds
    ticks = 1000 if clock == pa.timestamp("s") else 1
    assert groups.earliest.tolist() == [ticks, 7 * ticks, 90 * ticks]
    assert groups.latest.tolist() == [3 * ticks, 7 * ticks, 100 * ticks]
    assert groups.known.all()
    full = UNCOUNTED if pa.types.is_floating(clock) else 0
    assert groups.missing.tolist() == [full, 1, full]
    assert groups.size.tolist() == [2 * (8 + found.schema.field("ts").type.bit_width // 8)] * 3


def test_unknown_bounds_are_wide(tmp_path: Path) -> None:
    without = pa.table({"ts": [5, 6], "x": [1, 2]})
    parquet.write_table(without, tmp_path / "a.parquet", write_statistics=False)
    parquet.write_table(pa.table({"ts": pa.array([None, None], pa.int64()), "x": [1, 2]}), tmp_path / "b.parquet")
    parquet.write_table(pa.table({"x": [1, 2]}), tmp_path / "c.parquet")
    parquet.write_table(pa.table({"ts": pa.array([4, 9], pa.timestamp("us")), "x": [1, 2]}), tmp_path / "d.parquet")
    whole = dataset.dataset(sorted(map(str, tmp_path.iterdir())), schema=without.schema)
    groups = read_row_groups(tuple(whole.get_fragments()), without.schema, "ts", ("ts",))
    low, high = INTEGERS
    assert groups.file.tolist() == [0, 1, 2, 3]
    assert list(zip(groups.earliest.tolist(), groups.latest.tolist(), groups.known.tolist(), strict=True)) == [
        (low, high, False), (low, low, True), (low, high, False), (4, 9, True),
    ]  # fmt: skip
    assert groups.missing.tolist() == [UNCOUNTED, 2, UNCOUNTED, 0]
    assert groups.size.tolist() == [16, 16, 0, 16]


def test_nan_is_no_bound(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"ts": [math.nan, 2.0, math.nan, math.nan]}), tmp_path / "a.parquet", row_group_size=2)
    found = dataset.dataset(tmp_path)
    groups = read_row_groups(tuple(found.get_fragments()), found.schema, "ts", ("ts",))
    assert groups.earliest.tolist() == [2.0, -math.inf]
    assert groups.latest.tolist() == [2.0, math.inf]
    assert groups.known.tolist() == [True, False]


@examples(20, full=100)
@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=6), st.integers(1, 4))
def test_footers_can_be_read_apart(files: list[list[int]], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, times in enumerate(files):
            parquet.write_table(pa.table({"ts": times, "s": ["a"] * len(times)}), Path(folder, f"{number}.parquet"), row_group_size=size)
        found = dataset.dataset(folder)
        fragments = tuple(found.get_fragments())
        together = read_row_groups(fragments, found.schema, "ts", ("ts", "s"))
        apart = [read_row_groups([each], found.schema, "ts", ("ts", "s"), first=number) for number, each in enumerate(fragments)]
        united = unite_row_groups([pickle.loads(pickle.dumps(each)) for each in apart])
        for name in RowGroups.__slots__:
            assert getattr(together, name).tolist() == getattr(united, name).tolist()
        assert together.first_rows.tolist() == (np.cumsum(together.rows) - together.rows).tolist()
        times = [np.array(chunk) for each in files for chunk in (each[at : at + size] for at in range(0, len(each), size))]
        assert together.earliest.tolist() == [each.min() for each in times]
        assert together.latest.tolist() == [each.max() for each in times]
