"""Say which queries can be answered by slices of time, and what a run over a slice must add to its events."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import CountWindow, ReturnColumn, TimeWindow
from gpu_cep.analysis.bound_expressions import Constant
from gpu_cep.analysis.types import INTEGER
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.positions import positions_of_events
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.input.row_numbers import RowNumbers, Rows
from gpu_cep.engine.input.time_cut import SliceReach, TimeCut
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.plan.returns import plan_return
from gpu_cep.plan.settings import Settings


@dataclass(frozen=True, slots=True)
class SlicedPlan:
    """A query planned over the events of a slice, with columns `added` behind them.

    `whole`: the plan over events as they are, whose result is wanted.
    `plan`: the plan over slices. Its results end with the values of the added columns at a match's first event, and at its last.
    `added`: the names of these columns: `keys` copies of stream keys, and for ``skip_past_last`` a time and a place.
    """

    whole: AnyPlan
    plan: AnyPlan
    added: tuple[str, ...]
    keys: int

    @property
    def takes(self) -> bool:
        """Return whether a match is kept or dropped by those of other slices."""
        return self.whole.settings.after_match == "skip_past_last"

    @property
    def carries(self) -> bool:
        """Return whether a run needs the last event of each stream before its slice."""
        return isinstance(self.whole, IntervalPlan)

    @property
    def needs_later_events(self) -> bool:
        """Return whether a run needs an event behind its slice of each stream that has one, however late it comes.

        It shows that a gap has ended a situation. Early detection does not wait for that longer than a window.
        """
        return isinstance(self.whole, IntervalPlan) and self.whole.query.gap is not None and not self.whole.query.early

    @property
    def totals(self) -> bool:
        """Return whether the result has a number of matches for each stream."""
        return self.whole.settings.output == "count"

    @property
    def of_ones(self) -> bool:
        """Return whether results of runs have a row of 1 for each match, rather than a number for each stream."""
        return self.totals and self.plan.settings.output == "matches"

    @property
    def count_column(self) -> int:
        """Return the column of the number of matches in results of runs: behind the keys, and behind the times of a match."""
        return len(self.whole.query.partition_by) + 2 * self.of_ones

    def counting_ones(self) -> SlicedPlan:
        """Return the same plan with a row of 1 for each match instead of counts."""
        assert isinstance(self.plan, EventPlan), "situations keep all matches"
        one = ReturnColumn("count", Constant(1, INTEGER))
        query, settings = replace(self.plan.query, returns=(one,)), replace(self.plan.settings, output="matches")
        return replace(self, plan=replace(self.plan, query=query, settings=settings, returns=(plan_return(one.expression),)))


@dataclass(frozen=True, slots=True, eq=False)
class SlicedRun:
    """A plan, the files that it is run over, the slices of time into which they are cut, and the files as they were given."""

    sliced: SlicedPlan
    files: GroupedFiles
    cut: TimeCut
    given: GroupedFiles
    threads: int | None = None
    profile: Profile | None = None


def reason_against(plan: AnyPlan, *, on_card: bool = False) -> str | None:
    """Return why a query cannot be answered by slices of time, on a card or not, as words behind "it cannot be"; None if it can."""
    if on_card and isinstance(plan, IntervalPlan):
        return "on a card, since situations reach from slice to slice"
    match plan.query.window:
        case None:
            return "without a window"
        case CountWindow():
            return "with a window of a number of events"
    if plan.settings.output == "compressed":
        return "with output='compressed'"
    return "with algorithm='brute_force'" if plan.algorithm == "brute_force" else None


def reach_of(plan: AnyPlan) -> SliceReach:
    """Return how far the matches of a slice reach beyond it."""
    assert isinstance(plan.query.window, TimeWindow), "only queries with such a window are cut"
    branches = plan.branches if isinstance(plan, EventPlan) else ()
    return SliceReach(plan.query.window.length, any(not negation.after for branch in branches for negation in branch.negations))


def added_fields(plan: Plan, schema: pa.Schema, taken: set[str]) -> list[pa.Field]:
    """Return the columns that slices add, with names unlike those `taken`: keys that results lack, time and place."""
    query, suffix = plan.query, ""
    while any(name.startswith(f"slice{suffix}") for name in taken):
        suffix += "_"
    keys = query.partition_by if plan.settings.output in ("events", "indices") else ()
    fields = [pa.field(f"slice{suffix} key {number}", schema.field(key).type) for number, key in enumerate(keys)]
    if plan.settings.after_match == "skip_past_last":
        fields += [pa.field(f"slice{suffix} time", schema.field(query.timestamp).type), pa.field(f"slice{suffix} place", pa.int64())]
    return fields


def slice_settings(settings: Settings, names: tuple[str, ...]) -> Settings:
    """Return the settings of the runs over slices, whose events have the columns `names`."""
    columns = names if settings.columns is None else settings.columns
    if settings.after_match != "skip_past_last":
        return replace(settings, columns=columns)
    # at most one match per first event is kept, the first to complete; which ones, and how many, is decided later
    return replace(settings, columns=columns, after_match="skip_to_next", max_matches=None)


def sliced_plan(whole: AnyPlan, plan: AnyPlan, added: tuple[str, ...]) -> SlicedPlan:
    """Return the plan for slices, from one over events with the columns `added` at their end."""
    keys = len(whole.query.partition_by) if whole.settings.output in ("events", "indices") else 0
    count = len(plan.query.schema.attributes)
    ends = replace(plan, ends=tuple(range(count - len(added), count)))
    return SlicedPlan(whole, ends, added, keys)


def add_columns(sliced: SlicedPlan, part: PartOfFiles) -> tuple[pa.Table, Origin]:
    """Return the events of a slice with the columns that its plan reads, and what of the files they are."""
    whole, table, numbers = sliced.whole, part.table, part.numbers
    assert numbers is not None, "the rows of slices are numbered"
    names = iter(sliced.added)
    schema = part.schema
    if sliced.takes and whole.query.order_by:
        # positions count the events with a time only
        timed, kept = timed_events(whole.query, table)
        table, numbers = to_host(timed), numbers if kept is None else numbers[kept]
    keys = whole.query.partition_by[: sliced.keys]
    for column in (*keys, whole.query.timestamp) if sliced.takes else keys:
        name = next(names)
        table, schema = table.append_column(name, table.column(column)), schema.append(schema.field(column).with_name(name))
    if sliced.takes:
        name = next(names)
        places = pa.chunked_array([_places(whole, table, numbers)])
        table, schema = table.append_column(name, places), schema.append(pa.field(name, pa.int64()))
    return table, Origin(schema, numbers)


def numbers_ties(whole: Plan) -> bool:
    """Return whether runs number the events of each stream and time by `order_by`: they must read all of these, or none."""
    return whole.settings.after_match == "skip_past_last" and bool(whole.query.order_by)


def _places(whole: Plan, table: pa.Table, numbers: RowNumbers) -> Rows:
    """Return numbers that ascend with the order of events of one stream and time, the same in every slice."""
    if not whole.query.order_by:
        return np.asarray(numbers)
    return positions_of_events(whole, EventColumns(table, whole.query, whole.dictionaries, threads=1))[1]
