"""Random PATTERN clauses for hypothesis.

Which operators they use is said by the names in `operators`: SEQ, AND, OR, NOT,
``?`` and ``*`` for variables that may be absent, and ``shared`` for variables
that stand in several alternatives of an OR or several elements of an AND.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

ALPHABETS = (("A", "B"), ("A",), ("A",), ("A", "B", "C"))
QUANTIFIERS = (*[""] * 6, *["+"] * 4, "{2}", "{1,2}", "{2,}", "{2,3}", "{1,}")
OPTIONAL = {"?": ("?", "?", "?", "{0,1}"), "*": ("*", "*", "*", "{0,2}")}
SIZES = (2, 1, 2, 2, 3, 3, 4, 5)
OPERATORS = ("SEQ", "AND")
ALL_OPERATORS = (*OPERATORS, "OR", "NOT", "?", "*", "shared")


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    event_type: str | None
    quantifier: str
    negated: bool = False

    @property
    def text(self) -> str:
        primitive = f"{self.event_type or ''} {self.name}{self.quantifier}".strip()
        return f"NOT({primitive})" if self.negated else primitive

    @property
    def is_repeated(self) -> bool:
        return self.quantifier not in ("", "?", "{0,1}")


@st.composite
def variables(
    draw: st.DrawFn,
    alphabet: tuple[str, ...] = ALPHABETS[0],
    max_variables: int = 5,
    quantifiers: tuple[str, ...] = QUANTIFIERS,
    operators: tuple[str, ...] = OPERATORS,
) -> list[Variable]:
    """One to `max_variables` variables, most of them typed, and at least one of them not negated."""
    size = min(draw(st.sampled_from(SIZES)), max_variables)
    types = st.sampled_from((*alphabet, *alphabet, None))
    quantified = st.sampled_from((*quantifiers, *(each for name in operators for each in OPTIONAL.get(name, ()))))
    negated = draw(st.sets(st.integers(0, size - 1), max_size=min(size - 1, 2))) if "NOT" in operators else set()
    return [
        Variable(name, draw(types), "" if place in negated else draw(quantified), place in negated)
        for place, name in enumerate("abcde"[:size])
    ]


@st.composite
def patterns(draw: st.DrawFn, declared: list[Variable], operators: tuple[str, ...] = OPERATORS) -> str:
    """SEQ, AND and OR of the variables, nested anyhow."""
    if len(declared) == 1:
        return declared[0].text
    composite = draw(st.sampled_from([name for name in operators if name in ("SEQ", "AND", "OR")]))
    cuts = sorted(draw(st.sets(st.integers(1, len(declared) - 1), min_size=1)))
    parts = [declared[start:end] for start, end in zip([0, *cuts], [*cuts, len(declared)], strict=True)]
    if "shared" in operators and composite != "SEQ" and draw(st.booleans()):
        parts = draw(_sharing(parts))
    elements = [draw(patterns(part, operators)) for part in parts]
    return f"{composite}({', '.join(elements)})"


@st.composite
def _sharing(draw: st.DrawFn, parts: list[list[Variable]]) -> list[list[Variable]]:
    """`parts` with one variable of one of them in another as well: one alone, so that they order nothing before itself."""
    giver, taker = draw(st.permutations(range(len(parts))))[:2]
    place = draw(st.integers(0, len(parts[taker])))
    shared = draw(st.sampled_from(parts[giver]))
    taken = [*parts[taker][:place], shared, *parts[taker][place:]]
    return [taken if number == taker else part for number, part in enumerate(parts)]
