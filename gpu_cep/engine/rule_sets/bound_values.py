"""Tell which values of a column the events of a plan must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from operator import and_, or_

from gpu_cep.analysis.bound import BoundPattern
from gpu_cep.analysis.bound_expressions import Bound, Constant, Constants, Field, Operation
from gpu_cep.analysis.types import Kind
from gpu_cep.identity import while_alive
from gpu_cep.plan.properties import property_conjuncts

Values = frozenset[int | str]


# Plans of rule sets are remembered, too.
@while_alive
def bound_values(query: BoundPattern) -> Mapping[int, Values]:
    """Return the values that every event which some variable may bind has in a column, by column.

    These are the columns of text or integers that each variable, negated ones included, compares with constants for equality.
    """
    tests = [(bits, tested) for _, conjunct, bits in property_conjuncts(query) for tested in tested_values(conjunct)]
    columns = dict.fromkeys(column for _, (column, _) in tests if column < len(query.schema.attributes))
    found = {}
    for column in columns:
        own = [(bits, values) for bits, (tested, values) in tests if tested == column]
        of_variables = [[values for bits, values in own if bits >> number & 1] for number in range(len(query.variables))]
        if all(of_variables):
            found[column] = reduce(or_, (reduce(and_, each) for each in of_variables))
    return found


def tested_values(conjunct: Bound) -> Iterator[tuple[int, Values]]:
    """Yield the column and the values of a test for equality; nothing for other tests."""
    match conjunct:
        case Operation(name="eq", arguments=(Field() as field, Constant(value=value)) | (Constant(value=value), Field() as field)):
            values: tuple[object, ...] = (value,)
        case Operation(name="in", arguments=(Field() as field, Constants(values=several))):
            values = tuple(value for value in several if value is not None)
        case _:
            return
    kind = {Kind.STRING: str, Kind.INTEGER: int}.get(field.type.kind)
    if kind is not None and all(type(value) is kind for value in values):
        yield field.column, frozenset(value for value in values if isinstance(value, int | str))
