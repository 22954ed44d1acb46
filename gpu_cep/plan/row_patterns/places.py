"""Say which rows an expression of a row pattern reads, so that a program can compute it.

A place leads from the row at which an expression is computed to the row that it reads. A total is an
aggregate over the rows of a match. In placed expressions a field's variable is the number of a place,
and an aggregate's that of a total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpu_cep.analysis.bound_expressions import Aggregation, Binding, Bound, Constant, Field, Operation
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern
from gpu_cep.analysis.types import FLOAT, INTEGER, STRING, DataType, Kind
from gpu_cep.plan.programs import is_float, leaves

STRICT = frozenset("add sub mul div mod neg abs sign floor ceil round sqrt eq ne lt le gt ge cast like in not dot".split())
"""Operations that are NULL where an operand is, so that they are NULL at no row."""

_PHYSICAL = {"prev": -1, "next": 1}
_AGGREGATES = ("sum", "avg", "min", "max", "count", "median", "count_distinct")


@dataclass(frozen=True, slots=True)
class RowPlace:
    """The row that an expression reads.

    `members`: the variables to whose rows it leads; None for any row of the match.
    `from_first`: whether rows are counted from the first one on, or from the last one back.
    `final`: whether the last one is that of the match, or the one up to the current row.
    `offset`: how many of these rows are passed over.
    `distance`: by how many rows of the partition it goes on, back if negative.
    `inside`: whether it leads to no row outside of the match.
    """

    members: tuple[int, ...] | None
    from_first: bool = False
    final: bool = False
    offset: int = 0
    distance: int = 0
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate over rows of a match.

    `function`: sum, min, max, count, median or count_distinct.
    `argument`: what is aggregated, None to count rows; its fields are read at each row.
    `members`: the variables whose rows it covers; None for all rows.
    `final`: whether it covers the rows behind the current one as well.
    `less`: what is taken off a count.
    """

    function: str
    argument: Bound | None
    members: tuple[int, ...] | None
    final: bool
    less: int = 0


HERE = RowPlace(None)
"""The current row."""


