"""SASE+'s experiments 1 to 6 (section 6). The paper's digits are lost in the copy at hand: numbers here are chosen."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.papers.figures import Experiment, Figure, Panel, Point, Way, algorithms, sum_of_counts
from benchmarks.workloads.paper_events import tickers

RISING = 0.7
WINDOW = 500  # events of a symbol
WINDOWS = (125, 250, 500, 1_000)
STREAM_WINDOWS = 10  # so many windows of each of the two symbols
START = "a[1].price % 100 = 0"
LAST = "b.volume < 150"

STRATEGIES = {"s1": "partition_contiguity", "s2": "skip_till_next_match"}
ITERATORS = {"p1": "TRUE", "p2": "a[i].price > a[i-1].price", "p3": "a[i].price > min(a[..i-1].price)"}
# The component that makes runs fail late: c falls back behind the last a, but stays above the first.
FALLING_BACK = "c.price > a[1].price AND c.price < a[a.LEN].price"


def query(strategy: str, iterator: str, window: int, longer: bool = False) -> str:
    pattern = "SEQ(Stock+ a[], Stock b, Stock c)" if longer else "SEQ(Stock+ a[], Stock b)"
    conditions = [START, ITERATORS[iterator], LAST, *([FALLING_BACK] if longer else [])]
    where = " AND ".join(condition for condition in conditions if condition != "TRUE")
    return f"PATTERN {pattern} WHERE {STRATEGIES[strategy]} {{ {where} }} WITHIN {window} EVENTS"


def _point(x: int | str, text: str, window: int) -> Point:
    return Point(x, (text,), partial(tickers, rising=RISING), 2 * STREAM_WINDOWS * window, {"partition_by": "symbol"})


def _types(ways: tuple[Way, ...], title: str) -> Panel:
    """Return all query types in the paper's order: by predicate, then by strategy."""
    points = tuple(_point(f"{p} {s}", query(s, p, WINDOW), WINDOW) for p in ITERATORS for s in STRATEGIES)
    return Panel(title, "query", points, ways)


def _windows(strategy: str, iterator: str, ways: tuple[Way, ...]) -> Panel:
    points = tuple(_point(window, query(strategy, iterator, window), window) for window in WINDOWS)
    return Panel(f"{iterator} {strategy}", "window, events", points, ways)


def _with(ways: tuple[Way, ...], suffix: str = "", **options: object) -> tuple[Way, ...]:
    return tuple(replace(way, name=way.name + suffix, options={**way.options, **options}) for way in ways)


ROWS = algorithms(first="backtracking")
COUNTED = tuple(replace(way, count=sum_of_counts) for way in _with(ROWS, ", counted", output="count"))

TYPES = Experiment("sase-types", lambda: (_types(ROWS, "all results"),), ("steps",))
BY_WINDOW = Experiment(
    "sase-windows", lambda: tuple(_windows(s, p, ROWS) for p, s in (("p2", "s1"), ("p1", "s2"), ("p2", "s2"), ("p3", "s2")))
)
NOT_OVERLAPPING = Experiment(
    "sase-non-overlapping",
    lambda: (
        Panel(
            "non-overlapping results",
            "query",
            tuple(
                _point(f"{p}{', c' if longer else ''} {s}", query(s, p, WINDOW, longer), WINDOW)
                for longer in (False, True)
                for p in ("p1", "p2")
                for s in STRATEGIES
            ),
            _with(ROWS, after_match="skip_past_last"),
        ),
    ),
    ("steps",),
)
COUNTED_TYPES = Experiment("sase-counted", lambda: (_types((*ROWS, *COUNTED), "all results"),))
COUNTED_BY_WINDOW = Experiment("sase-counted-windows", lambda: tuple(_windows("s2", p, COUNTED) for p in ITERATORS))

