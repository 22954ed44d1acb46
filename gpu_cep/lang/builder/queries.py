"""Add clauses to a pattern: ``where``, ``within``, ``using``, ``returning`` and so on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from gpu_cep.errors import Diagnostic, PatternError, nearest
from gpu_cep.lang import ast as tree
from gpu_cep.lang.builder.constants import Amount, measure, name
from gpu_cep.lang.builder.expressions import Expression, Item, condition
from gpu_cep.lang.builder.references import BoundEvent
from gpu_cep.lang.format import format_query
from gpu_cep.lang.limits import MAX_DEPTH, fault_of_conditions
from gpu_cep.lang.walks import children

DEEPEST = MAX_DEPTH - 5
"""How deep a tree may be, so that its text, in which a leaf is up to five levels deep, can be read again."""


class Named(ABC):
    """An object that stands for a variable; in RETURN it means the variable's whole events."""

    __slots__ = ()

    @abstractmethod
    def _reference(self) -> tree.Reference:
        """Return the variable as an expression."""


class Buildable(ABC):
    """A pattern or a query, to which clauses can be added; each call returns a new query."""

    __slots__ = ()

    @abstractmethod
    def _query(self) -> tree.Query:
        """Return the tree of the query so far."""

    def where(self, *conditions: Expression) -> Query:
        """Add WHERE: all `conditions` hold, and those of earlier calls."""
        if not conditions:
            raise TypeError("where takes at least one condition")
        query = self._query()
        nodes = [condition(each) for each in conditions]
        known = nodes if query.where is None else [query.where, *nodes]
        return Query(replace(query, where=known[0] if len(known) == 1 else tree.connect("AND", known)))

    def using(self, strategy: str, *variables: Named | str) -> Query:
        """Add the event selection strategy, with the variables listed behind it."""
        query = self._once("strategy", "a strategy")
        listed = tuple(_listed(each) for each in variables)
        return Query(replace(query, strategy=_strategy(strategy), strategy_variables=listed))

    def within(self, amount: Amount, unit: str | None = None) -> Query:
        """Add WITHIN.

        Write ``within(264, "hours")``, ``within("11 days")``, ``within(timedelta(days=11))`` or
        ``within(10, "events")``. A number alone counts the ticks of a timestamp column of numbers;
        over dates and timestamps it needs `time_unit`.
        """
        query = self._once("within", "a window")
        return Query(replace(query, within=_window(*measure(amount, unit))))

    def returning(self, *items: Expression | Item | Named | BoundEvent, **named: Expression | Named | BoundEvent) -> Query:
        """Add RETURN: the `items`, then those `named` by their keywords.

        A variable stands for its whole events.
        """
        if not items and not named:
            raise TypeError("returning takes at least one item")
        query = self._once("returns", "items to return")
        keyed = tuple(tree.ReturnItem(_returned(value), name(key, "a column")) for key, value in named.items())
        return Query(replace(query, returns=(*map(_item, items), *keyed)))

    def partition_by(self, *attributes: str) -> Query:
        """Add PARTITION BY: the attributes whose values split the events into independent streams."""
        if not attributes:
            raise TypeError("partition_by takes at least one attribute's name")
        query = self._once("partition_by", "PARTITION BY")
        return Query(replace(query, partition_by=tuple(name(each, "an attribute") for each in attributes)))

    def from_(self, source: str, alias: str | None = None) -> Query:
        """Add FROM: the name and the alias of the events."""
        query = self._once("source", "FROM")
        called = None if alias is None else name(alias, "an alias")
        return Query(replace(query, source=tree.Source(name(source, "a source"), called)))

    def _once(self, clause: str, what: str) -> tree.Query:
        query = self._query()
        if getattr(query, clause):
            raise PatternError(f"the query has {what} already: each clause but where stands once")
        return query


@dataclass(frozen=True, slots=True, repr=False)
class Query(Buildable):
    """A pattern with its clauses; `ast` is its syntax tree, ``str()`` its text.

    Raises
    ------
    PatternError
        If it names a variable that its pattern lacks, or is too deep to be read.
    """

    ast: tree.Query

    def __post_init__(self) -> None:
        _check(self.ast)

    def __repr__(self) -> str:
        return format_query(self.ast)

    def _query(self) -> tree.Query:
        return self.ast


def query_of(built: Buildable) -> tree.Query:
    """Return the syntax tree of a query, or of a pattern as a whole query."""
    return built._query()


def _strategy(strategy: str) -> str:
    if not isinstance(strategy, str):
        raise TypeError(f"a strategy is one of {', '.join(tree.STRATEGIES)}, not {strategy!r}")
    if strategy.lower() not in tree.STRATEGIES:
        message = f"there is no strategy {strategy!r}; expected one of {', '.join(tree.STRATEGIES)}"
        raise PatternError([Diagnostic(message, hint=nearest(strategy, tree.STRATEGIES))])
    return strategy.lower()


def _listed(variable: Named | str) -> str:
    if not isinstance(variable, Named):
        return name(variable, "a variable")
    listed = variable._reference().variable
    assert listed is not None, "a variable has a name"
    return listed


def _window(amount: int | Decimal, unit: str | None) -> tree.Window:
    if amount < 0:
        raise PatternError(f"the window {amount}{'' if unit is None else f' {unit}'} is negative")
    if unit == "events" and (not isinstance(amount, int) or amount < 1):
        raise PatternError(f"a window of {amount} events is not a whole number of events from 1 up")
    return tree.Window(amount, unit)


def _item(item: object) -> tree.ReturnItem:
    return item.ast if isinstance(item, Item) else tree.ReturnItem(_returned(item))


def _returned(value: object) -> tree.Expression:
    match value:
        case Expression() | BoundEvent():
            return value.ast
        case Named():
            return value._reference()
    raise TypeError(f"{value!r} is nothing to return: variables, their attributes and expressions of them are; a constant is literal(…)")


def _check(query: tree.Query) -> None:
    """Refuse a query that no text can say: its pattern lacks a variable, or it is too deep to be parsed."""
    named = set(query.strategy_variables)
    for node, depth in _nodes(query):
        if depth > DEEPEST:
            raise PatternError(f"conditions and patterns nest more than {DEEPEST} levels deep; each operator of a chain is a level")
        fault = fault_of_conditions(len(node.operands)) if isinstance(node, tree.Connective) else None
        if fault is not None:
            raise PatternError(fault)
        if isinstance(node, tree.Reference | tree.PrevBound | tree.Aggregate) and node.variable is not None:
            named.add(node.variable)
    declared = [node.name for node, _ in _nodes(query.pattern) if isinstance(node, tree.Variable)]
    unknown = sorted(named.difference(declared))
    if unknown:
        raise PatternError([Diagnostic(f"the pattern has no variable {each!r}", hint=nearest(each, declared)) for each in unknown])


def _nodes(root: tree.Node) -> Iterator[tuple[tree.Node, int]]:
    """Yield `root` and the nodes below it, each with its depth."""
    pending = [(root, 0)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        pending += [(child, depth + 1) for child in children(node)]
