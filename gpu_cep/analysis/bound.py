"""Define the bound query: variables and columns are numbers, conditions are split.

:mod:`gpu_cep.analysis.bind` makes it of an AST and a schema; plan and engine read it. Variables are
numbered in order of first appearance in the pattern, columns by their place in the schema. Computed
columns follow those of the schema.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gpu_cep.analysis.bound_expressions import Bound
from gpu_cep.analysis.computed_columns import Computed, ComputedColumn, ComputedCount, ComputedExpression, ComputedMembership
from gpu_cep.analysis.types import DataType, Schema
from gpu_cep.lang.ast import Span


class ConditionKind(enum.Enum):
    """Which events a condition relates."""

    PROPERTY = "property"  # one variable, one event
    PAIR = "pair"  # relates the events of two or more variables, for all combinations
    BINDING = "binding"  # relates the events of one variable's binding to its first or last, or to an aggregate of it
    CONSECUTIVE = "consecutive"  # v[i] with v[i-1], v[..i-1] or prev(v.attr), for every i ≥ 2
    WITHIN = "within"  # relates every two events of one variable's binding ([attr])


@dataclass(frozen=True, slots=True)
class Condition:
    """One top-level conjunct of WHERE.

    `expression`: the condition. A WITHIN condition reads two events of its one variable: EACH is the
    later one, PREVIOUS any earlier one.
    `kind`: which events it relates.
    `variables`: the numbers of the variables that it reads, ascending.
    `text`: its canonical text, for explain and errors.
    `closing`: the quantified variables of which it reads the last event or an aggregate of all events.
    It is decided when they bind no more (docs/language.md, Incremental and closing conditions).
    `key`: the derived key column to whose equality closure it belongs (thesis Def. 5.3), or None.
    Partitioning by that column makes the condition redundant.
    """

    expression: Bound
    kind: ConditionKind
    variables: tuple[int, ...]
    text: str
    closing: tuple[int, ...] = ()
    key: int | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class EventVariable:
    """A variable of the pattern with its quantifier.

    `minimum`, `maximum`: the numbers of events of a binding, if the variable is present. Both are 1 for
    a single variable, for ``v?`` and for a negated one; a maximum of None is no bound.
    `quantified`: whether it binds a list of events.
    `optional`: whether its own quantifier allows it to be absent.
    `negated`: whether it stands in NOT.
    """

    name: str
    minimum: int
    maximum: int | None
    quantified: bool
    optional: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Negation:
    """``NOT(v)`` in a branch.

    `after`, `before`: the masks of the variables that precede it and that follow it.
    """

    variable: int
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One disjunct of the pattern's normal form: a strict partial order on variables.

    Masks have a bit for each variable of the query.
    `variables`: the positive variables present, ascending.
    `before`: ``before[k]`` is the mask of all that must precede ``variables[k]`` (transitively closed).
    `negations`: what must not happen between them.
    `conditions`: those that relate events of variables present.
    Equalities that connect all variables stand here as their whole closure (thesis Def. 5.3): a PAIR
    for every two variables, a WITHIN for every quantified one.
    `agreed`: the columns on which every two events of a match are equal by these conditions.
    """

    variables: tuple[int, ...]
    before: tuple[int, ...]
    negations: tuple[Negation, ...] = ()
    conditions: tuple[Condition, ...] = ()
    agreed: tuple[int, ...] = ()

    def begins_with(self, variable: int) -> bool:
        """Return whether a variable precedes all others."""
        found = zip(self.variables, self.before, strict=True)
        return variable in self.variables and all(before >> variable & 1 for other, before in found if other != variable)

    def ends_with(self, variable: int) -> bool:
        """Return whether all other variables precede a variable."""
        before = dict(zip(self.variables, self.before, strict=True)).get(variable)
        return before is not None and all(before >> other & 1 for other in self.variables if other != variable)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A window of time: the last event is at most `length` ticks after the first (a float for float columns)."""

    length: int | float


@dataclass(frozen=True, slots=True)
class CountWindow:
    """A window of events: the stream positions of first and last event differ by less than `events`."""

    events: int


@dataclass(frozen=True, slots=True)
class ReturnColumn:
    """One item of RETURN with its final name."""

    name: str
    expression: Bound


@dataclass(frozen=True, slots=True)
class Ranking:
    """By what the matches of one first event are kept: an expression of the match, and its direction.

    `text`: the expression as written, for explain.
    """

    expression: Bound
    descending: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class BoundQuery:
    """What queries of all kinds say, bound to a schema.

    `schema`, `computed`: the columns of the events, and those computed from them.
    `variables`: what binds events, the negated ones last.
    `conditions`: the conjuncts of WHERE and the event types, or the conditions of situations.
    Each ``[attr]`` is one condition for every two variables, and one for every quantified variable.
    `returns`: the items of RETURN.
    `window`: None without WITHIN.
    `timestamp`, `partition_by`, `order_by`: column numbers.
    `derived_keys`: the columns by which streams can be split. They are not NULL and no floats. In every
    branch all events of a match, and all that its negations ask for, agree on them.
    `drops_untimed`: whether events whose timestamp is NULL or NaN are left out; else they are an error.
    `equivalences`: the columns of all ``[attr]``, which is no condition if there is one event to relate.
    """

    schema: Schema
    computed: tuple[Computed, ...]
    variables: tuple[EventVariable, ...]
    conditions: tuple[Condition, ...]
    returns: tuple[ReturnColumn, ...]
    window: TimeWindow | CountWindow | None
    timestamp: int
    partition_by: tuple[int, ...]
    order_by: tuple[int, ...]
    derived_keys: tuple[int, ...] = ()
    drops_untimed: bool = False
    equivalences: tuple[int, ...] = ()

    @property
    def positives(self) -> tuple[EventVariable, ...]:
        """Return the variables that are not negated."""
        if self.variables and not self.variables[-1].negated:
            return self.variables
        return tuple(variable for variable in self.variables if not variable.negated)

    @property
    def ranked(self) -> tuple[Bound, ...]:
        """Return the expressions by which matches are kept."""
        return ()

    def column_name(self, column: int) -> str:
        """Return the name of an attribute or a computed column for messages."""
        width = len(self.schema.attributes)
        if column < width:
            return self.schema.attributes[column].name
        match self.computed[column - width]:
            case ComputedExpression(text=text):
                return text
            case ComputedColumn(function=function, column=source):
                return f"{function}({self.column_name(source)})"
            case ComputedCount(text=text):
                return f"number of {text}"
            case ComputedMembership(column=source, constants=constants):
                return f"{self.column_name(source)} IN ({len(constants.values):,} constants)"

    def input_columns(self, column: int) -> tuple[int, ...]:
        """Return the columns of the schema from which a column is computed; itself if it is one of them."""
        width = len(self.schema.attributes)
        if column < width:
            return (column,)
        return tuple(source for each in self.computed[column - width].columns for source in self.input_columns(each))

    def column_type(self, column: int) -> DataType:
        """Return the type of an attribute or a computed column."""
        width = len(self.schema.attributes)
        return self.schema.attributes[column].type if column < width else self.computed[column - width].type


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPattern(BoundQuery):
    """An event pattern bound to a schema.

    `variables`: the positive ones in order of first appearance, then the negated ones.
    `branches`: the normal form. Conditions that relate events stand in the branches as well.
    `strategy`: one of :data:`gpu_cep.lang.ast.STRATEGIES`.
    `ties`: ``strict`` or ``position``.
    `ranking`: by what the matches of one first event are kept (None: in the order of results).
    """

    branches: tuple[Branch, ...]
    strategy: str
    ties: str
    ranking: Ranking | None = None

    @property
    def ranked(self) -> tuple[Bound, ...]:
        """Return the expressions by which matches are kept: at most one."""
        return () if self.ranking is None else (self.ranking.expression,)
