"""Make events of a shop and four kinds of rule sets over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

# Half of the events have one of the usual types, and the others one of all.
TYPES, USUAL, USERS, DAYS = 3_000, 30, 100_000, 30


def made(events: int) -> pa.Table:
    """Return the events in the order of time, with eight columns, text as plain text."""
    random = np.random.default_rng(31)
    usual, any_of = random.integers(0, USUAL, events), random.integers(0, TYPES, events)
    types = np.where(random.random(events) < 0.5, usual, any_of)
    pages = random.integers(0, 500, events)
    return pa.table(
        {
            "ts": np.sort(random.integers(0, DAYS * 86_400_000, events)),
            "user": random.integers(0, USERS, events),
            "type": pa.array([f"T{number}" for number in range(TYPES)]).take(pa.array(types)),
            "amount": np.round(random.exponential(50, events), 2),
            "page": pa.array([f"/shop/page/{number}" for number in range(500)]).take(pa.array(pages)),
            "country": pa.array(["CH", "DE", "FR", "IT", "AT"]).take(pa.array(random.integers(0, 5, events))),
            "items": random.integers(1, 20, events),
            "session": random.integers(0, 1 << 40, events),
        }
    )


_FUNNEL = "PARTITION BY user PATTERN SEQ(T{} a, T{} b, T{} c) WHERE {} WITHIN {} RETURN a.ts AS begun, c.amount AS amount"


def same_keys(count: int) -> dict[str, str]:
    """Return rules over triples of usual types, each with conditions of its own; they share their keys."""
    random = np.random.default_rng(32)
    triples = [random.choice(USUAL, 3, replace=False).tolist() for _ in range(count)]
    compared = ("c.amount > a.amount", "b.items < c.items", "a.country = c.country", "a.amount + b.amount < c.amount")
    return {
        f"keys {number}": _FUNNEL.format(*triple, compared[number % len(compared)], 3_600_000 * (1 + number % 5))
        for number, triple in enumerate(triples)
    }


def other_constants(count: int) -> dict[str, str]:
    """Return rules over three usual types that differ in one constant."""
    return {f"constant {number}": _FUNNEL.format(0, 1, 2, f"c.amount > {100 + number / 10}", 5 * 86_400_000) for number in range(count)}


def disjoint_funnels(count: int) -> dict[str, str]:
    """Return rules over types none of which another rule has."""
    return {
        f"funnel {number}": _FUNNEL.format(3 * number, 3 * number + 1, 3 * number + 2, "c.amount > a.amount", 24 * 3_600_000)
        for number in range(count)
    }


def shared_starts(count: int) -> dict[str, str]:
    """Return rules that begin with the same two usual types, each with a last type of its own."""
    return {f"last {number}": _FUNNEL.format(0, 1, 2 + number, "b.amount > a.amount", 24 * 3_600_000) for number in range(count)}


KINDS: Mapping[str, Callable[[int], dict[str, str]]] = {
    "same keys": same_keys,
    "other constants": other_constants,
    "disjoint funnels": disjoint_funnels,
    "shared starts": shared_starts,
}
