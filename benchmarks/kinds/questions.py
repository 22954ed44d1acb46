"""The kinds of questions, as users ask them: each with its events and with what its matches are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

from benchmarks.kinds import events
from benchmarks.kinds.events import KEY, VALUE, Shape, streams_of
from benchmarks.workloads.questions import WORKLOADS, Workload, window_ticks
from gpu_cep.choices import AfterMatch, Detect


class Asking(TypedDict, total=False):
    """The keywords that a kind of question is asked with, beside that of the key."""

    after_match: AfterMatch
    detect: Detect


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of question; its C++ loop has its name.

    `asked` says it in words. `pattern`, `strategy`, `conditions` and `define` are the query's clauses without keys. The key stands
    in the text as the condition [key], or, if `partitioned`, as PARTITION BY: where matches of one key must not overlap, and for
    situations. `workload` says which events there are and how long the window is, which `conditions` may call {ticks}; then there is
    no WITHIN. `shape` changes the events. `variables` are those of a match in the order of the loop's columns, True for those with a
    list of rows. `labels` are the event types in the order of the loop's labels. `items` are what RETURN asks for.
    """

    name: str
    asked: str
    pattern: str
    workload: Workload
    variables: Mapping[str, bool]
    items: str
    strategy: str = ""
    conditions: tuple[str, ...] = ()
    define: str = ""
    labels: tuple[str, ...] = ()
    shape: Shape | None = None
    partitioned: bool = False
    within: bool = True
    after_match: AfterMatch = "all"
    detect: Detect = "final"

    @property
    def keyed(self) -> bool:
        return self.workload.key is not None

    @property
    def options(self) -> Asking:
        """Return the keywords that are not at their defaults."""
        asking = Asking()
        if self.after_match != "all":
            asking["after_match"] = self.after_match
        if self.detect != "final":
            asking["detect"] = self.detect
        return asking

    def ticks(self, rows: int) -> int:
        """Return the length of the window among so many events."""
        return window_ticks(self.workload, streams_of(self.workload, rows))

    def text(self, rows: int, *, key: bool = True, items: bool = False) -> str:
        """Return the query over so many events, with the key or without, and with RETURN or without."""
        ticks = self.ticks(rows)
        equal = (f"[{KEY}]",) if key and self.keyed and not self.partitioned else ()
        conditions = " AND ".join((*equal, *self.conditions)).replace("{ticks}", str(ticks))
        clauses = [
            f"PARTITION BY {KEY}" if key and self.partitioned else "",
            f"DEFINE {self.define}" if self.define else "",
            f"PATTERN {self.pattern}",
            f"WHERE {self.strategy} {{ {conditions or 'TRUE'} }}" if self.strategy else "",
            f"WITHIN {ticks}" if self.within else "",
            f"RETURN {self.items}" if items else "",
        ]
        return " ".join(clause for clause in clauses if clause)


CONTIGUOUS, NEXT, ANY = "partition_contiguity", "skip_till_next_match", "skip_till_any_match"
ROBUST = "robust_skip_till_next_match"
_A_B_C = {"a": False, "b": True, "c": False}
_SITUATIONS = {"H": True, "L": True}


def _symbols(window: int, *, ties: bool = False, **shares: float) -> Workload:
    """Return events of 1,000 symbols, of these types and of noise."""
    return _keyed(1_000, window, shares, ties)


def _users(window: int, **shares: float) -> Workload:
    """Return events of 100,000 users or patients, of these types and of noise."""
    return _keyed(100_000, window, shares, False)


def _keyed(streams: int, window: int, shares: Mapping[str, float], ties: bool, key: str | None = KEY) -> Workload:
    noise = {"Q": 1 - sum(shares.values())}
    return Workload("", "", {**shares, **noise}, VALUE, key, streams, window, smallest_gap=0 if ties else 1, text_keys=True)


def _falls(name: str, before: str) -> tuple[str, str]:
    return f"{name}[1].x < {before}", f"{name}[i].x < {name}[i-1].x"


def _rises(name: str, before: str) -> tuple[str, str]:
    return f"{name}[1].x > {before}", f"{name}[i].x > {name}[i-1].x"


