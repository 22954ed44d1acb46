"""Write values and conditions with Python's operators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast as tree
from gpu_cep.lang.builder.constants import Amount, Constant, constant, measure, name
from gpu_cep.lang.format import format_expression
from gpu_cep.lang.limits import MAX_ITEMS, fault_of_items

_NO_TRUTH = (
    "a condition is neither true nor false before it meets events: write & for and, | for or, ~ for not, each comparison in parentheses, "
    "and .between(low, high) for a chained comparison, .isin(…) for in"
)
_NO_CONDITION = (
    "{value!r} is no condition: conditions compare attributes of variables, as in c.ID == p.ID, each comparison in parentheses "
    "beside & | ~; an attribute x is v['x'] where a method of v is called x"
)
_NO_PARENTHESES = "& and | bind more tightly than comparisons: put each comparison in parentheses, (a == 1) & (b == 2)"
_NULL = "a comparison with None is never true: write .is_null() or .is_not_null()"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression:
    """An attribute, or what operators and functions make of one; `ast` is its syntax tree.

    The operators are ``== != < <= > >= + - * / %`` and ``abs()``, and between
    conditions ``& | ~``. Python turns ``5 < v.x`` into ``v.x > 5``, which
    means the same; ``literal(5) < v.x`` stays as it is.

    Examples
    --------
    >>> from gpu_cep.lang.builder import var
    >>> c, p = var("c", "C"), var("p", "P").plus()
    >>> (c.ID == p.ID) & ((p.V + 1) * 2 > 0.8) & ~p.name.isin("x", "y")
    c.ID = p.ID AND (p.V + 1) * 2 > 0.8 AND p.name NOT IN ('x', 'y')
    """

    ast: tree.Expression

    __array_ufunc__: ClassVar[None] = None
    """NumPy's numbers leave operators to the expression beside them."""

    def __repr__(self) -> str:
        return format_expression(self.ast)

    def __bool__(self) -> bool:
        raise TypeError(_NO_TRUTH)

    def __contains__(self, item: object) -> bool:
        raise TypeError(_NO_TRUTH)

    def __eq__(self, other: Value) -> Expression:  # type: ignore[override]
        return _compared("=", self, other)

    def __ne__(self, other: Value) -> Expression:  # type: ignore[override]
        return _compared("<>", self, other)

    def __lt__(self, other: Value) -> Expression:
        return _compared("<", self, other)

    def __le__(self, other: Value) -> Expression:
        return _compared("<=", self, other)

    def __gt__(self, other: Value) -> Expression:
        return _compared(">", self, other)

    def __ge__(self, other: Value) -> Expression:
        return _compared(">=", self, other)

    def __add__(self, other: Value) -> Expression:
        return _binary("+", self, other)

    def __radd__(self, other: Value) -> Expression:
        return _binary("+", other, self)

    def __sub__(self, other: Value) -> Expression:
        return _binary("-", self, other)

    def __rsub__(self, other: Value) -> Expression:
        return _binary("-", other, self)

    def __mul__(self, other: Value) -> Expression:
        return _binary("*", self, other)

    def __rmul__(self, other: Value) -> Expression:
        return _binary("*", other, self)

    def __truediv__(self, other: Value) -> Expression:
        return _binary("/", self, other)

    def __rtruediv__(self, other: Value) -> Expression:
        return _binary("/", other, self)

    def __mod__(self, other: Value) -> Expression:
        return _binary("%", self, other)

    def __rmod__(self, other: Value) -> Expression:
        return _binary("%", other, self)

    def __neg__(self) -> Expression:
        return Expression(tree.Unary("-", self.ast))

    def __abs__(self) -> Expression:
        return Expression(tree.Call("abs", (self.ast,)))

    def __and__(self, other: Expression) -> Expression:
        return Expression(tree.connect("AND", (self.ast, condition(other))))

    def __rand__(self, other: Expression) -> Expression:
        return Expression(tree.connect("AND", (condition(other), self.ast)))

    def __or__(self, other: Expression) -> Expression:
        return Expression(tree.connect("OR", (self.ast, condition(other))))

    def __ror__(self, other: Expression) -> Expression:
        return Expression(tree.connect("OR", (condition(other), self.ast)))

    def __invert__(self) -> Expression:
        """Return the negated condition: NOT, or the negated form of ``between``, ``isin``, ``like`` and ``is_null``."""
        match self.ast:
            case tree.Between() | tree.In() | tree.Like() | tree.IsNull():
                return Expression(replace(self.ast, negated=not self.ast.negated))
        return Expression(tree.Unary("NOT", self.ast))

    def between(self, low: Value, high: Value) -> Expression:
        """Return ``BETWEEN low AND high``; both ends are included."""
        return Expression(tree.Between(self.ast, operand(low), operand(high)))

    def isin(self, *items: Value | Iterable[Value]) -> Expression:
        """Return ``IN (…)`` over the items, or over one collection of them; a set is sorted."""
        return Expression(tree.In(self.ast, _items(items)))

    def like(self, pattern: str | Expression) -> Expression:
        """Return ``LIKE pattern``: ``%`` is any text, ``_`` any character."""
        return Expression(tree.Like(self.ast, operand(pattern)))

    def is_null(self) -> Expression:
        """Return ``IS NULL``."""
        return Expression(tree.IsNull(self.ast))

    def is_not_null(self) -> Expression:
        """Return ``IS NOT NULL``."""
        return Expression(tree.IsNull(self.ast, negated=True))

    def alias(self, called: str) -> Item:
        """Return the expression as an item of RETURN, ``AS called``."""
        return Item(tree.ReturnItem(self.ast, name(called, "a column")))


