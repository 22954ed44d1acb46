"""Build event variables, and patterns of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn, overload

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast as tree
from gpu_cep.lang.builder.constants import name, whole
from gpu_cep.lang.builder.expressions import Expression, condition
from gpu_cep.lang.builder.queries import Buildable, Named
from gpu_cep.lang.builder.references import BoundEvent, Counter, EarlierEvents, place, public
from gpu_cep.lang.format import format_query


@dataclass(frozen=True, slots=True, repr=False)
class Pattern(Buildable):
    """A pattern, which is a whole query, too; `ast` is its syntax tree."""

    ast: tree.PatternNode

    def __repr__(self) -> str:
        return format_query(tree.Query(self.ast))

    def __bool__(self) -> bool:
        raise TypeError("a pattern is neither true nor false: write all_of(…) for and, any_of(…) for or, not_(…) for not")

    def __invert__(self) -> Pattern:
        """Return ``NOT(…)`` of the pattern; see :func:`not_`."""
        return not_(self)

    def times(self, minimum: int, maximum: int | None = None) -> Pattern:
        """Return ``SEQ(…){minimum}``, or ``SEQ(…){minimum,maximum}``: the group, so many times one after the other.

        >>> from gpu_cep.lang.builder import seq, var
        >>> seq(var("a"), seq(var("b"), var("c")).times(3), seq(var("d"), var("e")).times(1, 2))
        PATTERN SEQ(a, SEQ(b, c){3}, SEQ(d, e){1,2})
        """
        if not isinstance(self.ast, tree.Seq | tree.And | tree.Or):
            raise PatternError(f"only seq(…), all_of(…) and any_of(…) are repeated, not {_written(self)}")
        least = _bound(minimum)
        return Pattern(_repeat(self.ast, least, least if maximum is None else _bound(maximum), "repetition"))

    def optional(self) -> Pattern:
        """Return ``SEQ(…)?``: the group, or nothing."""
        return self.times(0, 1)

    def _query(self) -> tree.Query:
        return tree.Query(self.ast)


@dataclass(frozen=True, slots=True, repr=False)
class Variable(Pattern, Named):
    """An event variable: a pattern, and what conditions read attributes of.

    ``v.x`` is the attribute x; ``v["x"]`` is the attribute x as well, where x
    is no name of Python's or one of the methods below. A quantifier gives
    another variable of the same name, and either may stand in conditions.

    Examples
    --------
    >>> from gpu_cep.lang.builder import i, var
    >>> p = var("p", "P").plus()
    >>> p.where(p["plus"] == 1, p[i].V > p[i - 1].V, p[1].V < p[-1].V)
    PATTERN P p+
    WHERE p.plus = 1 AND p[i].V > p[i-1].V AND p[1].V < p[p.LEN].V
    """

    ast: tree.Variable | tree.Repeat

    def __getattr__(self, attribute: str) -> Expression:
        return self.attr(public(attribute))

    @overload
    def __getitem__(self, index: str) -> Expression: ...
    @overload
    def __getitem__(self, index: int | Counter) -> BoundEvent: ...
    @overload
    def __getitem__(self, index: slice) -> EarlierEvents: ...
    def __getitem__(self, index: str | int | Counter | slice) -> Expression | BoundEvent | EarlierEvents:
        return self.attr(index) if isinstance(index, str) else place(name_of(self), index)

    def __iter__(self) -> NoReturn:
        raise TypeError(f"the variable {name_of(self)} is no collection; the events bound to it are {name_of(self)}[1], …[i] and …[-1]")

    def attr(self, attribute: str) -> Expression:
        """Return the attribute of the given name, which may be any text."""
        return Expression(tree.Reference(name_of(self), name(attribute, "an attribute")))

    def plus(self) -> Variable:
        """Return ``v+``: one event or more."""
        return self._repeated(1, None)

    def star(self) -> Variable:
        """Return ``v*``: any number of events."""
        return self._repeated(0, None)

    def optional(self) -> Variable:
        """Return ``v?``: one event or none."""
        return self._repeated(0, 1)

    def times(self, minimum: int, maximum: int | None = None) -> Variable:
        """Return ``v{minimum}``, or ``v{minimum,maximum}``."""
        least = _bound(minimum)
        return self._repeated(least, least if maximum is None else _bound(maximum))

    def at_least(self, minimum: int) -> Variable:
        """Return ``v{minimum,}``: at least so many events."""
        return self._repeated(_bound(minimum), None)

    def until(self, ending: object) -> Variable:
        """Return ``v+ UNTIL (ending)``: v binds no event that satisfies the condition, and none behind it.

        The condition reads the event at hand, as an event of v.

        >>> from gpu_cep.lang.builder import var
        >>> b = var("b").plus()
        >>> b.until(b.type == "Stop")
        PATTERN b+ UNTIL (b.type = 'Stop')
        """
        if not isinstance(self.ast, tree.Repeat):
            raise PatternError(f"until() stands behind a quantifier: {name_of(self)}.plus().until(…)")
        if self.ast.until is not None:
            raise PatternError(f"the variable {name_of(self)} has a condition that ends it already")
        return Variable(replace(self.ast, until=condition(ending)))

    def _repeated(self, minimum: int, maximum: int | None) -> Variable:
        if isinstance(self.ast, tree.Repeat):
            raise PatternError(f"the variable {name_of(self)} has a quantifier already")
        return Variable(_repeat(self.ast, minimum, maximum, "event"))

    def _reference(self) -> tree.Reference:
        return tree.Reference(name_of(self), None)


def var(called: str, event_type: str | None = None) -> Variable:
    """Return a variable, with the event type before it if one is given.

    >>> from gpu_cep.lang.builder import var
    >>> var("p", "P"), var("b").times(2, 3)
    (PATTERN P p, PATTERN b{2,3})
    """
    known = None if event_type is None else name(event_type, "an event type")
    return Variable(tree.Variable(name(called, "a variable"), known))


def seq(*elements: Pattern) -> Pattern:
    """Return ``SEQ(…)``: each element before the next.

    >>> from gpu_cep.lang.builder import all_of, seq, var
    >>> c, p, d, b = (var(v.lower(), v) for v in "CPDB")
    >>> seq(all_of(c, p.plus(), d), b)
    PATTERN SEQ(AND(C c, P p+, D d), B b)
    """
    return Pattern(tree.Seq(_nodes("seq", elements)))


def all_of(*elements: Pattern) -> Pattern:
    """Return ``AND(…)``: all elements, in any order."""
    return Pattern(tree.And(_nodes("all_of", elements)))


def any_of(*elements: Pattern) -> Pattern:
    """Return ``OR(…)``: one of the elements."""
    return Pattern(tree.Or(_nodes("any_of", elements)))


def next_(following: Pattern) -> Pattern:
    """Return ``NEXT(…)``: in a SEQ, no event lies between the elements before it and its first event.

    >>> from gpu_cep.lang.builder import next_, seq, var
    >>> seq(var("a"), next_(var("b")), var("c"))
    PATTERN SEQ(a, NEXT(b), c)
    """
    return Pattern(tree.Next(_node("next_", following)))


def first_(following: Pattern) -> Pattern:
    """Return ``FIRST(…)``: in a SEQ, the first event that fits is taken (skip_till_next_match for one gap).

    >>> from gpu_cep.lang.builder import first_, seq, var
    >>> seq(var("a"), first_(var("b")), var("c"))
    PATTERN SEQ(a, FIRST(b), c)
    """
    return Pattern(tree.Gap(_node("first_", following), tree.GAPS["FIRST"]))


def any_(following: Pattern) -> Pattern:
    """Return ``ANY(…)``: in a SEQ, any event that fits may be taken (skip_till_any_match for one gap).

    >>> from gpu_cep.lang.builder import any_, seq, var
    >>> seq(var("a"), any_(var("b")), var("c"))
    PATTERN SEQ(a, ANY(b), c)
    """
    return Pattern(tree.Gap(_node("any_", following), tree.GAPS["ANY"]))


@overload
def not_(negated: Pattern) -> Pattern: ...
@overload
def not_(negated: Expression) -> Expression: ...
def not_(negated: Pattern | Expression) -> Pattern | Expression:
    """Return NOT of a pattern or of a condition; ``~`` is the same.

    Of a pattern: no event in its place may match. Of a condition: it does not hold.

    >>> from gpu_cep.lang.builder import not_, seq, var
    >>> a, h, b = var("a"), var("h"), var("b")
    >>> seq(a, not_(h), b).where(~(h.x == a.x))
    PATTERN SEQ(a, NOT(h), b)
    WHERE NOT h.x = a.x
    """
    match negated:
        case Variable():
            return Pattern(tree.Not(negated.ast))
        case Pattern():
            raise PatternError(f"only a variable can be negated, not {_written(negated)}")
    return ~_condition(negated)


def name_of(variable: Variable) -> str:
    """Return the name of `variable`."""
    node = variable.ast.element if isinstance(variable.ast, tree.Repeat) else variable.ast
    assert isinstance(node, tree.Variable), "quantifiers stand on variables"
    return node.name


def _nodes(composite: str, elements: tuple[object, ...]) -> tuple[tree.PatternNode, ...]:
    if not elements:
        raise TypeError(f"{composite} takes at least one pattern")
    return tuple(_node(composite, element) for element in elements)


def _node(composite: str, element: object) -> tree.PatternNode:
    match element:
        case Pattern():
            return element.ast
        case Buildable():
            raise TypeError(f"{composite} takes patterns; conditions and windows belong to the whole query")
    raise TypeError(f"{composite} takes patterns such as var('a', 'A'), not {element!r}")


def _condition(value: object) -> Expression:
    return Expression(condition(value))


def _written(pattern: Pattern) -> str:
    return repr(pattern).removeprefix("PATTERN ")


def _repeat(element: tree.PatternNode, minimum: int, maximum: int | None, counted: str) -> tree.Repeat:
    """Return a quantifier, or raise PatternError if it allows nothing; `counted` is what it counts."""
    if maximum == 0:
        raise PatternError(f"a quantifier must allow at least one {counted}")
    if minimum < 0 or (maximum is not None and maximum < minimum):
        raise PatternError(f"a quantifier from {minimum} to {maximum} allows nothing")
    return tree.Repeat(element, minimum, maximum)


def _bound(number: object) -> int:
    return whole(number, f"a quantifier takes whole numbers, not {number!r}")
