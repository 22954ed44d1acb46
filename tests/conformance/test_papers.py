"""The other papers' queries, end to end over small streams of ours; what they print of matches is held to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.options import EventOptions
from tests.lang.test_papers import CONTAMINATION, SHOPLIFTING, STOCKS
from tests.results import matches_of

ANY = "skip_till_any_match"
NOON = datetime(2024, 5, 1, 12)


def matched(text: str, events: pa.Table, **options: Any) -> list[tuple[tuple[int, ...], ...]]:
    """The bindings of each match, by the engine; the oracle has the same."""
    found = matches_of(gpu_cep.match(events, text, output="indices", **options))
    assert found == oracle.matches(parse(text), events, EventOptions(**options))
    return [tuple(match.values()) for match in found]


def at(minutes: list[int]) -> pa.Array:
    return pa.array([NOON + timedelta(minutes=minute) for minute in minutes], pa.timestamp("us"))


def letters(types: str, **columns: list[Any]) -> pa.Table:
    return pa.table({"ts": at(list(range(len(types)))), "type": list(types), **columns})


# SASE+, figure 1.


def test_shoplifting() -> None:
    """Tag 1 is paid for, tag 2 is not, and tag 3 leaves too late for the window."""
    events = pa.table(
        {
            "ts": at([0, 1, 2, 10, 20, 30, 900]),
            "type": ["Shelf", "Shelf", "Shelf", "Register", "Exit", "Exit", "Exit"],
            "tag_id": [1, 2, 3, 1, 1, 2, 3],
        }
    )
    assert matched(SHOPLIFTING, events) == [((1,), (5,))]
    assert matched(SHOPLIFTING.replace("12 hours", "20 hours"), events) == [((1,), (5,)), ((2,), (6,))]


def test_contamination() -> None:
    """From the farm to the plant, and from there to two shops; each chain of shipments is a match, nothing else is."""
    events = pa.table(
        {
            "ts": at([0, 10, 20, 30, 40]),
            "type": ["contaminated", "Shipment", "Shipment", "Shipment", "Shipment"],
            "kind": ["Alert", "Shipment", "Shipment", "Shipment", "Shipment"],
            "site": ["farm", None, None, None, None],
            "from": [None, "farm", "plant", "plant", "mill"],
            "to": [None, "plant", "shop 1", "shop 2", "shop 3"],
        }
    )
    found = matched(CONTAMINATION, events, type_column="kind")
    assert [bound for _, bound in found] == [(1,), (1, 2), (1, 3)]


def test_a_trend_of_stocks() -> None:
    """Prices rise above the average so far, not always above the price before; then the volume falls to less than 80 % of the last."""
    rows = [
        # minute, symbol, price, volume
        (0, "X", 100.0, 1200),
        (1, "Y", 500.0, 2000),
        (2, "X", 110.0, 1100),
        (3, "X", 106.0, 900),
        (4, "X", 101.0, 850),
        (5, "X", 108.0, 800),
        (6, "Y", 400.0, 100),
        (7, "X", 90.0, 600),
    ]
    minutes, symbols, prices, volumes = map(list, zip(*rows, strict=True))
    events = pa.table({"ts": at(minutes), "type": ["Stock"] * 8, "symbol": symbols, "price": prices, "volume": volumes})
    found = matched(STOCKS, events)
    # 101 is no more than the average of 100, 110 and 106, and 850 no less than 80 % of 900
    assert ((0, 2, 3, 5), (7,)) in found
    assert ((1,), (6,)) in found
    assert all(symbols[a[0]] == symbols[b[0]] for a, b in found)
    returned = gpu_cep.match(events, f"{STOCKS} RETURN count(a) AS many, avg(a.price) AS mean, b.volume AS fell_to")
    assert {"many": 4, "mean": 106.0, "fell_to": 600} in returned.drop(["match_start", "match_end"]).to_pylist()


@pytest.mark.parametrize("query", [SHOPLIFTING, CONTAMINATION, STOCKS])
def test_sase_queries_over_no_events(query: str) -> None:
    schema = {
        "ts": pa.timestamp("us"), "type": pa.string(), "tag_id": pa.int64(), "site": pa.string(), "from": pa.string(),
        "to": pa.string(), "symbol": pa.string(), "price": pa.float64(), "volume": pa.int64(),
    }  # fmt: skip
    assert matched(query, pa.table({name: pa.array([], kind) for name, kind in schema.items()})) == []


def test_non_overlapping_matches() -> None:
    """One match starts after the previous completes (section 2)."""
    query = "PATTERN SEQ(Stock+ a[], Stock b) WHERE partition_contiguity(a[], b) { [symbol] AND a[i].price > a[i-1].price AND b.price < 5 }"
    prices = [6, 7, 1, 8, 9, 2]
    events = pa.table({"ts": range(6), "type": ["Stock"] * 6, "symbol": ["X"] * 6, "price": prices})
    assert matched(query, events) == [((0, 1), (2,)), ((1,), (2,)), ((2, 3, 4), (5,)), ((3, 4), (5,)), ((4,), (5,))]
    assert matched(query, events, after_match="skip_past_last") == [((0, 1), (2,)), ((3, 4), (5,))]


# Lazy evaluation, section 4.

CAED = "PATTERN AND(SEQ(A a, B b), SEQ(C c, D d), E e) WITHIN 1 hour"


def test_sequence_and_conjunction() -> None:
    """Patterns 1 and 2."""
    assert matched("PATTERN SEQ(A a, B b, C c) WITHIN 1 hour", letters("ACBBC"), strategy=ANY) == [((0,), (2,), (4,)), ((0,), (3,), (4,))]
    assert matched("PATTERN AND(A a, B b, C c) WITHIN 1 hour", letters("CBA"), strategy=ANY) == [((2,), (1,), (0,))]


def test_partial_sequences() -> None:
    """Pattern 3: what one sequence orders, the other does not; an event that two of them share stands behind both."""
    assert matched(CAED, letters("CAEDB"), strategy=ANY) == [((1,), (4,), (0,), (3,), (2,))]
    assert matched(CAED, letters("DAEBC"), strategy=ANY) == []
    shared = "PATTERN AND(SEQ(A a, B b), SEQ(C c, B b)) WITHIN 1 hour"
    assert matched(shared, letters("CBAB"), strategy=ANY) == [((2,), (3,), (0,))]


def test_negation() -> None:
    """Pattern 4: only events of type B that satisfy the condition with an event of type C must not appear."""
    query = "PATTERN SEQ(A a, NOT(B b), C c, D d) WHERE skip_till_any_match {b.x < c.y} WITHIN 1 hour"
    events = letters("ABCCD", x=[0, 5, 0, 0, 0], y=[0, 0, 9, 3, 0])
    assert matched(query, events) == [((0,), (3,), (4,))]


def test_iteration() -> None:
    """Pattern 5: the seven matches that the paper lists."""
    found = matched("PATTERN SEQ(A a, B + b[], C c) WITHIN 1 hour", letters("ABBBC"), strategy=ANY)
    assert [bound for _, bound, _ in found] == [(1,), (1, 2), (1, 2, 3), (1, 3), (2,), (2, 3), (3,)]


@pytest.mark.parametrize(
    ("condition", "bindings"),
    [
        ("AVG(b[i].x) < c.y", [(1,), (1, 2), (2,)]),  # Pattern 6
        ("b[i].x = b[i-1].x", [(1,), (2,), (3,)]),  # Pattern 7
        ("sum(b.x) >= 7 AND count(b) <= 2", [(1, 3), (2, 3)]),
    ],
)
def test_aggregations(condition: str, bindings: list[tuple[int, ...]]) -> None:
    events = letters("ABBBC", x=[0, 1, 2, 6, 0], y=[0, 0, 0, 0, 3])
    found = matched(f"PATTERN SEQ(A a, B + b[], C c) WHERE skip_till_any_match {{{condition}}} WITHIN 1 hour", events)
    assert [bound for _, bound, _ in found] == bindings


def test_repetition() -> None:
    """Section 4.5.2: from two to three."""
    found = matched("PATTERN SEQ(A a, B{2,3} b[], C c) WITHIN 1 hour", letters("ABBBC"), strategy=ANY)
    assert [bound for _, bound, _ in found] == [(1, 2), (1, 2, 3), (1, 3), (2, 3)]


def test_disjunction() -> None:
    """Section 4.6: the matches of each part."""
    found = matched("PATTERN OR(SEQ(A a, B b), AND(C c, D d)) WITHIN 1 hour", letters("DABC"), strategy=ANY)
    assert found == [((), (), (3,), (0,)), ((1,), (2,), (), ())]
