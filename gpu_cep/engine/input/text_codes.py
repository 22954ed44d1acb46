"""Encode text as codes of a dictionary, a column's own or one that several columns share, or as hashes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.input.buffers import buffer_values, new_values, text_buffers
from gpu_cep.engine.input.few_texts import MOST, FewTexts, ascend, few_are_distinct, few_texts
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.input.many_texts import encode_many, hash_rows
from gpu_cep.records import record
from gpu_cep_kernels.compile.launch import slices, spread

# NumPy's names of the types of codes; for to_pandas_dtype() some releases of pyarrow import pandas.
_NUMBERS = {pa.int32(): np.int32, pa.uint8(): np.uint8, pa.uint16(): np.uint16}

# Rows of plain text that are looked at before it is encoded, in so many places, and the most distinct values among them of text
# that threads encode in parts. With more, to encode the values of all parts once again takes as long as to encode the text.
_SAMPLED, _PLACES, _REPEATED = 1 << 14, 16, 1 << 12
# Rows from which text of many distinct values is worth more than Arrow's table, and the distinct ones among those looked at.
_LONG, _MANY = 1 << 18, 15_000
# Values from which to compare a dictionary with another takes longer than to ask where it lies.
_LARGE = 1 << 12


@record()
class Codes:
    """A text column as dictionary codes; NULL has the code ``len(values)``."""

    codes: npt.NDArray[np.int32]
    values: pa.Array


@record()
class SharedDictionary:
    """The distinct values of several text columns, ascending.

    ``places[column]`` gives the place here of each value of the column's own dictionary. Its last
    entry is the code of NULL.
    """

    values: pa.Array
    places: dict[int, npt.NDArray[np.int32]]


def encode_text(array: pa.Array, threads: int = 1) -> Codes:
    """Return the codes of a text array for its own dictionary; `threads` threads encode long plain text.

    The values of plain text stand in the order in which they first occur.
    """
    if pa.types.is_dictionary(array.type):
        return Codes(codes_of(array, pa.int32()), array.dictionary)
    spans = slices(len(array), threads)
    if len(spans) == 1 and len(array) < _LONG:
        return _encode(array)
    distinct = _sampled(array)
    if distinct > _MANY and len(array) >= _LONG:
        return _encode_many(array, threads)
    return _encode_parts(array, spans, threads) if distinct <= _REPEATED and len(spans) > 1 else _encode(array)


def are_many(texts: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether plain text is long, and has so many distinct values that :func:`encode_many` takes less time than Arrow."""
    return len(texts) >= _LONG and _sampled(texts) > _MANY


