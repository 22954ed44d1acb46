"""Join the chunks of a column into one array, and dictionaries of text of each chunk's own into one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpu_cep.engine.input.buffers import buffer_values, new_values
from gpu_cep.engine.input.chunks import MOST_TEXT, combine_chunks
from gpu_cep.engine.input.text_codes import are_many, encode_text, plain_dictionary
from gpu_cep_kernels.compile.launch import slices, spread
from gpu_cep_kernels.phase_one.ordering import gather_there


class _Run(NamedTuple):
    """Rows of chunks that follow one another and have one dictionary, whose `values` begin at `base` among those of all runs."""

    low: int
    high: int
    base: int
    values: int


def one_array(column: pa.ChunkedArray, threads: int = 1) -> pa.Array:
    """Return a column as one array; if that has a dictionary, it has no NULLs or repeated values."""
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return combine_chunks(column)
    return plain_dictionary(column.chunk(0)) if column.num_chunks == 1 else join_texts(column, threads)


def join_texts(column: pa.ChunkedArray, threads: int = 1) -> pa.DictionaryArray:
    """Return the chunks of a column as an array whose dictionary has no repeated values; no chunk's has NULL for a value.

    Codes keep their type unless it has too few for the values of all chunks.
    """
    chunks = column.chunks
    firsts = _places_of_other_dictionaries(chunks)
    if len(firsts) == 1:
        indices, kind = pa.concat_arrays([chunk.indices for chunk in chunks]), column.type
        return plain_dictionary(pa.DictionaryArray.from_arrays(indices, chunks[0].dictionary, ordered=kind.ordered, safe=False))
    dictionaries = pa.chunked_array([chunks[first].dictionary for first in firsts])
    # of fewer values Arrow joins dictionaries in less time; it leaves none of them twice
    return _join_many(chunks, firsts, dictionaries, threads) if are_many(dictionaries) else combine_chunks(column)


def _join_many(
    chunks: Sequence[pa.DictionaryArray], firsts: Sequence[int], dictionaries: pa.ChunkedArray, threads: int
) -> pa.DictionaryArray:
    """Return the chunks as an array; from each of the `firsts` to the next one they have one of the `dictionaries`."""
    indices, merged = pa.concat_arrays([chunk.indices for chunk in chunks]), encode_text(combine_chunks(dictionaries), threads)
    return _array(chunks[0].type, indices, _renumber(indices, _runs(chunks, firsts), merged.codes, threads), merged.values)


def _places_of_other_dictionaries(chunks: Sequence[pa.DictionaryArray]) -> list[int]:
    """Return the numbers of the chunks whose dictionary is not that of the chunk before."""
    dictionaries = [chunk.dictionary for chunk in chunks]
    return [0, *(number for number, (before, own) in enumerate(pairwise(dictionaries), 1) if not own.equals(before))]


def _runs(chunks: Sequence[pa.DictionaryArray], firsts: Sequence[int]) -> list[_Run]:
    """Return the rows of chunks from each of the `firsts` to before the next."""
    begins, sizes = [0, *accumulate(map(len, chunks))], [len(chunks[first].dictionary) for first in firsts]
    borders, bases = [*(begins[first] for first in firsts), begins[-1]], accumulate(sizes, initial=0)
    return [_Run(low, high, base, values) for (low, high), base, values in zip(pairwise(borders), bases, sizes, strict=False)]


def _renumber(indices: pa.Array, runs: Sequence[_Run], places: npt.NDArray[np.int32], threads: int) -> npt.NDArray[np.int32]:
    """Return the codes of rows for the values of all runs, where `places` are those of the values of each run."""
    own = (indices.fill_null(0) if indices.null_count else indices).cast(pa.int32())
    rows, codes = buffer_values(own.buffers()[1], np.int32, len(own), own.offset), new_values(len(own), np.int32)

    def gather(span: tuple[int, int]) -> None:
        for run in runs[slice(*span)]:
            if run.values:
                gather_there(run.low, run.high, rows, -run.base, places, codes)
            else:
                codes[run.low : run.high] = 0  # all rows are NULL

    spread(gather, slices(len(runs), threads), threads)
    return codes


def _array(kind: pa.DictionaryType, indices: pa.Array, codes: npt.NDArray[np.int32], values: pa.Array) -> pa.DictionaryArray:
    """Return codes that are NULL where `indices` are, in an array of type `kind` if that holds these values."""
    validity = indices.is_valid().buffers()[1] if indices.null_count else None
    numbers = pa.Array.from_buffers(pa.int32(), len(codes), [validity, pa.py_buffer(codes)], indices.null_count)
    fits = len(values) - 1 <= np.iinfo(kind.index_type.to_pandas_dtype()).max
    text = values.cast(kind.value_type) if values.nbytes <= MOST_TEXT else values
    return pa.DictionaryArray.from_arrays(numbers.cast(kind.index_type) if fits else numbers, text, ordered=kind.ordered, safe=False)
