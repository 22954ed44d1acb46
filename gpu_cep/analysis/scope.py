"""Resolve the names that expressions of a query use."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gpu_cep.analysis.bound import EventVariable
from gpu_cep.analysis.bound_expressions import ScalarFunction
from gpu_cep.analysis.computed_columns import Computed, ComputedColumn, ComputedCount, ComputedExpression, ComputedMembership
from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.options import Options, RegexpFault, ResultType, no_fault, no_result
from gpu_cep.analysis.types import Attribute, DataType, Schema
from gpu_cep.lang.ast import Span


class Clause(enum.Enum):
    """The clause in which an expression stands."""

    WHERE = "WHERE"
    RETURN = "RETURN"


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean in one clause of a query.

    `schema`: the columns of the events. `variables`: the variables of the pattern.
    `clause`: the clause whose expressions are bound.
    `faults`, `computed`: the query's collections, which grow as expressions are bound.
    `hidden`: the names of variables that the query does not write.
    `timestamp`: the column of occurrence times, None if there is none of that name.
    `functions`, `result_type`, `regexp_fault`: those of the options.
    `texts`: the names of a row pattern that are compared with texts, and may be texts themselves.
    `beside`: the type of what stands beside an unknown name, if that is certainly no text; OTHER if only that much is known.
    `time`: the type of starts and ends, if the variables are situations.
    `of_rows`: whether the expressions are those of a row pattern.
    """

    schema: Schema
    variables: tuple[EventVariable, ...]
    clause: Clause
    faults: Faults
    computed: list[Computed]
    functions: tuple[ScalarFunction, ...] = ()
    result_type: ResultType = no_result
    regexp_fault: RegexpFault = no_fault
    time: DataType | None = None
    hidden: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    beside: DataType | None = None
    timestamp: int | None = None
    of_rows: bool = False

    @classmethod
    def of_query(
        cls, schema: Schema, variables: tuple[EventVariable, ...], options: Options, faults: Faults, hidden: frozenset[str] = frozenset()
    ) -> Scope:
        """Return the scope of a query's conditions, before any column is computed."""
        return cls(
            schema, variables, Clause.WHERE, faults, [], options.functions, options.result_type, options.regexp_fault, hidden=hidden,
            timestamp=schema.index(options.timestamp) if options.timestamp in schema.names else None,
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all variables, by number."""
        return tuple(variable.name for variable in self.variables)

    def variable(self, name: str, span: Span | None) -> int | None:
        """Return the number of variable `name`; record a fault and return None if there is none."""
        if name in self.names and name not in self.hidden:
            return self.names.index(name)
        self.faults.unknown("variable", name, [each for each in self.names if each not in self.hidden], span)
        return None

    def attribute(self, name: str, span: Span | None) -> int | None:
        """Return the column of attribute `name`; record a fault and return None if there is none."""
        if name in self.schema.names:
            return self.schema.index(name)
        self.faults.unknown("attribute", name, self.schema.names, span)
        return None

    def column(self, number: int) -> Attribute:
        """Return column `number`, counting computed columns after those of the schema."""
        schema_columns = self.schema.attributes
        if number < len(schema_columns):
            return schema_columns[number]
        match self.computed[number - len(schema_columns)]:
            case ComputedExpression(text=text, type=type) | ComputedCount(text=text, type=type):
                return Attribute(text, type)
            case ComputedColumn(function=function, column=source, type=type):
                return Attribute(f"{function}({self.column(source).name})", type)
            case ComputedMembership(column=source, type=type):
                return Attribute(f"{self.column(source).name} IN (…)", type)

    def compute(self, column: Computed) -> int:
        """Return the number of a computed column, after adding it if it is new."""
        if column not in self.computed:
            self.computed.append(column)
        return len(self.schema.attributes) + self.computed.index(column)