Value = Expression | Constant


@dataclass(frozen=True, slots=True)
class Item:
    """An item of RETURN with its name; see :meth:`Expression.alias`."""

    ast: tree.ReturnItem


def operand(value: object) -> tree.Expression:
    """Return the tree of an expression, or of the literal that a Python value stands for."""
    return value.ast if isinstance(value, Expression) else constant(value)


def condition(value: object) -> tree.Expression:
    """Return the tree of a condition; refuse Python values.

    A truth value would come from a comparison that Python has computed already.
    """
    if not isinstance(value, Expression):
        raise TypeError(_NO_CONDITION.format(value=value))
    return value.ast


def literal(value: Constant) -> Expression:
    """Return a constant as an expression, where a Python value alone would not do.

    >>> from gpu_cep.lang.builder import literal, var
    >>> literal(5) < var("p").x
    5 < p.x
    """
    return Expression(constant(value))


def duration(amount: Amount, unit: str | None = None) -> Expression:
    """Return a length of time, from an amount and its unit, from one text, or from a timedelta.

    >>> from gpu_cep.lang.builder import duration
    >>> duration(36, "hours"), duration("1.5 days")
    (36 hours, 1.5 days)
    """
    number, known = measure(amount, unit)
    if known is None or known == "events":
        raise PatternError(f"{amount!r} needs a unit of time, as in '15 days'")
    return Expression(tree.DurationLiteral(number, known))


def same(attribute: str) -> Expression:
    """Return ``[attribute]``: all events of the match agree on it.

    >>> from gpu_cep.lang.builder import same
    >>> same("ID")
    [ID]
    """
    return Expression(tree.Equivalence(name(attribute, "an attribute")))


def _compared(operator: str, left: object, right: object) -> Expression:
    if right is None:
        raise PatternError(_NULL)
    if _joins(left) or _joins(right):
        raise TypeError(_NO_PARENTHESES)
    return _binary(operator, left, right)


def _joins(value: object) -> bool:
    return isinstance(value, Expression) and isinstance(value.ast, tree.Connective)


def _binary(operator: str, left: object, right: object) -> Expression:
    return Expression(tree.Binary(operator, operand(left), operand(right)))


def _items(items: tuple[object, ...]) -> tuple[tree.Expression, ...]:
    is_collection = len(items) == 1 and isinstance(items[0], Iterable) and not isinstance(items[0], str)
    given: Iterable[object] = items[0] if is_collection else items  # type: ignore[assignment]
    nodes = tuple(map(operand, islice(given, MAX_ITEMS + 1)))
    if not nodes:
        raise PatternError("isin needs at least one item")
    fault = fault_of_items(len(nodes))
    if fault is not None:
        raise PatternError(fault)
    return tuple(sorted(nodes, key=format_expression)) if isinstance(given, set | frozenset) else nodes
