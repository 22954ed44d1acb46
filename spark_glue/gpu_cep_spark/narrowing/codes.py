"""Shuffle text as one-byte codes where a query only compares it with a few constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from gpu_cep.analysis.bound import BoundQuery, Condition, ConditionKind
from gpu_cep.analysis.bound_expressions import Bound, Constant, Field, Operation
from gpu_cep.analysis.conditions import reads
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.lowering.text_predicates import equality_constants
from gpu_cep.plan.columns_read import columns_read
from gpu_cep.plan.event_plan import Plan
from gpu_cep.plan.properties import split_conjunction
from gpu_cep_spark.narrowing.pushdown import column

# A code is a signed byte.
MOST_CONSTANTS = 127

Codes = Mapping[int, tuple[str, ...]]


def coded_columns(plan: Plan) -> Codes:
    """Return the text columns that can be shuffled as codes, each with the constants of its codes.

    Each variable must have a property that compares the column with some of the constants. Events
    with any other value are then filtered before the shuffle. Nothing else may read the column.
    """
    query = plan.query
    if "filter" not in plan.pruning:
        return {}
    text = [number for number, attribute in enumerate(query.schema.attributes) if attribute.type.kind is Kind.STRING]
    read_otherwise = _read_otherwise(plan)
    found = {number: _constants(query, number) for number in text if number not in read_otherwise and _demanded(query, number)}
    return {number: constants for number, constants in found.items() if constants is not None and len(constants) <= MOST_CONSTANTS}


def code(name: str, constants: tuple[str, ...]) -> Column:
    """Return a Spark column with the index of the constant that column `name` equals.

    It is NULL for any other value.
    """
    chosen = F.lit(None).cast("byte")
    for number, constant in reversed(list(enumerate(constants))):
        chosen = F.when(column(name) == F.lit(constant), F.lit(number).cast("byte")).otherwise(chosen)
    return chosen


def decode_columns(table: pa.Table, codes: Codes) -> pa.Table:
    """Return `table` with each column of codes replaced by dictionary-encoded text."""
    for number, constants in codes.items():
        indices = table.column(number).combine_chunks().cast(pa.int32())
        chunk = pa.DictionaryArray.from_arrays(indices, pa.array(constants, pa.string()))
        table = table.set_column(number, table.schema.names[number], chunk)
    return table


def _properties(query: BoundQuery) -> Iterator[Condition]:
    return (condition for condition in query.conditions if condition.kind is ConditionKind.PROPERTY)


def _reads(expression: Bound, number: int) -> bool:
    return any(leaf.column == number for leaf in reads(expression))


def _read_otherwise(plan: Plan) -> set[int]:
    """Return the columns that anything but properties and order_by reads.

    These are keys, time, output, and columns of conditions between variables and of computed columns.
    """
    query = plan.query
    properties = set(_properties(query))
    # order_by may read codes, since these are decoded into constants that compare as the text did
    rest = replace(query, conditions=tuple(c for c in query.conditions if c not in properties), order_by=())
    return {*columns_read(rest, plan.settings), *(column for computed in query.computed for column in computed.columns)}


def _demanded(query: BoundQuery, number: int) -> bool:
    """Return whether each variable has a property that holds only if the column equals a constant."""
    demanding = {
        v for c in _properties(query) for v in c.variables if any(_is_equality(part, number) for part in split_conjunction(c.expression))
    }
    return demanding == set(range(len(query.variables)))


def _is_equality(expression: Bound, number: int) -> bool:
    match expression:
        case Operation(name="eq", arguments=(Field(column=read), Constant()) | (Constant(), Field(column=read))):
            return read == number
        case Operation(name="in", arguments=(Field(column=read), _)):
            return read == number
    return False


def _constants(query: BoundQuery, number: int) -> tuple[str, ...] | None:
    """Return the constants that properties compare the column with; None if one does anything else."""
    found = [equality_constants(part) for c in _properties(query) for part in split_conjunction(c.expression) if _reads(part, number)]
    if any(constants is None for constants in found):
        return None
    return tuple(dict.fromkeys(constant for constants in found if constants is not None for constant in constants))
