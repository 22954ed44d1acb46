"""Find timeouts by trying everything: for each start without a match, the longest prefix that the strategy would have bound.

The definitions are those of docs/streams.md, Timeouts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpu_cep.lang import ast
from gpu_cep.oracle.events import Bindings, Match, first_event, last_event, problems_of
from gpu_cep.oracle.options import EventOptions, known
from gpu_cep.oracle.problems import Problem, Substitution
from gpu_cep.oracle.selection import RULES, ends_of_runs
from gpu_cep.oracle.substitutions import is_match


@dataclass(frozen=True, slots=True)
class Timeout:
    """A start without a match.

    `prefix`: variable → row numbers of the input, as in a match.
    `missing`: the variables of its branch that bind fewer events than they must, in the order of the pattern.
    """

    prefix: Match
    missing: tuple[str, ...]


def timeouts(query: ast.Query, events: pa.Table, options: EventOptions | None = None, *, limit: int = 200_000) -> list[Timeout]:
    """Return the timeouts of `query` in `events`, in the order of results (docs/semantics.md).

    A start is an event that may begin a run of some branch. Of the runs that begin there, the one
    that binds the most events is returned. Of several, it is the one that lacks the fewest
    variables, and of those the first in the order of results; of several branches that bind the
    same events, the one that lacks the earliest variables.

    Parameters
    ----------
    query, events, options, limit
        As for :func:`gpu_cep.oracle.events.matches`; what bears on the choice among matches is not read.
    """
    name, pattern, parts = problems_of(query, events, options or EventOptions())
    rule_of = known("strategy", name, RULES)
    found = []
    for stream, problems in parts:
        runs = [_Run.of(pattern.variables, problem, end) for problem in problems for end in ends_of_runs(problem, rule_of(problem), limit)]
        matched = {run.first for run in runs if run.is_match}
        longest: dict[int, _Run] = {}
        for run in sorted(runs, key=_Run.rank):
            longest.setdefault(run.first, run)
        found += [run.timeout(pattern.variables, stream.numbers) for first, run in sorted(longest.items()) if first not in matched]
    return found


@dataclass(frozen=True, slots=True)
class _Run:
    """Where a run ended: the events that each variable of the pattern binds, and the variables that are missing, by number."""

    bindings: Bindings
    missing: tuple[int, ...]
    is_match: bool

    @classmethod
    def of(cls, variables: tuple[str, ...], problem: Problem, end: Substitution) -> _Run:
        """Return the run that ends with the substitution `end`."""
        least = problem.branch.variables
        missing = (v for v, name in enumerate(variables) if name in least and len(end.get(name, ())) < least[name].minimum)
        return cls(tuple(end.get(name, ()) for name in variables), tuple(missing), is_match(problem, end))

    @property
    def first(self) -> int:
        """Return the position of the first event."""
        return first_event(self.bindings)

    def rank(self) -> tuple[Any, ...]:
        """Return a sort key: the longest run first."""
        return -sum(map(len, self.bindings)), len(self.missing), last_event(self.bindings), self.bindings, self.missing

    def timeout(self, variables: tuple[str, ...], numbers: tuple[int, ...]) -> Timeout:
        """Return the run as a timeout; ``numbers[position]`` is an event's number in the input."""
        prefix = {name: tuple(numbers[position] for position in bound) for name, bound in zip(variables, self.bindings, strict=True)}
        return Timeout(prefix, tuple(variables[v] for v in self.missing))
