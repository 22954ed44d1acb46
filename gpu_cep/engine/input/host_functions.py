"""Compute functions on the host, once for all events, as columns.

exp, log and the like are not IEEE-exact in kernels, and kernels never see text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound_expressions import Constants
from gpu_cep.analysis.computed_columns import ComputedColumn
from gpu_cep.engine.input.vectors import variation


def _substring(array: pa.Array, start: int, length: int | None = None) -> pa.Array:
    """Return SQL's SUBSTRING: positions count from 1."""
    begin = max(start - 1, 0)
    return pc.utf8_slice_codeunits(array, begin, None if length is None else max(start - 1 + length, begin))


def _float(function: Callable[[Any], Any]) -> Callable[..., pa.Array]:
    """Return `function` with its argument cast to float64."""
    return lambda array: function(array.cast(pa.float64()))


def _integer(function: Callable[[Any], Any]) -> Callable[..., pa.Array]:
    """Return `function` with its result cast to int64."""
    return lambda array: function(array).cast(pa.int64())


HOST_FUNCTIONS: dict[str, Callable[..., pa.Array]] = {
    "exp": _float(pc.exp),
    "ln": _float(pc.ln),
    "log10": _float(pc.log10),
    "log2": _float(pc.log2),
    "sin": _float(pc.sin),
    "cos": _float(pc.cos),
    "tan": _float(pc.tan),
    "power": lambda array, exponent: pc.power(array.cast(pa.float64()), float(exponent)),
    "variation": variation,
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    # as SQL has it, tabs and line breaks are no spaces
    "trim": lambda array: pc.utf8_trim(array, " "),
    "substring": _substring,
    "length": _integer(pc.utf8_length),
    "regexp_like": pc.match_substring_regex,
    "year": _integer(pc.year),
    "month": _integer(pc.month),
    "day": _integer(pc.day),
    "hour": _integer(pc.hour),
    "minute": _integer(pc.minute),
    "second": _integer(pc.second),
    "dayofweek": _integer(lambda array: pc.day_of_week(array, count_from_zero=False, week_start=7)),
}


def compute_column(computed: ComputedColumn, source: pa.Array) -> pa.Array:
    """Return the values of a computed column from those of the column that it reads."""
    function, constants = HOST_FUNCTIONS[computed.function], [constant.value for constant in computed.constants]
    if not pa.types.is_dictionary(source.type):
        return function(source, *constants)
    if len(source.dictionary) > len(source):
        return function(source.dictionary_decode(), *constants)
    return function(source.dictionary, *constants).take(source.indices)


def compute_membership(constants: Constants, source: pa.Array) -> pa.Array:
    """Return which values of a column are among `constants`; numbers of `source` are in their machine representation."""
    if not pa.types.is_dictionary(source.type):
        return is_member(source, constants.values)
    return is_member(source.dictionary, constants.values).take(source.indices)


def is_member(subject: pa.Array, items: Sequence[Any]) -> pa.Array:
    """Return SQL's IN: NULL if the subject is NULL, and if it is not found among items that include NULL."""
    known = [item for item in items if item is not None]
    found = pc.is_in(subject, pa.array(known, subject.type))
    unknown = pc.or_(pc.is_null(subject), pc.and_(pc.invert(found), len(known) < len(items)))
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def regexp_fault(pattern: str) -> str | None:
    """Return why a text is no regular expression of RE2; None if it is one."""
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as fault:
        return str(fault).removeprefix("Invalid regular expression: ")
    return None
