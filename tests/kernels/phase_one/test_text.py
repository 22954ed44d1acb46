"""Texts found among constants, against Python's own equality."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.constant_tables import constant_table
from gpu_cep_kernels.phase_one.text import find_constants

# of all lengths about those of one word, two and three, that differ in one byte or none
ALIKE = [bytes(length) for length in (0, 1, 7, 8, 9, 15, 16, 17, 24, 25, 33, 70)]
ALIKE += [own[:place] + b"\xff" + own[place + 1 :] for own in ALIKE for place in {0, 7, 8, 15, 16, len(own) - 1} if 0 <= place < len(own)]
TEXTS = st.sampled_from([*ALIKE, b"Quote", b"Trade", "Zürich".encode(), "株価".encode(), b"x" * 100]) | st.binary(max_size=40)
# of one length, with the same first and last eight bytes
URLS = [b"https://example.com/items/%05d/index.html" % number for number in range(600)]


def bits(flags):
    return np.packbits(np.array(flags, np.bool_), bitorder="little")


def found(rows, constants, *, kind=np.int32, before=b"", behind=b"", first=0, low=0, high=None):
    """The codes of `rows`, of which None is NULL, that lie between other bytes; −7 where none was asked for."""
    texts = [row or b"" for row in rows]
    offsets = np.cumsum([len(before), *map(len, texts)]).astype(kind)
    validity = bits([False] * first + [row is not None for row in rows]) if None in rows else np.empty(0, np.uint8)
    codes = np.full(len(rows), -7, np.int32)
    content = np.frombuffer(bytearray().join([before, *texts, behind]), np.uint8)
    find_constants(low, len(rows) if high is None else high, offsets, content, validity, first, constant_table(constants), codes)
    return codes.tolist()


def expected(rows, constants):
    places = {constant: number for number, constant in enumerate(constants)} | {None: len(constants) + 1}
    return [places.get(row, len(constants)) for row in rows]


@given(
    rows=st.lists(TEXTS | st.none(), max_size=30),
    constants=st.lists(TEXTS, max_size=12, unique=True),
    kind=st.sampled_from([np.int32, np.int64]),
    before=st.binary(max_size=9),
    behind=st.binary(max_size=9),
    first=st.integers(0, 17),
    data=st.data(),
)
def test_each_row_has_the_number_of_the_constant_that_it_equals(rows, constants, kind, before, behind, first, data):
    rows = data.draw(st.permutations([*rows, *constants[::2]]))
    low = data.draw(st.integers(0, len(rows)))
    high = data.draw(st.integers(low, len(rows)))
    codes = found(rows, constants, kind=kind, before=before, behind=behind, first=first, low=low, high=high)
    assert codes == [-7] * low + expected(rows, constants)[low:high] + [-7] * (len(rows) - high)


@pytest.mark.parametrize("length", [*range(35), 64, 70])
def test_a_constant_equals_no_text_that_differs_in_a_byte_or_in_length(length):
    # so many that some have the slot of the constant
    zeros = bytes(length)
    changed = [zeros[:place] + bytes([value]) + zeros[place + 1 :] for place in range(length) for value in range(1, 256)]
    rows = [zeros, *changed, *(bytes(other) for other in range(100)), zeros]
    assert found(rows, [zeros]) == [0 if row == zeros else 1 for row in rows]


@given(rows=st.lists(st.sampled_from(URLS), max_size=20), constants=st.lists(st.sampled_from(URLS), min_size=1, max_size=20, unique=True))
@example(rows=URLS[:3], constants=URLS[1:6])
def test_texts_that_only_their_middle_tells_apart(rows, constants):
    assert found(rows, constants) == expected(rows, constants)


@pytest.mark.parametrize("count", [0, 1, 5, 100, 599])
def test_a_search_is_short_among_alike(count):
    table = constant_table(URLS[:count])
    assert table.whole == (count > 4)
    assert table.probes <= 5
    assert found(URLS, URLS[:count]) == expected(URLS, URLS[:count])


@pytest.mark.parametrize("longest", [3, 8, 16, 30])
@pytest.mark.parametrize("count", [1, 3, 20, 300, 5_000])
def test_a_search_is_short_among_many(longest, count):
    draw = random.Random(count * longest)
    words = list(dict.fromkeys(draw.randbytes(draw.randint(2, longest)) for _ in range(2 * count)))
    constants = words[:count]
    table = constant_table(constants)
    assert table.probes <= (1 if count < 4 else 12)
    assert len(table.entries) <= 4 * max(64 * count + 1, 9)
    assert found(words, constants) == expected(words, constants)


def test_no_rows_and_no_constants():
    assert found([], [b"x"]) == []
    assert found([b"", None, b"x"], []) == [0, 1, 0]
    assert found([b"", None], [b""]) == [0, 2]
