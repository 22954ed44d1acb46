"""Say in words what the rules of a set share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_cep.errors import CepError
from gpu_cep.rule_sets.plans import PlannedRules
from gpu_cep.rule_sets.rules import Rule

# The most groups, and the most patterns of a group, that are listed.
_LISTED, _NAMED = 10, 5


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Patterns that run over the same rows: those with some of the values that `column` has; all rows if it is None."""

    patterns: tuple[str, ...]
    rows: int
    column: str | None


@dataclass(frozen=True, slots=True)
class RuleSetExplanation:
    """What the patterns of a set share; ``str()`` says it in words.

    `events`: the number of events that are read. `columns`: those of their columns that some pattern reads.
    `looked_up`: how many constants are looked up together in a column, by its name.
    `groups`: the patterns by the rows that they run over, those of few rows first.
    `as_one`: the patterns that run as one query, since they differ in constants only.
    `alone`: why a pattern runs by a call of its own, by name. `failed`: the errors of patterns, by name.
    """

    patterns: int
    events: int
    columns: tuple[str, ...]
    looked_up: Mapping[str, int]
    groups: tuple[SharedRows, ...]
    as_one: tuple[tuple[str, ...], ...]
    alone: Mapping[str, str]
    failed: Mapping[str, CepError]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{_number(self.patterns, 'pattern')} over {_number(self.events, 'event')}"
        yield f"read once: {', '.join(self.columns) or 'nothing'}"
        for column, constants in self.looked_up.items():
            yield f"looked up together: {_number(constants, 'constant')} of {column}"
        for group in self.groups[:_LISTED]:
            which = "all" if group.column is None else f"by {group.column}"
            yield f"  {_number(group.rows, 'event')} ({which}): {_listed(group.patterns)}"
        if len(self.groups) > _LISTED:
            yield f"  … and {_number(len(self.groups) - _LISTED, 'group')} more"
        yield from (f"one query: {_listed(names)} (they differ in constants only)" for names in self.as_one[:_LISTED])
        if len(self.as_one) > _LISTED:
            yield f"  … and {len(self.as_one) - _LISTED:,} more such queries"
        yield from (f"alone: {name} ({reason})" for name, reason in self.alone.items())
        yield from (f"error: {fault}" for fault in self.failed.values())


def explain_rules(given: PlannedRules, rules: Mapping[str, Rule], threads: int | None) -> RuleSetExplanation:
    """Return what planned rules share."""
    from gpu_cep.plan.columns_read import columns_read
    from gpu_cep.rule_sets.runs import share_events
    from gpu_cep_kernels.compile.launch import threads_of

    sharing = share_events(given, threads_of(threads))
    groups = [SharedRows(tuple(each.name for each in group.rules), group.rows, group.column) for group in sharing.groups]
    groups.sort(key=lambda group: group.rows)
    read = {
        given.events.table.schema.names[column]: None
        for each in given.planned
        for column in columns_read(each.plan.query, each.plan.settings)
    }
    looked_up = {column: len(lists.of_value) for column, lists in sharing.lists.items()}
    as_one = tuple(tuple(each.name for each in family.rules) for family in sharing.families)
    return RuleSetExplanation(
        len(rules), int(given.events.table.num_rows), tuple(read), looked_up, tuple(groups), as_one, given.alone, given.failed
    )


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
