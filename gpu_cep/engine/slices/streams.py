"""Rank the streams of rows of results by the keys that the rows hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from gpu_cep.analysis.bound import BoundQuery
from gpu_cep.analysis.types import Schema
from gpu_cep.engine.events.key_hashes import KeyBits, hash_keys, highest_bits
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns


def number_streams(query: BoundQuery, keys: pa.Table, rows: int) -> tuple[Indices, Indices]:
    """Return the number of the stream of each of some rows, by its keys, and the first row of each stream.

    `keys` has the columns of the query's `partition_by`, maybe none. Streams are numbered in the order of results: NULL first, NaN last.
    """
    columns = _columns(query, keys)
    encoded = encode_keys(columns, tuple(range(keys.num_columns)))
    codes = encoded.codes
    if codes is None:
        return np.zeros(rows, np.int64), np.zeros(min(rows, 1), np.int64)
    first_of_code = np.full(encoded.count, -1, np.int64)
    # of the rows of one code, the one that is assigned last stays
    first_of_code[codes[::-1]] = np.arange(rows)[::-1]
    present = np.flatnonzero(first_of_code >= 0)
    firsts = first_of_code[present]
    order = np.lexsort([columns.dense_rank(column, firsts) for column in range(keys.num_columns)][::-1])
    ranks = np.empty(encoded.count, np.int64)
    ranks[present[order]] = np.arange(len(order))
    return ranks[codes], firsts[order]


def bits_of_streams(query: BoundQuery, keys: pa.Table) -> KeyBits:
    """Return the highest bits of the hash of the keys of each of some rows, which are the same for rows of one stream."""
    return highest_bits(hash_keys(_columns(query, keys), tuple(range(keys.num_columns))))


def _columns(query: BoundQuery, keys: pa.Table) -> EventColumns:
    """Return the columns of keys as those of events."""
    attributes = tuple(query.schema.attributes[key] for key in query.partition_by)
    return EventColumns(keys, replace(query, schema=Schema(attributes), computed=()), threads=1)
