"""Walk the nodes of a tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from gpu_cep.lang.ast import Node, Seq, Variable


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes in a node's fields, in their order."""
    for each in fields(node):
        value = getattr(node, each.name)
        yield from (part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Node))


def declared(node: Node) -> Iterator[str]:
    """Yield the variables in a pattern from left to right, negated ones too, as often as they are written."""
    if isinstance(node, Variable):
        yield node.name
    for child in children(node):
        yield from declared(child)


def repeated_in_seq(node: Node) -> frozenset[str]:
    """Return the variables that stand in two elements of one SEQ."""
    parts = [*children(node)]
    counts = Counter(name for part in parts for name in set(declared(part))) if isinstance(node, Seq) else Counter[str]()
    return frozenset(name for name, count in counts.items() if count > 1).union(*map(repeated_in_seq, parts))
