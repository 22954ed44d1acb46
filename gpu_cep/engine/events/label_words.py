"""Hold labels: for each event a bit for every variable whose properties it satisfies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_cep.engine.events.matches import Indices
from gpu_cep.plan.event_plan import CodeProperty, Property
from gpu_cep_kernels.device.primitives import words_overlap
from gpu_cep_kernels.phase_one.input_buffers import count_labels
from gpu_cep_kernels.phase_one.window_conditions import labels_overlap
from gpu_cep_kernels.rules.scalars import LABEL_BITS

# Labels are [word, event]: variable v has bit ``v % LABEL_BITS`` of word ``v // LABEL_BITS``.
Words = npt.NDArray[np.unsignedinteger[Any]]


# Types of words by their bits, the narrowest first.
_KINDS: dict[int, type[np.unsignedinteger[Any]]] = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of each label, with the bits of the variables from `first` on.

    `everyone` has the bits of all these variables.
    """

    kind: type[np.unsignedinteger[Any]]
    first: int
    everyone: int

    def all(self) -> np.unsignedinteger[Any]:
        """Return the word with the bit of every variable."""
        return self.kind(self.everyone)

    def own(self, bits: int) -> np.unsignedinteger[Any]:
        """Return the bits of the word's variables in `bits`, a mask of all the pattern's variables."""
        return self.kind(bits >> self.first & self.everyone)

    def others(self, bits: int) -> np.unsignedinteger[Any]:
        """Return the bits of the word's variables that are not set in `bits`."""
        return self.kind(~bits >> self.first & self.everyone)

    def concerns(self, planned: Property) -> bool:
        """Return whether one of the word's variables has this property."""
        bits = [bits for _, bits in planned.predicates] if isinstance(planned, CodeProperty) else [planned.bits]
        return any(self.own(own) for own in bits)


@lru_cache(maxsize=256)
def words_for(variables: int) -> tuple[Word, ...]:
    """Return the words of a label of so many variables.

    It is one word of the narrowest type that has the bits, or several words of the widest type.
    """
    kind = next((kind for bits, kind in _KINDS.items() if variables <= bits), np.uint64)
    firsts = range(0, variables, LABEL_BITS)
    return tuple(Word(kind, first, (1 << min(LABEL_BITS, variables - first)) - 1) for first in firsts)


def by_word(labels: Words, table: npt.NDArray[Any]) -> list[tuple[Words, npt.NDArray[Any]]]:
    """Return each word of the labels, with the rows of `table` for its variables.

    `table` has a row for each variable.
    """
    return [(word, table[LABEL_BITS * k : LABEL_BITS * (k + 1)]) for k, word in enumerate(labels)]


def restrict_labels(labels: Words, variables: Sequence[int]) -> Words:
    """Return the labels with only the bits of `variables` left."""
    word, most = labels.dtype.type, (1 << 8 * labels.dtype.itemsize) - 1
    bits, restricted = sum(1 << v for v in variables), np.empty_like(labels)
    for k, own in enumerate(labels):
        np.bitwise_and(own, word(bits >> LABEL_BITS * k & most), out=restricted[k])
    return restricted


def any_overlap(labels: Words) -> bool:
    """Return whether some event satisfies the properties of two variables."""
    return any(labels_overlap(word) for word in labels) or words_overlap(labels)


def count_by_variable(labels: Words, variables: int) -> Indices:
    """Count the events that satisfy the properties of each variable."""
    counts = np.empty(variables, np.int64)
    for word, own in by_word(labels, counts):
        count_labels(word, own)
    return counts
