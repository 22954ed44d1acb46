"""The two strategies over labels, straight from SPEC section 3; shares nothing with the kernels."""

from __future__ import annotations


def matches(pattern, stream, passes_over):
    """All matches as lists of bindings, by first event, last event and bindings."""
    strategy = any_match if passes_over else next_match
    found = {
        tuple(map(tuple, match))
        for start in range(len(stream.labels))
        for v in range(len(pattern.level))
        if stream.labels[start] >> v & 1 and not pattern.before(v)
        for match in strategy(pattern, stream, stream.window(start), bound([[] for _ in pattern.level], v, start))
    }
    return sorted(found, key=lambda match: (min(sum(match, ())), max(sum(match, ())), match))


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


def next_match(pattern, stream, window, bindings):
    """The first event that extends must be taken; what nothing extends is a match if it is complete."""
    for event in later(window, bindings):
        variables = extensions(pattern, stream, bindings, event)
        if variables:
            for v in variables:
                yield from next_match(pattern, stream, window, bound(bindings, v, event))
            return
    if is_complete(pattern, bindings):
        yield bindings


def any_match(pattern, stream, window, bindings):
    """Any event may be taken or passed over."""
    if is_complete(pattern, bindings):
        yield bindings
    for event in later(window, bindings):
        for v in extensions(pattern, stream, bindings, event):
            yield from any_match(pattern, stream, window, bound(bindings, v, event))


def later(window, bindings):
    last = max(event for binding in bindings for event in binding)
    return [event for event in window if event > last]
