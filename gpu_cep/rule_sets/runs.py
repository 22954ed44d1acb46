"""Run the planned rules of a set: each over the few events that it may bind, or over all that are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import has_matches
from gpu_cep.engine.events.own_events import WHOLE, Own, OwnRows
from gpu_cep.engine.input.absent_values import asked_texts
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.event_filter import may_leave_out
from gpu_cep.engine.input.input_events import InputEvents, Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.read_tables import is_resident
from gpu_cep.engine.input.times import has_missing_times
from gpu_cep.engine.phase_one.engine_choice import has_device
from gpu_cep.engine.rule_sets.bound_values import Values, bound_values
from gpu_cep.engine.rule_sets.compact_texts import compact_texts
from gpu_cep.engine.rule_sets.row_lists import RowLists, list_rows
from gpu_cep.errors import CepError
from gpu_cep.queries.runs import absent_texts, run_engine
from gpu_cep.rule_sets.families import RuleFamily, lists_of_families, rule_families, run_family
from gpu_cep.rule_sets.plans import PlannedRule, PlannedRules
from gpu_cep.rule_sets.rules import naming
from gpu_cep_kernels.compile.launch import spread, threads_of

if TYPE_CHECKING:
    import pyarrow as pa

    from gpu_cep.engine.input.absent_values import Texts

# Rows are gathered for a rule if they are at most this share of all, for each rule that needs the same rows.
_SHARE = 8
# Rows from which a rule uses all threads; of smaller ones, each thread works on others.
_MANY_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that run over the same rows; `values` of the `column` tell these, None stands for all rows."""

    rules: tuple[PlannedRule, ...]
    rows: int
    column: str | None = None
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the rules of a set share: the events and their columns, the lists of rows by column, and the groups of rules.

    `columns` is None if each rule reads the `events` by itself, since they lie on a device. `families` are rules that also run
    as one query.
    """

    events: InputEvents
    columns: EventColumns | None
    lists: Mapping[str, RowLists]
    groups: tuple[RuleGroup, ...]
    families: tuple[RuleFamily, ...] = ()


def share_events(given: PlannedRules, threads: int) -> Sharing:
    """Return how the rules share the events that they were planned over; the rows of each group are listed."""
    events, planned = given.events, given.planned
    if not planned or is_resident(events.table):
        return Sharing(events, None, {}, tuple(RuleGroup((each,), int(events.table.num_rows)) for each in planned))
    types = events.table.schema if events.origin.schema is None else events.origin.schema
    events = replace(events, origin=replace(events.origin, schema=types))
    columns = _shared_columns(events, planned, threads)
    by_column = _rules_by_column(planned, columns)
    lists: dict[str, RowLists] = {}
    groups: list[RuleGroup] = []
    families: list[RuleFamily] = []
    for column, rules in by_column.items():
        name = columns.name(column)
        lists[name] = list_rows(columns, column, [values for _, values in rules], threads)
        own = [each for each, _ in rules]
        groups += _grouped(own, name, lists[name], len(columns))
        families += rule_families(own, column, name, lists[name])
    grouped = {each.name for group in groups for each in group.rules}
    rest = tuple(each for each in planned if each.name not in grouped)
    groups += [RuleGroup(rest, len(columns))] if rest else []
    # a family reads few rows but for the values that are looked up
    as_one = {each.name for family in families for each in family.rules}
    read = [(each.plan, group.rows) for group in groups for each in group.rules if each.name not in as_one]
    compact = replace(events, table=compact_texts(events.table, read))
    columns = columns if compact.table is events.table else _shared_columns(compact, planned, threads)
    return Sharing(compact, columns, lists, tuple(groups), tuple(families))


def _shared_columns(events: InputEvents, planned: Sequence[PlannedRule], threads: int) -> EventColumns:
    """Return the columns of events, each converted once for all planned rules."""
    return EventColumns(events.table, planned[0].plan.query, (), events.origin.numbers, events.origin.schema, threads=threads)


def _rules_by_column(planned: Sequence[PlannedRule], columns: EventColumns) -> dict[int, list[tuple[PlannedRule, Values]]]:
    """Return, for each column by whose values rows are listed, the rules that it serves, and the values that these need."""
    found = {each.name: _values_of(each, columns) for each in planned}
    counts: dict[int, int] = {}
    for values in found.values():
        for column in values:
            counts[column] = counts.get(column, 0) + 1
    served: dict[int, list[tuple[PlannedRule, Values]]] = {}
    for each in planned:
        own = found.get(each.name, {})
        if own:
            column = max(own, key=lambda column: (counts[column], -column))
            served.setdefault(column, []).append((each, own[column]))
    # for a single rule, a pass that labels events does as much
    return {column: rules for column, rules in served.items() if len(rules) > 1}


def _values_of(rule: PlannedRule, columns: EventColumns) -> Mapping[int, Values]:
    """Return the values that all events of a rule have, by column, if it has the same matches among these events alone."""
    plan = rule.plan
    if not may_leave_out(plan, columns.schema):
        return {}
    timed = plan.query.drops_untimed or not has_missing_times(columns, plan.query.timestamp)
    return bound_values(plan.query) if timed else {}


def _grouped(rules: Sequence[PlannedRule], column: str, lists: RowLists, size: int) -> Iterator[RuleGroup]:
    """Yield the rules by the rows that they need, but for those that need too many."""
    by_rows: dict[tuple[int, ...], list[PlannedRule]] = {}
    for each, groups in zip(rules, lists.groups, strict=True):
        by_rows.setdefault(groups, []).append(each)
    for groups, same in by_rows.items():
        rows = lists.count(groups)
        if _SHARE * rows <= size * len(same):
            yield RuleGroup(tuple(same), rows, column, groups)


def run_shared(
    given: PlannedRules, sharing: Sharing, resources: Resources, failed: Callable[[str, CepError], None],
    *, spent: Mapping[str, Spent] | None = None, own: Own = WHOLE,
) -> dict[str, pa.Table]:  # fmt: skip
    """Return the result of each planned rule by name, in no particular order.

    Parameters
    ----------
    resources
        What the run may use. Its `spent` is not read, since each rule has bounds of its own.
    failed
        Is told of each rule that fails, and raises the errors that end the run.
    spent
        What each rule has used of its bounds in runs over other parts of the events, by its name.
    own
        The events at which matches that are reported start.
    """
    used, profile = threads_of(resources.threads), resources.profile
    if profile is not None and given.events.groups is not None:
        profile.add_groups(given.events.groups.read, given.events.groups.all)
    at_once = 1 if _may_use_device(given.planned) else used
    # pairs of a rule and a row have no marks of own rows
    found = _run_families(sharing, resources, used, at_once, in_parts=spent is not None) if own == WHOLE else {}
    left = [group for each in sharing.groups for group in _without(each, found)]
    large = [group for group in left if group.rows >= _MANY_ROWS]
    small = [group for group in left if group.rows < _MANY_ROWS]

    def run(group: RuleGroup, threads: int, beside: int) -> list[tuple[str, pa.Table | CepError]]:
        events, starts = _events_of(group, sharing, own, threads)
        return [(each.name, answer_rule(each, events, starts, threads, beside)) for each in group.rules]

    def answer_rule(rule: PlannedRule, events: InputEvents, starts: Own, threads: int, beside: int) -> pa.Table | CepError:
        try:
            with naming(rule.name):
                used_up = None if spent is None else spent[rule.name]
                return run_engine(rule.plan, events, Resources(threads, profile, beside * resources.concurrent, used_up), starts)
        except CepError as fault:
            failed(rule.name, fault)
            return fault

    units = small if len(small) > 2 * at_once else [part for group in small for part in _cut(group, at_once)]
    done = spread(lambda group: run(group, 1 if at_once > 1 else used, at_once), units, at_once)
    done += [run(group, used, 1) for group in large]
    return found | {name: table for part in done for name, table in part if not isinstance(table, CepError)}


def _run_families(sharing: Sharing, resources: Resources, threads: int, at_once: int, *, in_parts: bool) -> dict[str, pa.Table]:
    """Return the results of rules that run as one query, by name; rules of a part of it that fails are to run by themselves.

    `in_parts`: the events are a part of those whose matches count against the bounds of a rule.
    """
    found: dict[str, pa.Table] = {}
    if sharing.columns is None:
        return found
    events = InputEvents(sharing.events.table, sharing.events.origin, shared=sharing.columns)
    wanted = [each for each in sharing.families if not in_parts or each.family.plan.settings.max_matches is None]
    for family, lists in lists_of_families(wanted, sharing.columns, sharing.lists, threads, resources.profile):
        # what all read is at fault, and each rule says so by itself
        with suppress(CepError):
            found |= run_family(family, events, lists, replace(resources, threads=threads), at_once) or {}
    return found


def _without(group: RuleGroup, found: Mapping[str, object]) -> Iterator[RuleGroup]:
    """Yield the group without rules whose results are found, unless there is none left."""
    left = tuple(each for each in group.rules if each.name not in found)
    if left:
        yield replace(group, rules=left)


def _events_of(group: RuleGroup, sharing: Sharing, own: Own, threads: int) -> tuple[InputEvents, Own]:
    """Return the events of a group of rules, whose text so many threads encode, and which of them are own."""
    events = sharing.events
    if group.column is None or sharing.columns is None:
        return InputEvents(events.table, events.origin, shared=sharing.columns), own
    rows = sharing.lists[group.column].of(group.groups)
    picked = PickedRows(sharing.columns, rows)
    origin = Origin(events.origin.schema, events.origin.numbers_of(rows.astype("int64")))
    query = group.rules[0].plan.query
    shared = EventColumns(picked, query, (), origin.numbers, origin.schema, threads=threads) if len(group.rules) > 1 else None
    return InputEvents(picked, origin, shared=shared), OwnRows(own.marks[rows]) if isinstance(own, OwnRows) else own


def _cut(group: RuleGroup, parts: int) -> Iterator[RuleGroup]:
    """Yield a group in at most `parts` parts of nearly as many rules."""
    step = -(-len(group.rules) // parts)
    yield from (replace(group, rules=group.rules[begin : begin + step]) for begin in range(0, len(group.rules), step))


def _may_use_device(planned: Iterable[PlannedRule]) -> bool:
    """Return whether a rule may run on a device, which serves one at a time."""
    return not all(each.plan.settings.engine == "cpu" for each in planned) and has_device()


def absent_warnings(given: PlannedRules, sharing: Sharing, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what rules without a match ask for and no event has, a sentence for each rule."""
    read: dict[tuple[str, ...], pa.Table] = {}
    read_all = given.events.read_all

    def read_once(columns: Sequence[str]) -> pa.Table:
        assert read_all is not None, "it is in the place of a function"
        names = tuple(columns)
        if names not in read:
            read[names] = read_all(names)
        return read[names]

    events = given.events if read_all is None else replace(given.events, read_all=read_once)
    known: dict[str, Texts] = {}
    for each in _may_miss(given.planned, sharing, found):
        sentences = absent_texts(each.plan, events, known)
        if sentences:
            yield f"pattern {each.name!r}: {'; '.join(sentences)}"


def _may_miss(planned: Iterable[PlannedRule], sharing: Sharing, found: Mapping[str, Any]) -> Iterator[PlannedRule]:
    """Yield the rules without a match, but for those all whose texts were found when they were looked up."""
    without = [each for each in planned if each.name in found and not has_matches(each.plan, found[each.name])]
    present = {column: lists.found() for column, lists in sharing.lists.items()} if without else {}
    for each in without:
        asked = ((present.get(each.plan.query.column_name(column), ()), texts) for column, texts in asked_texts(each.plan.query))
        if not all(any(text in own for text in texts) for own, texts in asked):
            yield each
