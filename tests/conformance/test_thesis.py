"""The match lists that the papers print, from the oracle and from the engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

from examples.chemo import P1, P2, chemo
from examples.stocks import P3, stocks
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import events as oracle
from gpu_cep.oracle.events import Match
from gpu_cep.oracle.options import EventOptions
from tests.results import matches_of


def from_oracle(events: pa.Table, text: str, strategy: str) -> list[Match]:
    return oracle.matches(parse(text), events, EventOptions(timestamp="T", strategy=strategy))


def from_engine(events: pa.Table, text: str, strategy: str) -> list[Match]:
    import gpu_cep

    return matches_of(gpu_cep.match(events, text, timestamp="T", strategy=strategy, output="indices"))


both = pytest.mark.parametrize("run", [from_oracle, from_engine])


def numbered(found: list[Match], numbers: list[int]) -> list[Match]:
    """The matches with the papers' event numbers, in an order of their own."""
    return in_order([{name: tuple(numbers[row] for row in rows) for name, rows in match.items()} for match in found])


def in_order(found: list[Match]) -> list[Match]:
    return sorted(found, key=lambda match: list(match.items()))


CHEMO_NUMBERS = list(range(1, 16))

# Example 3.4: c, p, d, b.
ALL_P1 = [
    {"c": (1,), "p": (3,), "d": (5,), "b": (12,)},
    {"c": (1,), "p": (10,), "d": (5,), "b": (12,)},
    {"c": (1,), "p": (3, 10), "d": (5,), "b": (12,)},
    {"c": (8,), "p": (6,), "d": (7,), "b": (13,)},
    {"c": (8,), "p": (6,), "d": (7,), "b": (14,)},
    {"c": (8,), "p": (9,), "d": (7,), "b": (13,)},
    {"c": (8,), "p": (9,), "d": (7,), "b": (14,)},
    {"c": (8,), "p": (11,), "d": (7,), "b": (13,)},
    {"c": (8,), "p": (11,), "d": (7,), "b": (14,)},
    {"c": (8,), "p": (6, 9), "d": (7,), "b": (13,)},
    {"c": (8,), "p": (6, 9), "d": (7,), "b": (14,)},
]

# Example 3.5.
NEXT_P1 = [
    {"c": (1,), "p": (3, 10), "d": (5,), "b": (12,)},
    {"c": (8,), "p": (9,), "d": (7,), "b": (13,)},
    {"c": (8,), "p": (6, 9), "d": (7,), "b": (13,)},
]


@both
def test_all_matches_of_p1(run):
    assert numbered(run(chemo(), P1, "skip_till_any_match"), CHEMO_NUMBERS) == in_order(ALL_P1)


@both
def test_skip_till_next_matches_of_p1(run):
    assert numbered(run(chemo(), P1, "skip_till_next_match"), CHEMO_NUMBERS) == in_order(NEXT_P1)


def without_d(matches: list[Match]) -> list[Match]:
    return in_order([{name: rows for name, rows in match.items() if name != "d"} for match in matches])


@both
def test_all_matches_of_p2(run):
    """The list of the match windows' Example 4, whose table lacks the thesis' e5 and counts on without it."""
    assert numbered(run(chemo(), P2, "skip_till_any_match"), CHEMO_NUMBERS) == without_d(ALL_P1)


@both
def test_skip_till_next_matches_of_p2(run):
    """The list of the match windows' Example 5; Example 5.3 of the thesis names the one that starts at e1."""
    assert numbered(run(chemo(), P2, "skip_till_next_match"), CHEMO_NUMBERS) == without_d(NEXT_P1)


@both
@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
def test_order_of_matches(run, strategy):
    """First event, last event, then binding by binding."""
    found = run(chemo(), P1, strategy)
    assert found == sorted(found, key=lambda m: (min(sum(m.values(), ())), max(sum(m.values(), ())), m["c"], m["p"], m["d"], m["b"]))


STOCK_NUMBERS = stocks()["n"].to_pylist()

# The list of Example 6.4; Example 6.5 prints nine of the eleven in Γ, and leaves out two that Def. 3.2 has.
NEXT_P3 = [
    {"s1": (1,), "s2": (4,), "s3": (5, 6), "s4": (7,)},
    {"s1": (3,), "s2": (4,), "s3": (5, 6), "s4": (7,)},
    {"s1": (4,), "s2": (5,), "s3": (6,), "s4": (7,)},
]
ALL_P3 = [
    *NEXT_P3,
    {"s1": (1,), "s2": (4,), "s3": (5,), "s4": (7,)},
    {"s1": (1,), "s2": (4,), "s3": (6,), "s4": (7,)},
    {"s1": (1,), "s2": (5,), "s3": (6,), "s4": (7,)},
    {"s1": (3,), "s2": (4,), "s3": (5,), "s4": (7,)},
    {"s1": (3,), "s2": (4,), "s3": (6,), "s4": (7,)},
    {"s1": (3,), "s2": (5,), "s3": (6,), "s4": (7,)},
    {"s1": (71,), "s2": (74,), "s3": (76,), "s4": (77,)},
    {"s1": (71,), "s2": (74,), "s3": (76,), "s4": (78,)},
]


@both
def test_all_matches_of_p3(run):
    assert numbered(run(stocks(), P3, "skip_till_any_match"), STOCK_NUMBERS) == in_order(ALL_P3)


@both
def test_skip_till_next_matches_of_p3(run):
    assert numbered(run(stocks(), P3, "skip_till_next_match"), STOCK_NUMBERS) == in_order(NEXT_P3)


# The list after Example 6.5: what skip-till-next finds, and the match from e71 on that it misses.
ROBUST_P3 = [*NEXT_P3, {"s1": (71,), "s2": (74,), "s3": (76,), "s4": (77,)}]


@both
def test_robust_matches_of_p3(run):
    assert numbered(run(stocks(), P3, "robust_skip_till_next_match"), STOCK_NUMBERS) == in_order(ROBUST_P3)


@both
def test_robust_without_the_event_that_misleads(run):
    """Example 6.8: without e72 it is e75 that skip-till-next takes for s3, and e76 behind it leads nowhere."""
    kept = [row for row, number in enumerate(STOCK_NUMBERS) if number >= 71 and number != 72]
    events, numbers = stocks().take(kept), [STOCK_NUMBERS[row] for row in kept]
    assert run(events, P3, "skip_till_next_match") == []
    assert numbered(run(events, P3, "robust_skip_till_next_match"), numbers) == [ROBUST_P3[-1]]


@both
@pytest.mark.parametrize("pattern", [P1, P2])
def test_robust_finds_what_skip_till_next_finds(run, pattern):
    """Theorem 6.1: its matches contain those of skip-till-next, and all are in Γ."""
    found = {
        strategy: {repr(match) for match in run(chemo(), pattern, strategy)}
        for strategy in ("skip_till_next_match", "robust_skip_till_next_match", "skip_till_any_match")
    }
    assert found["skip_till_next_match"] <= found["robust_skip_till_next_match"] <= found["skip_till_any_match"]
