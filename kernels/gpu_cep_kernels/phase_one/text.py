"""Find which of several constants each row of a text column equals, and hash rows, from Arrow's offsets and bytes.

Texts are compared by length, by first eight and by last eight bytes. Only what
is longer than both together is compared further. Constants stand in a hash table
with open addressing. Every search looks at the same number of slots, so no
branch depends on a row of up to 16 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule, sequential
from gpu_cep_kernels.rules.scalars import SPREAD

# What an entry holds: first and last word of a constant, its length, and its number.
_HEAD, _TAIL, _LENGTH, _NUMBER = (np.uint64(field) for field in range(4))
FIELDS = 4
# All bits: the length of an entry that holds no constant.
FREE = np.uint64(2**64 - 1)


@rule
def _number(text: Any, start: int, count: int) -> np.uint64:
    """Return up to 8 bytes of `text`, `count` from `start` on, as a little-endian number."""
    first, number = np.uint64(start), np.uint64(0)
    for k in range(np.uint64(count)):
        # on the CPU the compiler makes one load of eight bytes
        number |= np.uint64(text[first + np.uint64(k)]) << (np.uint64(8) * np.uint64(k))
    return number


@rule
def word_of(text: Any, start: int, length: int) -> np.uint64:
    """Return the first 8 bytes of the text at `start` as a number.

    If its `length` is less, they are its highest bytes, and zeros stand below.
    """
    word = _number(text, start, 8) if start <= text.size - 8 else _number(text, start, text.size - start)
    # in two steps, since a shift by all 64 bits is undefined
    half = np.uint64(4 * max(8 - length, 0))
    return (word << half) << half


@rule
def _ends(text: Any, start: int, length: int, words: int) -> tuple[np.uint64, np.uint64]:
    """Return the first and the last word of a text; up to eight bytes they are the same.

    With `words` 1 the last word is not read, since no constant has more than one.
    """
    head = word_of(text, start, length)
    return head, word_of(text, start + max(length - 8, 0), length) if words > 1 else head


@rule
def _mix_word(before: np.uint64, word: np.uint64) -> np.uint64:
    """Mix one more word into the hash `before`; the highest bits depend on all words."""
    return (before ^ (before >> np.uint64(32)) ^ word) * SPREAD


@rule
def _hash(text: Any, start: int, length: int, ends: Any, words: int, constants: Any) -> np.uint64:
    """Return a hash of a text: of its length, its ends and, if constants need it, the rest."""
    found = (ends[0] ^ np.uint64(length)) * SPREAD
    if words > 1:
        found = _mix_word(found, ends[1])
    if words > 2 and constants.whole and length <= constants.longest:
        for place in range(start + 8, start + length - 8, 8):
            found = _mix_word(found, _number(text, place, 8))
    return found


@rule
def _same_middle(text: Any, start: int, length: int, other: Any, other_start: int) -> bool:
    """Return whether two texts of one length, whose first and last eight bytes agree, are equal."""
    k = 8
    while k < length - 8 and _number(text, start + k, 8) == _number(other, other_start + k, 8):
        k += 8
    return k >= length - 8


@rule
def _holds(entry: np.uint64, text: Any, start: int, length: int, ends: Any, words: int, constants: Any) -> bool:
    """Return whether an entry of the table holds the text."""
    entries = constants.entries
    # no short-circuit: a branch on rows would be mispredicted
    differing = (entries[entry + _HEAD] ^ ends[0]) | (entries[entry + _LENGTH] ^ np.uint64(length))
    if words > 1:
        differing |= entries[entry + _TAIL] ^ ends[1]
    if words > 2 and length > 16 and differing == 0:
        return _same_middle(text, start, length, constants.text, constants.offsets[entries[entry + _NUMBER]])
    return differing == 0


@rule
def constant_at(text: Any, start: int, end: int, words: int, constants: Any) -> int:
    """Return the number of the constant that a text equals; the count of constants if it equals none.

    `words` is 1 if no constant is longer than 8 bytes, 2 if none is longer than 16, else 3.
    """
    entries, length = constants.entries, end - start
    fields, last = np.uint64(FIELDS), np.uint64(entries.size - 2 * FIELDS)
    ends = _ends(text, start, length, words)
    entry = (_hash(text, start, length, ends, words, constants) >> constants.shift) & last
    found = np.uint64(entries.size - FIELDS)
    found = entry if _holds(entry, text, start, length, ends, words, constants) else found
    for _ in range(1, constants.probes):
        entry = (entry + fields) & last
        found = entry if _holds(entry, text, start, length, ends, words, constants) else found
    return int(entries[found + _NUMBER])


@sequential(writes=("constants.entries",))
def place_constants(constants: Any) -> int:
    """Enter all constants in a table of free slots; return how many slots a search must look at."""
    offsets, text, entries = constants.offsets, constants.text, constants.entries
    words = min((constants.longest + 7) // 8, 3)
    fields, last = np.uint64(FIELDS), np.uint64(entries.size - 2 * FIELDS)
    most = 0
    for k in range(offsets.size - 1):
        start, length = offsets[k], offsets[k + 1] - offsets[k]
        ends = _ends(text, start, length, words)
        entry = (_hash(text, start, length, ends, words, constants) >> constants.shift) & last
        probes = 1
        while entries[entry + _LENGTH] != FREE:
            entry = (entry + fields) & last
            probes += 1
        entries[entry + _HEAD], entries[entry + _TAIL] = ends
        entries[entry + _LENGTH], entries[entry + _NUMBER] = np.uint64(length), np.uint64(k)
        most = max(most, probes)
    return most


@kernel(writes=("codes",))
def find_constants(low: int, high: int, offsets: Any, text: Any, validity: Any, first: int, constants: Any, codes: Any) -> None:
    """``codes[e]``: the number of the constant that row e equals; their count if none, one more if the row is NULL.

    Row e is ``text[offsets[e]:offsets[e + 1]]``. It is NULL where bit ``first + e``
    of `validity` is 0. Each byte's lowest bit comes first. `validity` may be empty:
    then nothing is NULL.
    """
    bounds, found, null = offsets[low : high + 1], codes[low:high], np.int32(constants.offsets.size)
    end = bounds[0]
    # the number of words is a constant in each loop, so that what is not needed is left out
    if constants.longest <= 8:
        for e in range(found.size):
            start, end = end, bounds[e + 1]
            found[e] = constant_at(text, start, end, 1, constants)
    elif constants.longest <= 16:
        for e in range(found.size):
            start, end = end, bounds[e + 1]
            found[e] = constant_at(text, start, end, 2, constants)
    else:
        for e in range(found.size):
            start, end = end, bounds[e + 1]
            found[e] = constant_at(text, start, end, 3, constants)
    if validity.size:
        for e in range(found.size):
            bit = np.uint64(first + low + e)
            known = (np.uint64(validity[bit >> np.uint64(3)]) >> (bit & np.uint64(7))) & np.uint64(1)
            found[e] = found[e] if known else null


@kernel(writes=("hashes",))
def hash_texts(low: int, high: int, offsets: Any, text: Any, hashes: Any) -> None:
    """``hashes[e]``: a hash of all bytes of row e, which is ``text[offsets[e]:offsets[e + 1]]``."""
    for e in range(low, high):
        end = offsets[e + 1]
        found = np.uint64(end - offsets[e]) * SPREAD
        for place in range(offsets[e], end, 8):
            found = _mix_word(found, word_of(text, place, min(end - place, 8)))
        hashes[e] = found
