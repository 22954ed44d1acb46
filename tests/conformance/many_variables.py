"""Patterns of more variables than a label word has bits, with their matches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa

from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.event_queries import event_query

NEXT, ANY = "skip_till_next_match", "skip_till_any_match"
# So many single variables precede all that a case is about.
AHEAD = 64


def typed(variables: range) -> str:
    return ", ".join(f"T{v} v{v}" for v in variables)


@dataclass(frozen=True)
class Wide:
    """``SEQ(T0 v0, …, T63 v63, body) WHERE condition`` over an event of each of T0 to T63 and then those of `types`.

    The condition may read `{first}`, the x of v0, and `{late}`, that of v63.
    """

    body: str
    condition: str
    types: str

    @property
    def text(self) -> str:
        return f"PATTERN SEQ({typed(range(AHEAD))}, {self.body}) WHERE {self.condition.format(first='v0.x', late='v63.x')}"

    @property
    def events(self) -> pa.Table:
        types = [*(f"T{v}" for v in range(AHEAD)), *self.types]
        return pa.table({"ts": range(len(types)), "type": types, "x": [7 * e % 11 for e in range(len(types))]})

    @cache  # noqa: B019 (the few cases live as long as this module)
    def matches(self, strategy: str) -> list[dict[str, tuple[int, ...]]]:
        """By the oracle: the matches of the body behind the last variable ahead, the others of which have one binding, in front of it."""
        last, x = AHEAD - 1, self.events["x"].to_pylist()
        body = f"PATTERN SEQ(T{last} v{last}, {self.body}) WHERE {self.condition.format(first=x[0], late=f'v{last}.x')}"
        found = oracle.matches(event_query(body), self.events.slice(last), EventOptions(strategy=strategy))
        ahead = {f"v{v}": (v,) for v in range(last)}
        return in_order({**ahead, **{name: tuple(last + row for row in rows) for name, rows in match.items()}} for match in found)


def in_order(matches: Any) -> list[dict[str, tuple[int, ...]]]:
    """Those of one first event by last event, then bindings."""
    return sorted(matches, key=lambda match: (max(map(max, match.values())), tuple(match.values())))


CASES = {
    "single": Wide("A a, B b, C c", "TRUE", "ABACBC"),
    "conditions between words": Wide("A a, B b, C c", "{first} < a.x AND a.x <> c.x AND {late} + b.x > c.x - 4", "AABBACBCC"),
    "quantified": Wide("A a, B b+, C c{1,2}, D d", "prev(b.x) <> b.x AND {first} <= b.x", "ABABCBCD"),
    "sets": Wide("AND(A a, B b+, C c), D d", "a.x < c.x", "BCABBCAD"),
    "one event for several": Wide("AND(a, b), c", "a.type <> 'T0' AND {first} <> b.x", "ABAC"),
    "no match": Wide("A a, B b", "{late} > a.x AND {late} < a.x", "AABB"),
}
SINGLE = ("single", "conditions between words", "one event for several", "no match")
