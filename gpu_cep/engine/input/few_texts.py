"""Hold a few texts by their bytes, so that what is made of them can be remembered."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

# Hashing the bytes of more texts costs as much as what is remembered of them.
MOST = 64
_MOST_BYTES = 1 << 12

# Bytes of an offset, by the type of array.
_OFFSETS = {pa.StringArray: 4, pa.LargeStringArray: 8}


class FewTexts(NamedTuple):
    """Texts without NULL; equal ones are equal texts.

    `offsets` are those of Arrow, of `width` bytes each, and say where each of the `texts` begins in some larger buffer.
    """

    width: int
    offsets: bytes
    texts: bytes

    def listed(self) -> list[bytes]:
        """Return the bytes of each text, which need not be UTF-8."""
        borders = np.frombuffer(self.offsets, f"i{self.width}")
        return [self.texts[begin:end] for begin, end in pairwise((borders - borders[0]).tolist())]

    def array(self) -> pa.Array:
        """Return the texts as an array."""
        return pa.array(self.listed(), pa.large_binary()).view(pa.large_string())


def few_texts(values: pa.Array) -> FewTexts | None:
    """Return the texts of an array; None if they are many or long, or there is a NULL, and for arrays of other types."""
    width = _OFFSETS.get(type(values))
    if width is None or not 0 < len(values) <= MOST or values.null_count:
        return None
    _, borders, texts = values.buffers()
    offsets = borders.slice(values.offset * width, (len(values) + 1) * width).to_pybytes()
    begin, end = int.from_bytes(offsets[:width], "little"), int.from_bytes(offsets[-width:], "little")
    if end - begin > _MOST_BYTES:
        return None
    return FewTexts(width, offsets, texts.slice(begin, end - begin).to_pybytes() if end > begin else b"")


@lru_cache(maxsize=256)
def ascend(few: FewTexts) -> bool:
    """Return whether each text is greater than the one before."""
    return all(before < after for before, after in pairwise(few.listed()))


@lru_cache(maxsize=256)
def few_are_distinct(few: FewTexts) -> bool:
    """Return whether no two texts are equal."""
    texts = few.listed()
    return len({*texts}) == len(texts)