# fmt: off
_SHAPES = (
    Kind(
        "rise_fall", "a rise, then a fall, per symbol; neighbours, no overlaps", "SEQ(a, b+, c)", _symbols(20), _A_B_C,
        "a.ts AS since, count(b) AS steps, last(b.x) AS peak, c.x AS fall", CONTIGUOUS, (*_rises("b", "a.x"), "c.x < last(b.x)"),
        shape=events.walks, partitioned=True, after_match="skip_past_last",
    ),
    Kind(
        "v_shape", "a fall, then a rise, per symbol; neighbours, all starts", "SEQ(a, b+, c+)", _symbols(20),
        {"a": False, "b": True, "c": True}, "a.ts AS since, last(b.x) AS bottom, last(c.x) AS top",
        CONTIGUOUS, (*_falls("b", "a.x"), *_rises("c", "last(b.x)")), shape=events.walks,
    ),
    Kind(
        "w_shape", "fall, rise, fall, rise, per symbol; neighbours, no overlaps", "SEQ(a, b+, c+, d+, e+)", _symbols(30),
        {"a": False, "b": True, "c": True, "d": True, "e": True},
        "a.ts AS since, last(b.x) AS first, last(d.x) AS second, last(e.ts) AS done",
        CONTIGUOUS, (*_falls("b", "a.x"), *_rises("c", "last(b.x)"), *_falls("d", "last(c.x)"), *_rises("e", "last(d.x)")),
        shape=events.walks, partitioned=True, after_match="skip_past_last",
    ),
    Kind(
        "label_runs", "runs of about 200 events of one type; neighbours", "SEQ(A a, B b+, C c)", _symbols(1_000), _A_B_C,
        "a.ts AS since, count(b) AS events, avg(b.x) AS mean, c.x AS end", CONTIGUOUS, labels=("A", "B", "C"), shape=events.runs_of_types,
    ),
    Kind(
        "sessions", "sessions: events of a user without a long gap", "SEQ(a, b+)", _users(2), {"a": False, "b": True},
        "a.ts AS since, last(b.ts) AS until, count(b) AS more", CONTIGUOUS, ("b[1].ts - a.ts <= {ticks}", "b.ts - prev(b.ts) <= {ticks}"),
        partitioned=True, within=False, after_match="skip_past_last",
    ),
)

