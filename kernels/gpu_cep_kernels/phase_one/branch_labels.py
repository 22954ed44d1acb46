"""Number the variables of labels as a branch of the pattern does, which has some of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_cep_kernels.compile.jit import kernel, rule
from gpu_cep_kernels.rules.scalars import LABEL_BITS


@rule
def _bit_of(variable: Any, e: int, labels: Any) -> Any:
    """Return the bit of a variable (uint64) in the label of event e, as a uint64."""
    bits = np.uint64(LABEL_BITS)
    return (np.uint64(labels[variable // bits, e]) >> (variable % bits)) & np.uint64(1)


@kernel(writes=("renumbered",))
def renumber_labels(low: int, high: int, variables: Any, labels: Any, renumbered: Any) -> None:
    """Write labels of which bit v is bit ``variables[v]`` (uint64) of the given ones; both are [word, event]."""
    for e in range(low, high):
        for w in range(renumbered.shape[0]):
            word, first = np.uint64(0), w * LABEL_BITS
            for v in range(first, min(first + LABEL_BITS, variables.size)):
                word |= _bit_of(variables[v], e, labels) << np.uint64(v - first)
            renumbered[w, e] = word