def kept_total(total: Total, totals: Sequence[Total]) -> Total:
    """Return the one of some totals that is computed for another: a sum of floats says of how many values it is."""
    floats = total.function == "count" and total.argument is not None and is_float(total.argument.type)
    summed = replace(total, function="sum")
    return summed if floats and summed in totals else total


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Numbers of columns that no table has, behind the others: the variable of a row, a 1 in each row, the number of the match."""

    classifier: int

    @property
    def present(self) -> int:
        """Return the number of the column that holds a 1 in each row."""
        return self.classifier + 1

    @property
    def match_number(self) -> int:
        """Return the number of the column of match numbers."""
        return self.classifier + 2


def row_columns(bound: BoundRowPattern) -> RowColumns:
    """Return the numbers of the columns that no table has."""
    return RowColumns(len(bound.schema.attributes) + len(bound.computed))


@dataclass
class Placement:
    """The places and totals of expressions so far, each once; the number of one is its place in the list."""

    bound: BoundRowPattern
    columns: RowColumns
    places: list[RowPlace] = field(default_factory=list)
    totals: list[Total] = field(default_factory=list)

    def place(self, expression: Bound) -> Bound:
        """Return an expression with its fields and aggregates placed."""
        match expression:
            case Field():
                return self.read(expression.column, RowPlace(self.members(expression.variable)), expression.type)
            case Operation(name="classifier", arguments=(Binding(variable=variable),)):
                return self.read(self.columns.classifier, RowPlace(self.members(variable), inside=True), STRING)
            case Operation(name="match_number"):
                return self.read(self.columns.match_number, HERE, INTEGER)
            case Operation(name="prev" | "next" as name, arguments=(argument, Constant(value=int(offset)))):
                return self._go(argument, _PHYSICAL[name] * offset)
            case Operation(name=name, arguments=(argument, Constant())) if _navigates(name):
                return self._go(expression, 0)
            case Operation(name=name, arguments=(argument,)) if _totals(name):
                return self._total(name, argument, expression.type)
            case Operation(arguments=arguments):
                return replace(expression, arguments=tuple(map(self.place, arguments)))
        return expression

    def members(self, variable: int) -> tuple[int, ...] | None:
        """Return the variables for which a variable or a subset stands; None if for any."""
        count = len(self.bound.variables) - 1 - len(self.bound.subsets)
        if variable < count:
            return (variable,)
        return None if variable == len(self.bound.variables) - 1 else tuple(sorted(self.bound.subsets[variable - count]))

    def read(self, column: int, place: RowPlace, type: DataType) -> Field:
        """Return a column of the row to which a place leads."""
        return Field(self._number(place), column, type)

    def here(self, expression: Bound) -> Bound:
        """Return a placed expression that reads the current row alone, without asking whether there is such a row."""
        match expression:
            case Operation(name="case", arguments=(Operation(arguments=(Field(column=self.columns.present), _)), value, _)):
                return value
            case Operation(arguments=arguments):
                return replace(expression, arguments=tuple(map(self.here, arguments)))
        return expression

    def _number(self, place: RowPlace) -> int:
        if place not in self.places:
            self.places.append(place)
        return self.places.index(place)

    def _go(self, argument: Bound, distance: int) -> Bound:
        """Return what is computed at another row: NULL if there is no such row."""
        place = RowPlace(None, distance=distance)
        match argument:
            case Operation(name=name, arguments=(inner, Constant(value=int(offset)))) if _navigates(name):
                semantics, _, function = name.partition(" ")
                place = replace(place, from_first=function == "first", final=semantics == "final", offset=offset)
                argument = inner
        moved = self._move(argument, replace(place, members=self.members(_variable_read(argument, len(self.bound.variables) - 1))))
        if isinstance(moved, Field) or self._is_strict(moved):
            return moved
        place = next(self.places[leaf.variable] for leaf in leaves(moved) if self._is_strict(leaf))
        there = self.read(self.columns.present, replace(place, inside=False), INTEGER)
        return Operation("case", (Operation("eq", (there, there), _TRUTH), moved, Constant(None, moved.type)), moved.type)

    def _move(self, expression: Bound, place: RowPlace) -> Bound:
        """Return an expression over one row with its fields read at a place."""
        match expression:
            case Field():
                return self.read(expression.column, place, expression.type)
            case Operation(name="classifier"):
                return self.read(self.columns.classifier, replace(place, inside=True), STRING)
            case Operation(name="match_number"):
                return self.place(expression)
            case Operation(arguments=arguments):
                return replace(expression, arguments=tuple(self._move(argument, place) for argument in arguments))
        return expression

    def _is_strict(self, expression: Bound) -> bool:
        """Return whether an expression is NULL where a row that it reads is not there.

        The number of the match is of no row.
        """
        if isinstance(expression, Operation):
            return expression.name in STRICT and any(map(self._is_strict, expression.arguments))
        return isinstance(expression, Field) and expression.column != self.columns.match_number

    def _total(self, name: str, argument: Bound, type: DataType) -> Bound:
        semantics, _, function = name.partition(" ")
        final = semantics == "final"
        if isinstance(argument, Binding):
            return self._aggregation(Total("count", None, self.members(argument.variable), final), INTEGER)
        members = self.members(_variable_read(argument, len(self.bound.variables) - 1))
        source = argument.type
        each = self._at_each_row(argument)
        if function != "avg":
            return self._aggregation(Total(function, each, members, final), type)
        # of decimals the unscaled values are summed, and the mean is scaled last
        total: Bound = self._aggregation(Total("sum", each, members, final), FLOAT if is_float(source) else INTEGER)
        total = total if is_float(source) else Operation("cast", (total,), FLOAT)
        count = self._aggregation(Total("count", each, members, final), INTEGER)
        mean = Operation("div", (total, Operation("cast", (count,), FLOAT)), FLOAT)
        scaled = source.kind is Kind.DECIMAL and source.scale > 0
        return Operation("div", (mean, Constant(10.0**source.scale, FLOAT)), FLOAT) if scaled else mean

    def _at_each_row(self, expression: Bound) -> Bound:
        match expression:
            case Field():
                return Field(0, expression.column, expression.type)
            case Operation(name="classifier"):
                return Field(0, self.columns.classifier, STRING)
            case Operation(arguments=arguments):
                return replace(expression, arguments=tuple(map(self._at_each_row, arguments)))
        return expression

    def _aggregation(self, total: Total, type: DataType) -> Aggregation:
        if total not in self.totals:
            self.totals.append(total)
        column = None if total.argument is None else total.argument.column if isinstance(total.argument, Field) else 0
        return Aggregation(total.function, self.totals.index(total), column, type)


def _navigates(name: str) -> bool:
    return name.partition(" ")[2] in ("first", "last")


def _totals(name: str) -> bool:
    return name.partition(" ")[2] in _AGGREGATES


def _variable_read(expression: Bound, any_row: int) -> int:
    """Return the one variable whose rows an expression reads; `any_row` if it reads none."""
    match expression:
        case Field(variable=variable) | Binding(variable=variable):
            return variable
        case Operation(arguments=arguments):
            found = (_variable_read(argument, any_row) for argument in arguments)
            return next((variable for variable in found if variable != any_row), any_row)
    return any_row


_TRUTH = DataType(Kind.BOOLEAN)