_FIRST_ONES = (
    Kind(
        "next_kleene", "`SEQ(A, B+, C)` per symbol", "SEQ(A a, B b+, C c)", replace(WORKLOADS["stocks"], value=VALUE, key=KEY), _A_B_C,
        "a.ts AS since, count(b) AS many, avg(b.x) AS mean, c.x AS end", NEXT, labels=("A", "B", "C"),
    ),
    Kind(
        "next_rising", "`SEQ(A, B+, C)` per symbol, B rising, C below the last", "SEQ(A a, B b+, C c)",
        _symbols(40, A=0.05, B=0.15, C=0.05), _A_B_C, "a.ts AS since, count(b) AS many, last(b.x) AS top, c.x AS end",
        NEXT, ("b[i].x > b[i-1].x", "c.x < last(b.x)"), labels=("A", "B", "C"),
    ),
    Kind(
        "mean_above", "`SEQ(A, B+, C)` per symbol, the mean of B above A", "SEQ(A a, B b+, C c)", _symbols(40, A=0.05, B=0.15, C=0.05),
        _A_B_C, "a.ts AS since, avg(b.x) AS mean, c.ts AS until", NEXT, ("avg(b.x) > a.x",), labels=("A", "B", "C"),
    ),
    Kind(
        "negation_middle", "an A, no N, then a C, per symbol", "SEQ(A a, NOT(N n), C c)", _symbols(20, ties=True, A=0.05, N=0.05, C=0.05),
        {"a": False, "c": False}, "a.ts AS since, c.ts AS until, c.x - a.x AS change", NEXT, labels=("A", "N", "C"),
    ),
    Kind(
        "negation_end", "an A, then a C, and no N, per symbol", "SEQ(A a, C c, NOT(N n))", _symbols(20, ties=True, A=0.05, C=0.05, N=0.03),
        {"a": False, "c": False}, "a.ts AS since, c.ts AS until, c.x - a.x AS change", NEXT, labels=("A", "C", "N"),
    ),
    Kind(
        "or_of_two", "one of two sequences, per symbol", "OR(SEQ(A a, B b), SEQ(C c, D d))",
        _symbols(20, ties=True, A=0.05, B=0.05, C=0.05, D=0.05), {"a": False, "b": False, "c": False, "d": False},
        "a.ts AS rise, c.ts AS fall, b.x AS high, d.x AS low", NEXT, ("b.x > a.x", "d.x < c.x"), labels=("A", "B", "C", "D"),
    ),
    Kind(
        "distant_next", "the next C twice an A, per symbol, in a window of 1,000 events", "SEQ(A a, C c)", _symbols(1_000, A=0.02, C=0.05),
        {"a": False, "c": False}, "a.ts AS since, c.ts AS until, c.x / a.x AS times", NEXT, ("c.x > 2 * a.x",), labels=("A", "C"),
        shape=events.even_values,
    ),
    Kind(
        "set_then_one", "C, P+ and D in any order, then B, per patient, 80 % noise", "SEQ(AND(C c, P p+, D d), B b)",
        replace(WORKLOADS["medical"], value=VALUE, key=KEY, text_keys=True), {"c": False, "p": True, "d": False, "b": False},
        "c.ts AS c, count(p) AS doses, avg(p.x) AS mean, d.ts AS d, b.x AS result", NEXT, labels=("C", "P", "D", "B"),
    ),
    Kind(
        "set_of_six", "six types in any order, then one, per symbol", "SEQ(AND(A a, B b, C c, D d, E e, F f), G g)",
        _symbols(80, A=0.05, B=0.05, C=0.05, D=0.05, E=0.05, F=0.05, G=0.05), dict.fromkeys("abcdefg", False),
        "a.ts AS a, f.ts AS f, g.ts AS until, g.x AS result", NEXT, labels=tuple("ABCDEFG"),
    ),
    Kind(
        "funnel", "a funnel of five steps, per user", "SEQ(view a, cart b, address c, payment d, order e)",
        _users(60, view=0.08, cart=0.06, address=0.05, payment=0.05, order=0.05), dict.fromkeys("abcde", False),
        "a.ts AS since, b.ts AS cart, e.ts AS until, e.x AS paid", NEXT, labels=("view", "cart", "address", "payment", "order"),
    ),
    Kind(
        "robust", "robust: the first B above A from which a C far above B follows, per symbol", "SEQ(A a, B b, C c)",
        _symbols(40, A=0.05, B=0.15, C=0.05), dict.fromkeys("abc", False), "a.ts AS since, b.x AS middle, c.x AS top",
        ROBUST, ("b.x > a.x", "c.x > b.x + 40"), labels=("A", "B", "C"),
    ),
)

_ALL_ONES = (
    Kind(
        "distant_any", "all pairs with a C twice an A, in a window of 1,000 events", "SEQ(A a, C c)",
        _keyed(1, 1_000, {"A": 0.02, "C": 0.02}, True, None), {"a": False, "c": False}, "a.ts AS since, c.ts AS until, c.x / a.x AS times",
        ANY, ("c.x > 2 * a.x",), labels=("A", "C"),
    ),
    Kind(
        "selective_prices", "selective `SEQ` of three with rising prices, all matches", "SEQ(Quote q, Trade t, Halt h)",
        replace(WORKLOADS["selective"], value=VALUE), dict.fromkeys("qth", False), "q.x AS quote, t.x AS trade, h.ts AS halt",
        ANY, ("q.x < t.x", "t.x < h.x"), labels=("Quote", "Trade", "Halt"),
    ),
)

_LASTING = (
    Kind(
        "situations_few", "one situation overlaps another, few matches", "H overlaps L", _symbols(100), _SITUATIONS,
        "start(H) AS since, avg(H.x) AS high, end(L) AS until", define="H AS x > 95, L AS y > 95", shape=events.levels, partitioned=True,
    ),
    Kind(
        "situations_many", "one situation before another, many matches", "H before L", _symbols(150), _SITUATIONS,
        "start(H) AS since, avg(H.x) AS high, end(L) AS until", define="H AS x > 50, L AS y > 50", shape=events.levels, partitioned=True,
    ),
    Kind(
        "situations_early", "one situation overlaps or meets another, detected early", "H overlaps L; H meets L", _symbols(100),
        _SITUATIONS, "start(H) AS since, avg(H.x) AS high, start(L) AS followed", define="H AS x > 80, L AS y > 80", shape=events.levels,
        partitioned=True, detect="early",
    ),
)

# fmt: on
KINDS = {kind.name: kind for kind in (*_SHAPES, *_FIRST_ONES, *_ALL_ONES, *_LASTING)}
