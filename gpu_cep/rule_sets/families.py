"""Run the rules of a family, which differ only in constants, as one query over pairs of a rule and a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.accounting.profile import UNREAD, Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer, answer_schema
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import InputEvents, Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.rule_sets.crowded_rows import Neighbourhood, mark_crowded_rows, neighbourhood
from gpu_cep.engine.rule_sets.families import Family, find_families
from gpu_cep.engine.rule_sets.near_candidates import keep_near_candidates, may_drop_rows
from gpu_cep.engine.rule_sets.paired_rows import FamilyRows, Pairs, family_rows, pair_rows, paired_columns, paired_names, paired_query
from gpu_cep.engine.rule_sets.row_lists import RowLists
from gpu_cep.errors import CepError
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.planner import plan
from gpu_cep.plan.settings import Settings
from gpu_cep.rule_sets.plans import PlannedRule
from gpu_cep_kernels.compile.launch import available_threads, spread

# Fewer rules of a kind run by themselves.
_FEWEST = 4
# The pairs that one run has, and the most for each rule on average: more keep all threads busy by themselves.
_PAIRS, _MOST_PAIRS = 1 << 20, 1 << 18
# Rows that families share are ordered once for all of them if each is one of so many families, on average.
_SHARED = 2


@dataclass(frozen=True, slots=True)
class RuleFamily:
    """Rules that differ only in constants, in the order of the family's members; `groups` are those of their rows."""

    rules: tuple[PlannedRule, ...]
    family: Family
    column: str
    groups: tuple[int, ...]


def rule_families(rules: Sequence[PlannedRule], column: int, name: str, lists: RowLists) -> Iterator[RuleFamily]:
    """Yield the families of rules whose rows are listed by the values of a column."""
    plans = [(number, each.plan) for number, each in enumerate(rules) if isinstance(each.plan, EventPlan) and _is_free(each.plan)]
    for family in find_families([each for _, each in plans], column):
        members = [plans[member][0] for member in family.members]
        if len(members) >= _FEWEST:
            groups = tuple(sorted({group for member in members for group in lists.groups[member]}))
            yield RuleFamily(tuple(rules[member] for member in members), family, name, groups)


def lists_of_families(
    families: Sequence[RuleFamily], columns: EventColumns, lists: Mapping[str, RowLists], threads: int, profile: Profile | None
) -> Iterator[tuple[RuleFamily, RowLists]]:  # fmt: skip
    """Yield each family, and the lists of its rows; where families share rows, those that none of them can bind are left out."""
    alike: dict[tuple[str, Neighbourhood | None], list[RuleFamily]] = {}
    for each in families:
        alike.setdefault((each.column, neighbourhood(each.family)), []).append(each)
    for (column, around), own in alike.items():
        of_all, groups = lists[column], tuple(sorted({group for each in own for group in each.groups}))
        if around is None or sum(of_all.count(each.groups) for each in own) < _SHARED * of_all.count(groups):
            yield from ((each, of_all) for each in own)
        else:
            yield from _crowded_lists(own, columns, of_all, groups, threads, profile or UNREAD)


def _crowded_lists(
    families: Sequence[RuleFamily], columns: EventColumns, of_all: RowLists, groups: tuple[int, ...], threads: int, profile: Profile
) -> Iterator[tuple[RuleFamily, RowLists]]:  # fmt: skip
    """Yield each family with lists of the rows that may be in a match of some family; of all rows if these cannot be marked."""
    left = dict(enumerate(families))
    # each rule says by itself what is at fault
    with suppress(CepError):
        for numbers, marks in mark_crowded_rows([each.family for each in families], columns, of_all.of(groups), threads, profile):
            kept = of_all.keep(marks)
            yield from ((left.pop(number), kept) for number in numbers)
    yield from ((each, of_all) for each in left.values())


def _is_free(planned: EventPlan) -> bool:
    """Return whether a rule may be run with its family: no bound on its steps, which differ there, and no graph of matches."""
    return planned.settings.max_steps is None and planned.settings.output != "compressed"