def _sampled(texts: pa.Array | pa.ChunkedArray) -> int:
    """Return how many distinct values some rows of plain text have, in places that are spread over it."""
    size = -(-min(_SAMPLED, len(texts)) // _PLACES)
    pieces = [texts.slice(place * (len(texts) - size) // (_PLACES - 1), size) for place in range(_PLACES)]
    chunks = [chunk for piece in pieces for chunk in (piece.chunks if isinstance(piece, pa.ChunkedArray) else [piece])]
    return len(pa.chunked_array(chunks, texts.type).unique())


def _encode(array: pa.Array) -> Codes:
    """Return the codes of plain text by Arrow."""
    encoded = array.dictionary_encode()
    return Codes(codes_of(encoded, pa.int32()), encoded.dictionary)


def _encode_many(array: pa.Array, threads: int) -> Codes:
    """Return the codes of plain text that has many distinct values."""
    found = encode_many(array.drop_null() if array.null_count else array, threads)
    if found is None:
        return _encode(array)
    codes, values = found
    if not array.null_count:
        return Codes(codes, values)
    with_nulls = new_values(len(array), np.int32)
    with_nulls[:] = len(values)
    with_nulls[array.is_valid().to_numpy(zero_copy_only=False)] = codes
    return Codes(with_nulls, values)


def _encode_parts(array: pa.Array, spans: Sequence[tuple[int, int]], threads: int) -> Codes:
    """Return the codes of plain text, of which each part is encoded by itself."""
    parts = spread(lambda span: array.slice(span[0], span[1] - span[0]).dictionary_encode(), spans, threads)
    # a value is first in the first part that has it, where it first occurs there
    merged = pa.concat_arrays([part.dictionary for part in parts]).dictionary_encode()
    places = np.split(merged.indices.to_numpy(), np.cumsum([len(part.dictionary) for part in parts])[:-1])
    codes = new_values(len(array), np.int32)

    def write(number: int) -> None:
        place_of_code = np.append(places[number], np.int32(len(merged.dictionary)))
        np.take(place_of_code, codes_of(parts[number], pa.int32()), out=codes[slice(*spans[number])], mode="clip")

    spread(write, range(len(spans)), threads)
    return Codes(codes, merged.dictionary)


def hash_text(array: pa.Array, null: np.uint64) -> npt.NDArray[np.uint64]:
    """Return a hash of each text of a plain or dictionary array, which its bytes decide; `null` is that of NULL."""
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > len(array):
        array = array.dictionary_decode()
    if pa.types.is_dictionary(array.type):
        distinct = np.append(hash_text(array.dictionary, null), null)
        return distinct[codes_of(array, pa.int32())]
    hashes = hash_rows(text_buffers(array), len(array), 1)
    return np.where(array.is_null().to_numpy(zero_copy_only=False), null, hashes) if array.null_count else hashes


def codes_of(encoded: pa.Array, kind: pa.DataType) -> Array:
    """Return a dictionary array's codes as integers of type `kind`, int32, uint8 or uint16; NULL has the code after the last.

    If the indices have that width and no NULLs, they are not copied.
    """
    codes = encoded.indices
    # no code is negative, so a sign's bit is free
    if codes.type.bit_width != kind.bit_width:
        codes = codes.cast(kind)
    # filling copies, whether there is a NULL or not
    if codes.null_count:
        codes = codes.view(kind).fill_null(len(encoded.dictionary))
    return buffer_values(codes.buffers()[1], _NUMBERS[kind], len(codes), codes.offset)


def dictionaries_of(chunks: Sequence[pa.DictionaryArray]) -> list[pa.Array]:
    """Return the dictionaries of the chunks of a text column, in their order.

    A large one that several chunks have in the same memory, as those of a row group do, stands once.
    """
    found = [chunk.dictionary for chunk in chunks]
    return found if len(found[0]) < _LARGE else list({memory_of(values): values for values in found}.values())


def memory_of(values: pa.Array) -> tuple[int, ...]:
    """Return where the values of an array without children lie; of arrays of one type only equal ones have it in common."""
    return (len(values), values.offset, *(0 if buffer is None else buffer.address for buffer in values.buffers()))


def share_dictionary(own: dict[int, pa.Array]) -> SharedDictionary:
    """Return the ordered dictionary that columns with these own dictionaries share."""
    merged = pa.concat_arrays([values.cast(pa.large_string()) for values in own.values()]).dictionary_encode()
    order = pc.sort_indices(merged.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    ends = np.cumsum([len(values) for values in own.values()])[:-1]
    places = [np.append(ranks[part], np.int32(len(order))) for part in np.split(merged.indices.to_numpy(), ends)]
    return SharedDictionary(merged.dictionary.take(pa.array(order)), dict(zip(own, places, strict=True)))


def plain_dictionary(array: pa.Array) -> pa.Array:
    """Return a dictionary array with NULLs among its indices only, and with distinct values."""
    distinct = are_distinct(array.dictionary, few_texts(array.dictionary))
    return array if distinct else array.dictionary_decode().dictionary_encode()


def are_distinct(values: pa.Array, few: FewTexts | None) -> bool:
    """Return whether no two values are equal, and none is NULL; `few` is what :func:`few_texts` returns for them."""
    if few is not None:
        return few_are_distinct(few)
    return values.null_count == 0 and (ascends(values) or len(_distinct(values)) == len(values))


def _distinct(values: pa.Array) -> pa.Array:
    """Return the distinct values of plain text."""
    return values.unique() if len(values) < _LONG else encode_text(values).values


def ascends(values: pa.Array, few: FewTexts | None = None) -> bool:
    """Return whether each of a dictionary's values is greater than the one before; none is NULL.

    To compare costs less than to hash. `few` is what :func:`few_texts` returns for the values, if that is known.
    """
    few = few or few_texts(values if len(values) <= MOST else values.slice(0, MOST))
    if few is not None and (len(values) <= MOST or not ascend(few)):
        return ascend(few)
    return len(values) < 2 or bool(pc.all(pc.less(values.slice(0, len(values) - 1), values.slice(1))).as_py())