FIGURES = (
    Figure(
        "sase-1",
        "Iterator predicate and strategy",
        TYPES,
        "events/s",
        "Every event satisfies p1, and both strategies are equally slow; p2 selects, and partition contiguity (s1) is an order "
        "of magnitude faster than skip-till-next-match (s2); p3 hardly selects, and is near to p1.",
        "p1 and p3 are slow and p2 is fast here, too. p2's two strategies lie closer: their runs are so short that reading and "
        "ordering the events takes most of the time. p3 with s1 is faster than p1, for a price below the first one ends a "
        "contiguous run.",
        growth=True,
    ),
    Figure(
        "sase-2b",
        "Partition window",
        BY_WINDOW,
        "events/s",
        "The window hardly matters for p2 with partition contiguity; throughput of p1 and p3 with skip-till-next-match falls "
        "with its square.",
        "The same, as far as windows are long enough to outweigh the fixed cost of a call: the stream is ten windows of each "
        "symbol, and so grows with them.",
        growth=True,
    ),
    Figure(
        "sase-2c",
        "Cost against output complexity",
        BY_WINDOW,
        "ns/bound event",
        "Time is linear in the sum of all matches' lengths.",
        "At most linear: what an event in a match costs does not grow as matches become longer and more, but for what memory "
        "takes when the result leaves the caches; it falls where a call's fixed cost, or reading the events, is spread over "
        "more of them.",
        growth=True,
    ),
    Figure(
        "sase-3",
        "One run at a time, or all at once: all results",
        TYPES,
        "steps/event",
        "Following all runs at once is faster than backtracking, which reads an event again for each run.",
        "The other way round, most for p1 and p3. A step of `backtracking`, and of `ses_automaton`, tries an event for a run; "
        "one of `nfab` offers an event to a run, or reads an event of a match back off the shared buffer, which is most of its "
        "work here, where all matches are asked for. In compiled code trying an event again costs less than that: the path that "
        "backtracking follows is the match already. Rates stand under sase-1.",
    ),
    Figure(
        "sase-4",
        "Non-overlapping results",
        NOT_OVERLAPPING,
        "events/s",
        "Both algorithms are fast for p1 and p2, whose runs soon end in a match; with c, where most runs fail late, "
        "backtracking is an order of magnitude slower.",
        "A match that is found cuts off the runs that it overlaps, whichever algorithm finds it; of p1's matches, 7,771 in all, 111 are "
        "found, from which 69 are selected. So p1 and p2 take little more than reading and ordering the events. With c and "
        "skip-till-next-match, each run's b looks for its c, if need be up to where a later run has found one. There `nfab`, whose "
        "runs are merged, makes a third of backtracking's steps for p1, and is faster, as in the paper; for p2, whose runs are few, it "
        "makes twice as many. Under partition contiguity such runs end at once.",
    ),
    Figure(
        "sase-5",
        "Runs merged",
        COUNTED_TYPES,
        "events/s",
        "Merging runs that will select the same events is faster for all queries, most for those with many runs.",
        "Matches are counted on `nfab`'s buffer without being read off it. p1's runs are one: with this window that about makes up for "
        "what a pass costs in any case, and gains with longer ones (sase-6). p3's, told apart by their least price, are fewer than the "
        "starts, but an event costs more to offer to a run, with what has to be compared and kept, than `backtracking` takes to try "
        "it for a start. p2's runs are short: reading and ordering the events is most of it.",
    ),
    Figure(
        "sase-6",
        "Runs merged, by window, without construction",
        COUNTED_BY_WINDOW,
        "events/s",
        "The longer the window, the more merging gains; for p1 and p2 more than for p3.",
        "The same for p1: its runs are one, whatever the window, while `backtracking` follows one for each start in it. p3's are told "
        "apart by their least price, of which a longer window holds more: merging leaves too few together to pay for itself. p2's runs "
        "are short, and what grows is the stream that the fixed cost of a call is spread over.",
        growth=True,
    ),
)
