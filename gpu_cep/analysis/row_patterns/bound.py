"""Define the bound row pattern: names are numbers, types are explicit.

Its expressions are those of event patterns, with these operations more:

* ``running first``, ``final first``, ``running last``, ``final last`` — the value of the first operand at a row of its variable, from
  the first or from the last such row by as many rows as the second operand, a constant, says
* ``prev next`` — the value of the first operand that many rows before or after the row of which it is
* ``running sum``, ``final sum`` and so on for each aggregate — over the operand at every row of its variable; a Binding counts rows
* ``classifier`` — the spelling of the variable to which the last row of a Binding is mapped
* ``match_number`` — the number of the match

A field outside of these is read at the last row of its variable, up to the current row. The last
variable of all stands for every row of the match.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.analysis.bound_expressions import Bound
from gpu_cep.analysis.computed_columns import Computed
from gpu_cep.analysis.types import DataType, Schema
from gpu_cep.lang.row_patterns.ast import RowPatternQuery

ROW_PATTERN_VERSION = 2
"""Grows when a bound row pattern, which drivers send to workers, comes to mean something else."""


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column of ORDER BY."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """A measure with its name; `column` is the one whose values it returns as they are, None if it computes."""

    name: str
    expression: Bound
    column: int | None

    @property
    def type(self) -> DataType:
        """Return the type of the measure."""
        return self.expression.type


@dataclass(frozen=True, slots=True)
class BoundRowPattern:
    """A row pattern bound to a schema.

    `query`: the syntax tree, whose PATTERN and ROWS PER MATCH need no binding.
    `variables`: the spellings of the pattern's variables, then the names of the subsets, then "" for any row.
    `subsets`: for each subset the numbers of its members.
    `conditions`: by the number of the variable, what DEFINE says; a variable without one fits every row.
    `skip`: the number of the variable to which the search skips, None for the forms without one.
    """

    query: RowPatternQuery
    schema: Schema
    computed: tuple[Computed, ...]
    variables: tuple[str, ...]
    subsets: tuple[tuple[int, ...], ...]
    conditions: tuple[tuple[int, Bound], ...]
    measures: tuple[MeasureColumn, ...]
    partition_by: tuple[int, ...]
    order_by: tuple[SortColumn, ...]
    window: TimeWindow | CountWindow | None
    skip: int | None

    @property
    def returned_columns(self) -> tuple[int, ...]:
        """Return the input columns behind the measures of the result: with ALL ROWS those that are no keys."""
        if self.query.rows == "one":
            return ()
        keys = {*self.partition_by, *(each.column for each in self.order_by)}
        return tuple(number for number in range(len(self.schema.attributes)) if number not in keys)

    @property
    def key_columns(self) -> tuple[int, ...]:
        """Return the input columns before the measures of the result: PARTITION BY's, with ALL ROWS also ORDER BY's, each once."""
        order = () if self.query.rows == "one" else tuple(each.column for each in self.order_by)
        return tuple(dict.fromkeys((*self.partition_by, *order)))
