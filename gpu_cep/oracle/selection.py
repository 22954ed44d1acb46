"""Match by the event selection strategies: walk a stream event by event with ext(g, e).

The definitions are those of docs/strategies.md and thesis Defs. 6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.oracle.conditions import Condition
from gpu_cep.oracle.patterns import Branch
from gpu_cep.oracle.problems import Problem, Substitution, bind, events_of
from gpu_cep.oracle.streams import sort_key
from gpu_cep.oracle.substitutions import all_matches, is_ended, is_filled, is_in_window, is_match, is_over


def extensions(problem: Problem, partial: Substitution, position: int) -> list[str]:
    """Return ext(g, e): the variables that may bind the event at `position`, which follows all events of `partial`."""
    return [name for name in problem.branch.variables if _may_bind(problem, partial, name, position)]


def _may_bind(problem: Problem, partial: Substitution, name: str, position: int) -> bool:
    branch = problem.branch
    predecessors = branch.predecessors[name]
    extended = bind(partial, name, position)
    return (
        all(is_filled(branch.variables[other], partial.get(other, ())) for other in predecessors)
        and all(problem.is_before(event, position) for other in predecessors for event in partial.get(other, ()))
        and not is_closed(branch, partial, name)
        and not is_over(branch.variables[name], extended[name])
        and is_in_window(problem, extended)
        and not is_ended(problem, extended)
        and all(problem.holds(condition, extended) for condition in decided(branch, extended))
    )


def is_closed(branch: Branch, partial: Substitution, name: str) -> bool:
    """Return whether a ≺-successor of the variable is bound, so that it can bind no further event."""
    return any(second in partial for second in branch.successors[name])


def decided(branch: Branch, partial: Substitution) -> list[Condition]:
    """Return the conditions that can be checked on `partial`, with the equality closure.

    Their variables are bound, and those that they read as a whole are closed.
    """
    return [
        condition
        for condition in (*branch.conditions, *branch.closure)
        if all(name in partial for name in condition.variables) and all(is_closed(branch, partial, name) for name in condition.closing)
    ]


Find = Callable[[Problem, int], Iterator[Substitution]]
Rule = Callable[[Problem, Substitution], tuple[list[Substitution], bool]]


def _explore(problem: Problem, rule: Rule, limit: int) -> Iterator[Substitution]:
    """Yield the matches among the partial matches that `rule` reaches, where `rule` lets them end."""
    for partial, _, may_end in _reached(problem, rule, limit):
        if may_end and is_match(problem, partial):
            yield partial


def ends_of_runs(problem: Problem, rule: Rule, limit: int) -> Iterator[Substitution]:
    """Yield each partial match that `rule` reaches and that it does not extend, complete or not."""
    for partial, is_extended, _ in _reached(problem, rule, limit):
        if not is_extended:
            yield partial


def _reached(problem: Problem, rule: Rule, limit: int) -> Iterator[tuple[Substitution, bool, bool]]:
    """Yield each partial match that `rule` reaches, whether it is extended, and whether it may end."""
    waiting, steps = _starts(problem), _Steps(problem, limit)
    while waiting:
        steps.take()
        partial = waiting.pop()
        extended, may_end = rule(problem, partial)
        waiting += extended
        yield partial, bool(extended), may_end


def _starts(problem: Problem) -> list[Substitution]:
    """Return the partial matches of one event."""
    return [bind({}, name, position) for position in problem.positions for name in extensions(problem, {}, position)]


class _Steps:
    """A counter of the partial matches that are tried; more than `limit` are an UnsupportedError."""

    def __init__(self, problem: Problem, limit: int) -> None:
        self._events = len(problem.positions)
        self._limit = limit
        self._taken = 0

    def take(self) -> None:
        """Count a partial match; raise UnsupportedError if there are too many."""
        self._taken += 1
        if self._taken > self._limit:
            raise UnsupportedError(f"brute force tries {self._limit} partial matches per stream; one of {self._events} events has more")


def _later(problem: Problem, partial: Substitution) -> list[int]:
    """Return the positions behind the last event of `partial` that are in its window."""
    events = events_of(partial)
    return [position for position in problem.window(events[0]) if position > events[-1]]


def skip_till_next_match(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return the matches of skip_till_next_match (thesis Def. 6.1).

    A partial match must bind the first event that extends it, and ends when there is none.
    """
    return _explore(problem, _greedy, limit)


