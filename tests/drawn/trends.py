"""Random queries in which an event that is taken early is often refuted late.

Random patterns with random conditions seldom tell the strategies apart: for
that, events must have distinct types, and conditions relate what is bound late
to what is bound early. Here all conditions are on ``x``.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

COMPARISONS = ("<", "<", "<=", ">", ">=", "=", "<>")
WHOLE = ("sum({}.x)", "avg({}.x)", "min({}.x)", "max({}.x)", "last({}.x)", "{0}[{0}.LEN].x", "count({})", "count({}.x)")
TYPES = ("A", "B", "C")


@dataclass(frozen=True, slots=True)
class Shape:
    """A pattern with its variables: a letter each."""

    pattern: str
    repeated: str = ""
    single: str = ""
    negated: str = ""


SHAPES = (
    Shape("SEQ(A a+, B b)", repeated="a", single="b"),
    Shape("SEQ(A a+, B b+)", repeated="ab"),
    Shape("SEQ(A a{1,2}, B b, C c)", repeated="a", single="bc"),
    Shape("SEQ(A a+, AND(B b, C c))", repeated="a", single="bc"),
    Shape("SEQ(AND(A a+, B b), C c)", repeated="a", single="bc"),
    Shape("AND(SEQ(A a+, B b), SEQ(C c, B b))", repeated="a", single="bc"),
    Shape("SEQ(A a, OR(B b+, C c+), A d)", repeated="bc", single="ad"),
    Shape("SEQ(A a, B b*, C c)", repeated="b", single="ac"),
    Shape("SEQ(A a, B b, A c)", single="abc"),
    Shape("SEQ(A a, B b, A c, B d)", single="abcd"),
    Shape("SEQ(A a, B b?, C c)", single="abc"),
    Shape("SEQ(A a, B b, NOT(C c), A d)", single="abd", negated="c"),
    Shape("SEQ(A a, B b+, NOT(C c), A d)", repeated="b", single="ad", negated="c"),
    Shape("SEQ(A a, NOT(C c), B b+, A d)", repeated="b", single="ad", negated="c"),
)


@st.composite
def trends(draw: st.DrawFn, windows: tuple[str, ...] = ("{n}",)) -> str:
    """The text of a query over events of types :data:`TYPES`."""
    shape = draw(st.sampled_from(SHAPES))
    kinds = [_comparisons, _comparisons, *([_whole_bindings] * 4 + [_steps] if shape.repeated else [])]
    conditions = [draw(draw(st.sampled_from(kinds))(shape)) for _ in range(draw(st.sampled_from((1, 1, 1, 2))))]
    within = draw(st.sampled_from((None, None, None, *windows, "{n} EVENTS")))
    clauses = [f"PATTERN {shape.pattern}", "WHERE " + " AND ".join(conditions)]
    return "\n".join([*clauses, *([] if within is None else ["WITHIN " + within.format(n=9)])])


@st.composite
def _comparisons(draw: st.DrawFn, shape: Shape) -> str:
    """Events of two variables."""
    one, other = sorted(draw(st.permutations(shape.repeated + shape.single + shape.negated))[:2])
    return f"{one}.x {draw(st.sampled_from(COMPARISONS))} {other}.x"


@st.composite
def _whole_bindings(draw: st.DrawFn, shape: Shape) -> str:
    """A whole binding with events of another variable or a constant."""
    variable = draw(st.sampled_from(shape.repeated))
    others = [f"{name}.x" for name in shape.repeated + shape.single + shape.negated if name != variable]
    whole = draw(st.sampled_from(WHOLE)).format(variable)
    return f"{whole} {draw(st.sampled_from(COMPARISONS))} {draw(st.sampled_from((*others, *others, '2', '3')))}"


@st.composite
def _steps(draw: st.DrawFn, shape: Shape) -> str:
    """Consecutive events of a binding, or each with those before."""
    variable = draw(st.sampled_from(shape.repeated))
    before = draw(st.sampled_from((f"prev({variable}.x)", f"{variable}[i-1].x", f"avg({variable}[..i-1].x)", f"sum({variable}[..i-1].x)")))
    return f"{before} {draw(st.sampled_from(COMPARISONS))} {variable}[i].x"