def run_family(
    own: RuleFamily, events: InputEvents, lists: RowLists, resources: Resources, at_once: int
) -> Mapping[str, pa.Table] | None:  # fmt: skip
    """Return the results of a family's rules by name, without those of a part that failed; None if there are too many pairs.

    Parameters
    ----------
    events
        All events; their columns are shared.
    lists
        The rows of each value that some rule wants.
    resources
        What the runs of the engine may use together.
    at_once
        The most of these runs at a time.

    Raises
    ------
    CepError
        What all rules read is at fault.
    """
    threads = resources.threads or available_threads()
    given, counts = _needed_rows(own, events, lists, threads, resources.profile or UNREAD)
    if counts.sum() > _MOST_PAIRS * len(counts):
        return None
    planned, parts = _paired_plan(own.family), _cut(counts)
    beside = min(at_once, len(parts))
    of_each = Resources(max(1, threads // beside), resources.profile, beside * resources.concurrent)

    def run(members: range) -> dict[str, pa.Table]:
        # which of these has failed is not known: each runs once more, by itself, and no other does
        with suppress(CepError):
            pairs = pair_rows(given, members)
            picked, origin = _paired_events(own.family, events, given, pairs)
            found = answer(planned, picked, origin=origin, resources=of_each)
            return dict(_of_members(own, members, found, events))
        return {}

    return {name: table for part in spread(run, parts, beside) for name, table in part.items()}


def _needed_rows(
    own: RuleFamily, events: InputEvents, lists: RowLists, threads: int, profile: Profile
) -> tuple[FamilyRows, npt.NDArray[np.int64]]:
    """Return the rows of a family, and how many each rule has.

    Rows that can be in no match are left out where finding them pays.
    """
    assert events.shared is not None, "rules of a family share columns"
    given = family_rows(own.family, events.shared, lists, own.groups)
    counts = given.counts()
    # where no row has two rules, a pass for all of them drops few
    if counts.sum() <= len(given.rows) or not may_drop_rows(own.family):
        return given, counts
    kept = keep_near_candidates(given, threads, profile)
    return kept, kept.counts()


def _paired_plan(family: Family) -> EventPlan:
    """Return the plan of a family's query over pairs of a rule and a row."""
    query = paired_query(family, by_member=True)
    planned = plan(query, _paired_settings(family))
    # rows of events and indices have no stream keys
    return replace(planned, ends=(query.partition_by[0],)) if family.plan.settings.output in ("events", "indices") else planned


def _paired_settings(family: Family) -> Settings:
    """Return the settings of the family's query; whole events have the columns of the table alone."""
    settings = family.plan.settings
    return settings if settings.columns is not None else replace(settings, columns=family.plan.query.schema.names)


def _cut(counts: npt.NDArray[np.int64]) -> list[range]:
    """Cut the members of a family into ranges with about so many pairs as a run has."""
    part = np.cumsum(counts) // _PAIRS
    borders = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(counts)]
    return [range(low, high) for low, high in zip(borders[:-1], borders[1:], strict=True) if low < high]


def _paired_events(family: Family, events: InputEvents, given: FamilyRows, pairs: Pairs) -> tuple[PickedRows, Origin]:
    """Return the rows of pairs as events of the family's query, and the input of which they are a part."""
    beside = paired_columns(family, pairs.members, pairs.labels)
    picked = PickedRows(given.columns, pairs.rows, beside)
    return picked, Origin(pa.schema([*given.columns.schema, *beside.schema]), events.origin.numbers_of(pairs.rows.astype(np.int64)))


def _of_members(own: RuleFamily, members: range, found: pa.Table, events: InputEvents) -> Iterator[tuple[str, pa.Table]]:
    """Yield the result of each member, by the name of its rule; `found` is in the order of members."""
    assert events.shared is not None, "rules of a family share columns"
    member = paired_names(own.family)[0]
    names = [name for name in found.column_names if name in (member, f"{member}_first")]
    numbers = found.column(names[0]).to_numpy()
    bounds = np.searchsorted(numbers, np.arange(members.start, members.stop + 1))
    rows = found.drop_columns([name for name in found.column_names if name in (member, f"{member}_first", f"{member}_last")])
    schema = answer_schema(own.family.plan, events.shared.schema)
    for number, low, high in zip(members, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = pa.Table.from_arrays(rows.slice(low, high - low).columns, schema=schema)
        yield own.rules[number].name, _with_zero(own.family.plan, part)


def _with_zero(planned: EventPlan, part: pa.Table) -> pa.Table:
    """Return a result; the count of the only stream is there even if it is 0."""
    if planned.settings.output == "count" and not planned.query.partition_by and not part.num_rows:
        return pa.Table.from_arrays([pa.array([0], pa.int64())], schema=part.schema)
    return part