def skip_till_any_match(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return the matches of skip_till_any_match, which are Γ: any event may be bound or skipped."""
    return _explore(problem, _free, limit)


def _greedy(problem: Problem, partial: Substitution) -> tuple[list[Substitution], bool]:
    """Return the extensions of `partial` by the first event that some variable may bind.

    There is one for each such variable. `partial` may end if there is no such event.
    """
    for position in _later(problem, partial):
        if extended := _extend(problem, partial, position):
            return extended, False
    return [], True


def _free(problem: Problem, partial: Substitution) -> tuple[list[Substitution], bool]:
    """Return all extensions of `partial` by one event; it may also end."""
    return [extended for position in _later(problem, partial) for extended in _extend(problem, partial, position)], True


def _extend(problem: Problem, partial: Substitution, position: int) -> list[Substitution]:
    return [bind(partial, name, position) for name in extensions(problem, partial, position)]


def strict_contiguity(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return the matches of strict_contiguity: a partial match binds the next event of the stream, or ends."""
    return _explore(problem, _contiguous(()), limit)


def partition_contiguity(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return the matches of partition_contiguity: a partial match binds the partition's next event, or ends."""
    return _explore(problem, _contiguous(problem.branch.keys), limit)


def _contiguous(keys: Sequence[str]) -> Rule:
    """Return the rule of contiguity in a partition, which is the events that agree on `keys`.

    NULL agrees with NULL there, and NaN with NaN.
    """

    def rule(problem: Problem, partial: Substitution) -> tuple[list[Substitution], bool]:
        rows = problem.stream.rows
        key = sort_key(rows[events_of(partial)[-1]], keys)
        partition = (position for position in _later(problem, partial) if sort_key(rows[position], keys) == key)
        following = next(partition, None)
        extended = [] if following is None else _extend(problem, partial, following)
        return extended, not extended

    return rule


def robust_skip_till_next_match(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return the matches of robust_skip_till_next_match (thesis Alg. 4).

    A partial match binds the first event that leads to a match; events that lead to none are skipped.
    """
    steps = _Steps(problem, limit)
    return (match for start in _starts(problem) for match in _led_to(problem, start, steps))


def _led_to(problem: Problem, partial: Substitution, steps: _Steps) -> list[Substitution]:
    """Return the matches that `partial` leads to.

    If no extension leads to a match, that is `partial` itself if it is a match.
    """
    steps.take()
    for position in _later(problem, partial):
        if found := [match for extended in _extend(problem, partial, position) for match in _led_to(problem, extended, steps)]:
            return found
    return [partial] if is_match(problem, partial) else []


def robust_by_definition(problem: Problem, limit: int) -> Iterator[Substitution]:
    """Return the matches in Γ that satisfy the definition of robust skip-till-next-match (thesis Def. 6.2).

    Of matches that extend each other, only maximal ones are returned.
    """
    walks = {_walk(match): match for match in all_matches(problem, limit)}
    return (match for walk, match in walks.items() if not _is_passed_over(walk, walks))


def _by_gap(find: Find, own: str) -> Find:
    """Return the matches of `find`, the strategy `own`, or where FIRST or ANY stands in the pattern, those of each gap's strategy."""

    def matches(problem: Problem, limit: int) -> Iterator[Substitution]:
        chosen = problem.branch.chosen
        if chosen is None:
            return find(problem, limit)
        first = [name for name in problem.branch.variables if chosen.get(name, own) == "skip_till_next_match"]
        return (match for match in all_matches(problem, limit) if all(_is_first(problem, match, name) for name in first))

    return matches


def _is_first(problem: Problem, match: Substitution, name: str) -> bool:
    """Return whether variable `name` binds the first event that it may bind behind its predecessors."""
    before = {first: match[first] for first in problem.branch.predecessors[name]}
    (bound,) = match[name]
    earlier = [position for position in problem.positions if problem.is_before(position, bound)]
    return not before or not any(_may_bind(problem, before, name, position) for position in earlier)


def _in_no_gap(find: Find) -> Find:
    """Return `find`, which is refused where FIRST or ANY stands in the pattern."""

    def matches(problem: Problem, limit: int) -> Iterator[Substitution]:
        if problem.branch.chosen is not None:
            raise PatternError("FIRST and ANY choose between skip_till_next_match and skip_till_any_match")
        return find(problem, limit)

    return matches


Walk = tuple[tuple[int, str], ...]


def _walk(match: Substitution) -> Walk:
    """Return the events of a match in stream order, each with its variable."""
    return tuple(sorted((position, name) for name, bound in match.items() for position in bound))


def _is_passed_over(walk: Walk, walks: Iterable[Walk]) -> bool:
    """Return whether another match rules this one out (Condition 6.2).

    It extends this one, or extends a prefix of it by an earlier event.
    """
    return any(_goes_on_earlier(walk, other, length) for other in walks for length in range(1, min(len(walk) + 1, len(other))))


def _goes_on_earlier(walk: Walk, other: Walk, length: int) -> bool:
    ends = length == len(walk)
    return walk[:length] == other[:length] and (ends or other[length][0] < walk[length][0])


STRATEGIES: Mapping[str, Find] = {
    "strict_contiguity": _in_no_gap(strict_contiguity),
    "partition_contiguity": _in_no_gap(partition_contiguity),
    "skip_till_next_match": _by_gap(skip_till_next_match, "skip_till_next_match"),
    "skip_till_any_match": _by_gap(all_matches, "skip_till_any_match"),
    "robust_skip_till_next_match": _in_no_gap(robust_skip_till_next_match),
}

# The strategies under which a run goes on by a rule of its own, whatever becomes of it in the end.
RULES: Mapping[str, Callable[[Problem], Rule]] = {
    "strict_contiguity": lambda problem: _contiguous(()),
    "partition_contiguity": lambda problem: _contiguous(problem.branch.keys),
    "skip_till_next_match": lambda problem: _greedy,
}
