"""Decide predicates on text once per distinct value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.analysis.bound_expressions import Aggregation, Bound, Constant, Constants, Field, Operation
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.buffers import TextBuffers, text_buffers
from gpu_cep.engine.input.encodings import is_text
from gpu_cep.engine.input.host_functions import is_member
from gpu_cep.identity import Identity
from gpu_cep_kernels.phase_one.constant_tables import ConstantTable, constant_table
from gpu_cep_kernels.phase_one.text import find_constants

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "eq": pc.equal,
    "ne": pc.not_equal,
    "lt": pc.less,
    "le": pc.less_equal,
    "gt": pc.greater,
    "ge": pc.greater_equal,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
    "not": pc.invert,
    "is_null": pc.is_null,
}
_BINARY = ("and", "or")

Values: TypeAlias = pa.Array
# Predicates on a column, each with the label bits that it decides.
Predicates: TypeAlias = tuple[tuple[Bound, int], ...]

FALSE, TRUE, UNKNOWN = 0, 1, 2


def truth_table(predicate: Bound, values: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the truth of `predicate` for each of `values` and, last, for NULL: FALSE, TRUE or UNKNOWN."""
    return truth_of(predicate, domain_of(values))


def domain_of(values: pa.Array) -> pa.Array:
    """Return `values` with NULL as the last one: all that a predicate can be asked about."""
    return pa.concat_arrays([values.cast(pa.large_string()), pa.nulls(1, pa.large_string())])


def truth_of(predicate: Bound, domain: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the truth of a predicate for each value of a domain, as :func:`truth_table`."""
    truth = _evaluate(predicate, domain)
    if not isinstance(truth, (pa.Array, pa.ChunkedArray)):
        truth = pa.array([truth.as_py()] * len(domain), pa.bool_())
    table: npt.NDArray[np.uint8] = pc.fill_null(truth.cast(pa.uint8()), UNKNOWN).to_numpy(zero_copy_only=False)
    return table


def _evaluate(expression: Bound, domain: pa.Array) -> Any:
    """Return the value of an expression for each value of a domain."""
    match expression:
        case Field() | Aggregation():
            return domain
        case Constant(value=value, type=data_type):
            return pa.scalar(value, pa.bool_() if data_type.kind is Kind.BOOLEAN else pa.large_string())
        case Operation(name="like", arguments=(subject, Constant(value=pattern))):
            return _is_like(_evaluate(subject, domain), str(pattern))
        case Operation(name="in", arguments=(subject, Constants(values=items))):
            return is_member(_evaluate(subject, domain), items)
        case Operation(name=name, arguments=arguments):
            evaluated = [_evaluate(argument, domain) for argument in arguments]
            while name in _BINARY and len(evaluated) > 2:
                evaluated[:2] = [_FUNCTIONS[name](*evaluated[:2])]
            return _FUNCTIONS[name](*evaluated)
    raise TypeError(f"no text predicate for {type(expression).__name__}")


def _is_like(texts: Values, pattern: str) -> Values:
    """Return which texts fit a pattern of LIKE, in which a backslash makes the character behind it plain."""
    if "\\" not in pattern:
        return pc.match_like(texts, pattern)
    # Arrow reads a backslash as itself in patterns that only begin or end with a wildcard
    wildcards = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|.", pattern, flags=re.DOTALL)
    return pc.match_substring_regex(texts, f"(?s)^{''.join(wildcards.get(piece, re.escape(piece[-1])) for piece in pieces)}$")


class TextConstants(NamedTuple):
    """The constants with which predicates compare a column.

    `values` are the constants and, last, a text that stands for all that equal none. `table` finds the
    number of the one that a text equals.
    """

    table: ConstantTable
    values: Values


@lru_cache(maxsize=256)
def constants_of(predicates: Identity[Predicates]) -> TextConstants | None:
    """Return the constants of predicates that only compare a column with constants; None for others."""
    tested = [equality_constants(predicate) for predicate, _ in predicates.value]
    if None in tested:
        return None
    constants = list(dict.fromkeys(constant for own in tested for constant in own or ()))
    values = pa.array([*constants, "".join(constants) + "."], pa.large_string())
    return TextConstants(constant_table([constant.encode() for constant in constants]), values)


@dataclass(frozen=True, slots=True)
class FoundCodes:
    """The codes of a plain text column: for each row the number in `table` of the constant that it equals.

    Row 0 is bit `first` of the text's bitmap. Codes are found when they are asked for.
    """

    table: ConstantTable
    text: TextBuffers
    first: int

    def write(self, low: int, high: int, codes: npt.NDArray[Any]) -> None:
        """Write the codes of a range of rows to an array of any type that holds them."""
        offsets, validity = self.text.offsets[low : high + 1], self.text.validity
        find_constants(0, high - low, offsets, self.text.bytes, validity, self.first + low, self.table, codes)

    def load(self, low: int, high: int) -> npt.NDArray[np.int32]:
        """Return the codes of a range of rows."""
        codes = np.empty(high - low, np.int32)
        self.write(low, high, codes)
        return codes


def constant_codes(array: pa.Array, predicates: Predicates) -> tuple[FoundCodes, Values] | None:
    """Return codes for a plain text column whose `predicates` only compare it with constants.

    With them come the values of the codes: those of :func:`constants_of`. No dictionary of the column
    is made. The result is None for a column or a predicate of another kind.
    """
    if not is_text(array.type):
        return None
    constants = constants_of(Identity(predicates))
    return None if constants is None else (_find_in(constants.table, array), constants.values)


def find_texts(array: pa.Array, texts: Sequence[str]) -> Callable[[int, int], npt.NDArray[np.int32]]:
    """Return a function that gives, for a range of rows of plain text, the place of each among some different `texts`.

    Other text has the place behind the last of them, and NULL the one behind that.
    """
    return _find_in(constant_table([each.encode() for each in texts]), array).load


def _find_in(table: ConstantTable, array: pa.Array) -> FoundCodes:
    """Return the codes of a plain text column by a table of constants."""
    return FoundCodes(table, text_buffers(array), array.offset)


def equality_constants(predicate: Bound) -> tuple[str, ...] | None:
    """Return the constants with which a predicate compares its column; None if it tests anything else."""
    found = list(_find_constants(predicate))
    return None if None in found else tuple(constant for constant in found if constant is not None)


def _find_constants(expression: Bound) -> Iterator[str | None]:
    """Yield the constants of an expression, and None for anything but a test for equality."""
    match expression:
        case Operation(name="in", arguments=(Field(), Constants(values=items))):
            yield from (item for item in items if isinstance(item, str))
        case Operation(name="eq" | "ne", arguments=(Field(), Constant(value=value)) | (Constant(value=value), Field())):
            yield from (value,) if isinstance(value, str) else ()
        case Operation(name="and" | "or" | "not", arguments=arguments):
            for argument in arguments:
                yield from _find_constants(argument)
        case Operation(name="is_null", arguments=(Field(),)):
            return
        case _:
            yield None
