"""The strategies and negation over labels, straight from their definitions; shares nothing with the kernels."""

from __future__ import annotations

from functools import partial

from gpu_cep_kernels.rules.tables import Strategy


def matches(pattern, stream, strategy, negations=()):
    """All matches as lists of bindings, by first event, last event and bindings."""
    allowed = partial(is_allowed, pattern, stream, negations)
    filtered = partial(_STRATEGIES[strategy], allowed=allowed if strategy == Strategy.ROBUST else lambda bindings: True)
    found = {
        tuple(map(tuple, match))
        for start in range(len(stream.labels))
        for v in range(len(pattern.level))
        if stream.labels[start] >> v & 1 and not pattern.before(v)
        for match in filtered(pattern, stream, stream.window(start), bound([[] for _ in pattern.level], v, start))
        if allowed(match)
    }
    return sorted(found, key=lambda match: (min(sum(match, ())), max(sum(match, ())), match))


def longest_runs(pattern, stream, strategy, negations=()):
    """The longest run of each start without a match, as bindings, by start.

    Of several it is the one with the fewest variables below their minimum, then the first by last event and bindings.
    """
    matched = {min(sum(match, ())) for match in matches(pattern, stream, strategy, negations)}
    found = {}
    for start, label in enumerate(stream.labels):
        begun = [v for v in range(len(pattern.level)) if label >> v & 1 and not pattern.before(v)]
        ends = [end for v in begun for end in runs(pattern, stream, strategy, bound([[] for _ in pattern.level], v, start))]
        if ends and start not in matched:
            found[start] = min((tuple(map(tuple, end)) for end in ends), key=lambda end: rank_of_run(pattern, end))
    return [found[start] for start in sorted(found)]


def rank_of_run(pattern, bindings):
    lacking = sum(len(binding) < minimum for binding, (minimum, _) in zip(bindings, pattern.quantifiers, strict=True))
    return -len(sum(bindings, ())), lacking, max(sum(bindings, ())), bindings


def runs(pattern, stream, strategy, bindings):
    """What each run has bound when no event extends it any more."""
    behind = later(stream.window(_start(bindings)), bindings)
    if strategy == Strategy.CONTIGUOUS:
        behind = [event for event in behind if stream.part(event) == stream.part(_start(bindings))][:1]
    for event in behind:
        variables = extensions(pattern, stream, bindings, event)
        if variables:
            for v in variables:
                yield from runs(pattern, stream, strategy, bound(bindings, v, event))
            return
    yield bindings


def _start(bindings):
    return min(event for binding in bindings for event in binding)


def bound(bindings, v, event):
    return [[*binding, event] if u == v else binding for u, binding in enumerate(bindings)]


def extensions(pattern, stream, bindings, event):
    """ext(g, e): the variables that may bind the event."""
    return [v for v in range(len(bindings)) if stream.labels[event] >> v & 1 and may_bind(pattern, stream, bindings, v, event)]


def may_bind(pattern, stream, bindings, v, event):
    maximum = pattern.quantifiers[v][1]
    return (
        all(len(bindings[u]) >= pattern.quantifiers[u][0] for u in pattern.before(v))
        and all(stream.is_before(e, event) for u in pattern.before(v) for e in bindings[u])
        and not any(bindings[w] for w in range(len(bindings)) if v in pattern.before(w))
        and (maximum is None or len(bindings[v]) < maximum)
    )


def is_complete(pattern, bindings):
    return all(len(binding) >= minimum for binding, (minimum, _) in zip(bindings, pattern.quantifiers, strict=True))


def is_allowed(pattern, stream, negations, bindings):
    """Whether no event outside the match stands in the scope of a negation."""
    taken = sorted(event for binding in bindings for event in binding)
    return not any(
        in_scope(stream, negation, bindings, taken[0], taken[-1], event)
        for negation in negations
        for event in negation.places
        if event not in taken
    )


def in_scope(stream, negation, bindings, first, last, event):
    times, length = stream.times, stream.length
    after = all(stream.is_before(e, event) for v in negation.after for e in bindings[v])
    before = all(stream.is_before(event, e) for v in negation.before for e in bindings[v])
    return (
        after
        and before
        and (bool(negation.after) or times[last] - times[event] <= length)
        and (bool(negation.before) or times[event] - times[first] <= length)
    )


def next_match(pattern, stream, window, bindings, allowed):
    """The first event that extends must be taken; what nothing extends is a match if it is complete."""
    for event in later(window, bindings):
        variables = extensions(pattern, stream, bindings, event)
        if variables:
            for v in variables:
                yield from next_match(pattern, stream, window, bound(bindings, v, event), allowed)
            return
    if is_complete(pattern, bindings):
        yield bindings


def any_match(pattern, stream, window, bindings, allowed):
    """Any event may be taken or passed over."""
    if is_complete(pattern, bindings):
        yield bindings
    for event in later(window, bindings):
        for v in extensions(pattern, stream, bindings, event):
            yield from any_match(pattern, stream, window, bound(bindings, v, event), allowed)


def contiguous_match(pattern, stream, window, bindings, allowed):
    """The very next event of the part must be taken; where it cannot, what is complete is a match."""
    behind = [event for event in later(window, bindings) if stream.part(event) == stream.part(window[0])]
    variables = extensions(pattern, stream, bindings, behind[0]) if behind else []
    for v in variables:
        yield from contiguous_match(pattern, stream, window, bound(bindings, v, behind[0]), allowed)
    if not variables and is_complete(pattern, bindings):
        yield bindings


def robust_match(pattern, stream, window, bindings, allowed):
    """The first event that leads to a match must be taken, for every variable by which it does."""
    for event in later(window, bindings):
        found = [
            match
            for v in extensions(pattern, stream, bindings, event)
            for match in robust_match(pattern, stream, window, bound(bindings, v, event), allowed)
        ]
        if found:
            yield from found
            return
    if is_complete(pattern, bindings) and allowed(bindings):
        yield bindings


_STRATEGIES = {Strategy.NEXT: next_match, Strategy.ANY: any_match, Strategy.CONTIGUOUS: contiguous_match, Strategy.ROBUST: robust_match}


def later(window, bindings):
    last = max(event for binding in bindings for event in binding)
    return [event for event in window if event > last]
