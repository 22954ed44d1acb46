"""Random queries over contiguous sequences, with conditions between neighbouring events."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.drawn.queries import AFTER_MATCH, Case
from tests.drawn.tables import CLOCKS, scattered_table
from tests.drawn.trends import COMPARISONS

QUANTIFIERS = ("", "", "+", "+", "{2}", "{1,2}", "{2,}", "?", "*")
TYPES = ("", "", "A ", "B ")
# What both sides of a comparison read: numbers with NULL, NaN and zeros of both signs, text, decimals, and what takes a program.
SIDES = ("{}.x", "{}.x", "{}.x", "{}.y", "{}.s", "{}.m", "{}.x + 0.5", "abs({}.x) * 2")
STRATEGIES = ("partition_contiguity", "strict_contiguity")


@st.composite
def neighbour_cases(draw: st.DrawFn, max_size: int = 14, after_match: tuple[str, ...] = AFTER_MATCH) -> Case:
    """A sequence under a contiguity, a table, and keywords that go together."""
    names = "abcd"[: draw(st.integers(1, 4))]
    quantifiers = {name: draw(st.sampled_from(QUANTIFIERS)) for name in names}
    if all(quantifier in ("?", "*") for quantifier in quantifiers.values()):
        quantifiers[names[0]] = "+"
    sequence = ", ".join(f"{draw(st.sampled_from(TYPES))}{name}{quantifiers[name]}" for name in names)
    conditions = [draw(_conditions(names, quantifiers)) for _ in range(draw(st.sampled_from((0, 1, 1, 2, 2, 3))))]
    conditions += draw(st.sampled_from(((), (), (), ("[k]",), ("[s]",))))
    clock = draw(st.sampled_from((CLOCKS[0], CLOCKS[0], *CLOCKS)))
    within = draw(st.sampled_from((None, *clock.windows, "{n} EVENTS")))
    clauses = [f"PATTERN SEQ({sequence})"]
    clauses += ["WHERE " + " AND ".join(conditions)] if conditions else []
    clauses += [] if within is None else ["WITHIN " + within.format(n=draw(st.sampled_from((3, 5, 9))))]
    options = {
        "strategy": draw(st.sampled_from(STRATEGIES)),
        "ties": draw(st.sampled_from(("strict", "position"))),
        "partition_by": draw(st.sampled_from((None, ["k"]))),
        "time_unit": clock.time_unit,
        "after_match": draw(st.sampled_from(after_match)),
    }
    seed, tied = draw(st.integers(0, 2**32 - 1)), draw(st.booleans())
    events = scattered_table(seed, clock, ("A", "B", "B"), draw(st.sampled_from((max_size, max_size, 3))), tied)
    return Case("\n".join(clauses), events, {name: value for name, value in options.items() if value is not None})


@st.composite
def _conditions(draw: st.DrawFn, names: str, quantifiers: dict[str, str]) -> str:
    """A condition on an event and one near it, seldom far from it; where there is none, on one event."""
    side, comparison = draw(st.sampled_from(SIDES)), draw(st.sampled_from(COMPARISONS))
    place = draw(st.integers(0, len(names) - 1))
    later = names[place]
    if draw(st.booleans()) and quantifiers[later] not in ("", "?"):
        return f"{side.format(f'{later}[i]')} {comparison} {side.format(f'{later}[i-1]')}"
    if place == 0:
        return f"{later}.x >= 1"
    earlier = names[draw(st.sampled_from((place - 1, place - 1, max(place - 2, 0))))]
    return f"{side.format(_first(later, quantifiers))} {comparison} {side.format(_last(earlier, quantifiers))}"


def _first(name: str, quantifiers: dict[str, str]) -> str:
    return name if quantifiers[name] in ("", "?") else f"{name}[1]"


def _last(name: str, quantifiers: dict[str, str]) -> str:
    return name if quantifiers[name] in ("", "?") else f"{name}[{name}.LEN]"
