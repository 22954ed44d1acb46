"""The thesis' figures 4.12 to 4.14 and 5.5 to 5.7; 6.6 to 6.8 are ``robust.py``'s."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.papers.figures import Experiment, Figure, Panel, Point, Way, algorithms
from benchmarks.papers.permutations import PERMUTATIONS
from benchmarks.workloads.paper_events import NYSE_SHARES, ONCO_SHARES, SEED, copied, nyse, onco
from gpu_cep.plan.settings import EVENT_ALGORITHMS

UNPRUNED = Way("ses_automaton, unpruned", {"algorithm": "ses_automaton", "prune": False})
PRUNED_WAYS = algorithms(without=("backtracking",))  # which is the SES automaton, too
# The thesis has 341,055 events and 1 M.
SETS_EVENTS = 5_000  # read by 720 automata
WINDOW_EVENTS = 20_000
COPIES = tuple(range(1, 11))
STREAM_EVENTS = tuple(range(20_000, 200_001, 20_000))
# P5 binds one type to a quantified variable and to two others: it has so many matches that its streams are shorter, and copied less.
MANY_MATCHES = "P5"
FEWER_WINDOW_EVENTS, FEWER_COPIES = 2_500, tuple(range(1, 5))
FEWER_STREAM_EVENTS = tuple(range(2_000, 20_001, 2_000))
PATTERN_EVENTS = 100_000
ANY_EVENTS = 20_000
PATTERNS_OF_A_SIZE = 3  # ten in the thesis
VARIABLES = (1, 2, 4, 6, 8, 10)
ANY_VARIABLES = (1, 2, 3, 4, 5)
GROWING_EVENTS = (100, 1_000, 10_000, 100_000, 1_000_000)

# The second algorithm is ZStream's join tree in the thesis.
SECOND = next(name for name in ("join_tree", "lazy_chain") if name in EVENT_ALGORITHMS)


@dataclass(frozen=True, slots=True)
class Data:
    """One of the two data sets: `key` is what all events of a match share, `distinct` and `same` are the types of six variables."""

    name: str
    stream: Callable[[int], pa.Table]
    key: str | None
    distinct: tuple[str, ...]
    same: str

    def query(self, sets: Sequence[Sequence[tuple[str, str]]], within: str, conditions: Sequence[str] = ()) -> str:
        """Return the query for a sequence of sets of variables, each a type and a name with its quantifier."""
        elements = [_set([f"{kind} {name}" for kind, name in members]) for members in sets]
        where = " AND ".join([*([f"[{self.key}]"] if self.key else []), *conditions])
        return f"PATTERN SEQ({', '.join(elements)}) {f'WHERE {where} ' if where else ''}WITHIN {within}"


def _set(members: Sequence[str]) -> str:
    return members[0] if len(members) == 1 else f"AND({', '.join(members)})"


ONCO = Data("Onco", onco, "patient", ("C", "D", "P", "R", "B", "H"), "M")
NYSE = Data("NYSE", nyse, None, ("AAPL", "GOOG", "IBM", "S01", "S02", "S03"), "MSFT")


# Figure 4.12

_SIX = tuple(f"v{number}" for number in range(1, 7))
_SPLITS = {1: (6,), 2: (3, 3), 3: (2, 2, 2), 4: (2, 2, 1, 1), 5: (2, 1, 1, 1, 1), 6: (1,) * 6}


def _split(variables: Sequence[tuple[str, str]], sizes: Sequence[int]) -> list[Sequence[tuple[str, str]]]:
    bounds = np.cumsum([0, *sizes])
    return [variables[low:high] for low, high in zip(bounds[:-1], bounds[1:], strict=True)]


def _against_permutations(data: Data, within: str, exclusive: bool) -> tuple[Panel, Panel]:
    types = data.distinct if exclusive else (data.same,) * len(_SIX)
    variables = list(zip(types, _SIX, strict=True))
    name = f"{data.name}, {'P1: distinct types' if exclusive else 'P2: one type'}"
    ways = (PERMUTATIONS, UNPRUNED, *PRUNED_WAYS)

    def panel(title: str, axis: str, choices: dict[int, list[Sequence[tuple[str, str]]]]) -> Panel:
        points = [Point(x, (data.query(sets, within),), data.stream, SETS_EVENTS) for x, sets in choices.items()]
        return Panel(f"{name}, {title}", axis, tuple(points), ways)

    return (
        panel("one set", "variables", {size: [variables[:size]] for size in range(1, 7)}),
        panel("six variables", "sets", {number: _split(variables, sizes) for number, sizes in _SPLITS.items()}),
    )


SETS = Experiment(
    "thesis-permutations",
    lambda: tuple(
        panel
        for data, within in ((ONCO, "11 days"), (NYSE, "1 s"))
        for exclusive in (True, False)
        for panel in _against_permutations(data, within, exclusive)
    ),
)


# Figures 4.13 and 4.14

_QUANTIFIED = {"P1": "v1 v2 v3", "P2": "v1+ v2 v3", "P3": "v1+ v2+ v3", "P4": "v1 v2 v3", "P5": "v1+ v2 v3"}
_EXCLUSIVE = ("P1", "P2", "P3")
WINDOWS = {"Onco": "5 days", "NYSE": "1 s"}


def _complexity_query(data: Data, pattern: str) -> tuple[str, tuple[str, ...]]:
    """Return one of the patterns P1 to P5, and the types whose events are copied for it."""
    first = data.distinct[:3] if pattern in _EXCLUSIVE else (data.same,) * 3
    last = data.distinct[3:5]
    sets = [list(zip(first, _QUANTIFIED[pattern].split(), strict=True)), [(last[0], "v4"), (last[1], "v5")]]
    return data.query(sets, WINDOWS[data.name]), (*first, *last)


def _copied_stream(data: Data, types: Sequence[str], times: int) -> Callable[[int], pa.Table]:
    return lambda events: copied(data.stream(events), types, times)


def _windows_panel(data: Data, pattern: str) -> Panel:
    query, types = _complexity_query(data, pattern)
    events, copies = (FEWER_WINDOW_EVENTS, FEWER_COPIES) if pattern == MANY_MATCHES else (WINDOW_EVENTS, COPIES)
    points = [Point(times, (query,), _copied_stream(data, types, times), events) for times in copies]
    return Panel(f"{data.name}, {pattern}", "events of the pattern's types, times", tuple(points), (UNPRUNED, *PRUNED_WAYS))


def _streams_panel(data: Data, pattern: str) -> Panel:
    query, _ = _complexity_query(data, pattern)
    sizes = FEWER_STREAM_EVENTS if pattern == MANY_MATCHES else STREAM_EVENTS
    points = [Point(events, (query,), data.stream, events) for events in sizes]
    return Panel(f"{data.name}, {pattern}", "events", tuple(points), (UNPRUNED, *PRUNED_WAYS))


WINDOW_SIZES = Experiment(
    "thesis-windows", lambda: tuple(_windows_panel(data, pattern) for data in (ONCO, NYSE) for pattern in _QUANTIFIED)
)
STREAM_SIZES = Experiment(
    "thesis-streams", lambda: tuple(_streams_panel(data, pattern) for data in (ONCO, NYSE) for pattern in _QUANTIFIED)
)


# Figures 5.5 to 5.7

_ONCO_SETS = ((("C", "c"), ("D", "d")), (("P", "p+"), ("R", "r+")), (("B", "b"), ("H", "h")))
_NYSE_SETS = ((("AAPL", "a+"), ("GOOG", "g+")), (("IBM", "i+"),))
_NYSE_CONDITIONS = ("prev(a.price) < a.price", "prev(g.price) < g.price", "prev(i.price) > i.price")
ONCO_DAYS = tuple(range(5, 51, 5))
NYSE_MILLISECONDS = tuple(range(10, 101, 10))


def _prunings(algorithm: str, partitioned: bool) -> tuple[Way, ...]:
    """Return the baseline without pruning, then filtering (f), partitioning (p) and necessary conditions (c), each with those before it."""
    steps = {"baseline": (), "f": ("filter",), "f+p": ("filter", "partition"), "f+p+c": ("filter", "partition", "summary", "chain")}
    if not partitioned:
        steps = {"baseline": (), "f": ("filter",), "f+c": ("filter", "summary", "chain")}
    return tuple(Way(name, {"algorithm": algorithm, "prune": prune}) for name, prune in steps.items())


def _drawn_queries(data: Data, shares: Sequence[str], variables: int, within: str, as_set: bool) -> tuple[str, ...]:
    """Return some queries for so many variables, their types drawn at random."""
    rng = np.random.default_rng(SEED + variables)
    queries = []
    for _ in range(PATTERNS_OF_A_SIZE):
        types = rng.choice(list(shares), variables, replace=False)
        members = [(str(kind), f"v{number}") for number, kind in enumerate(types, 1)]
        queries.append(data.query([members] if as_set else [[member] for member in members], within))
    return tuple(queries)


def _pattern_panels(algorithm: str, variables: Sequence[int], events: int, **options: str) -> tuple[Panel, ...]:
    panels = []
    for data, shares, within in ((ONCO, ONCO_SHARES, "10 days"), (NYSE, NYSE_SHARES, "20 ms")):
        ways = _prunings(algorithm, data.key is not None)
        for name, as_set in (("P_seq", False), ("P_set", True)):
            points = tuple(
                Point(size, _drawn_queries(data, list(shares), size, within, as_set), data.stream, events, options) for size in variables
            )
            panels.append(Panel(f"{data.name}, {name}", "variables", points, ways))
    return (*panels, _onco_windows(algorithm, events, options), _nyse_windows(algorithm, events, options))


def _onco_windows(algorithm: str, events: int, options: dict[str, str]) -> Panel:
    points = tuple(Point(days, (ONCO.query(_ONCO_SETS, f"{days} days"),), onco, events, options) for days in ONCO_DAYS)
    return Panel("Onco, P_onco", "window, days", points, _prunings(algorithm, True))


def _nyse_query(milliseconds: int) -> str:
    return NYSE.query(_NYSE_SETS, f"{milliseconds} ms", _NYSE_CONDITIONS)


def _nyse_windows(algorithm: str, events: int, options: dict[str, str]) -> Panel:
    points = tuple(Point(length, (_nyse_query(length),), nyse, events, options) for length in NYSE_MILLISECONDS)
    return Panel("NYSE, P_nyse", "window, ms", points, _prunings(algorithm, False))


def _growing_panel(algorithm: str) -> Panel:
    points = tuple(Point(events, (_nyse_query(20),), nyse, events) for events in GROWING_EVENTS)
    return Panel(f"NYSE, P_nyse, {algorithm}", "events", points, _prunings(algorithm, False))


PRUNED = Experiment("thesis-pruned", lambda: _pattern_panels("ses_automaton", VARIABLES, PATTERN_EVENTS))
PRUNED_SECOND = Experiment(
    "thesis-pruned-second", lambda: _pattern_panels(SECOND, ANY_VARIABLES, ANY_EVENTS, strategy="skip_till_any_match")
)
PRUNED_GROWING = Experiment("thesis-pruned-growing", lambda: tuple(map(_growing_panel, dict.fromkeys(("ses_automaton", SECOND)))))

FIGURES = (
    Figure(
        "thesis-4.12",
        "SES automaton against all permutations",
        SETS,
        "seconds",
        "With distinct types the SES automaton stays roughly constant while the set of automata grows hyperexponentially with "
        "the variables of a set, up to three orders of magnitude apart; with one type both grow so, up to one order apart.",
        "The same shape. Six variables in one set are 720 automata; each of them labels and orders the events anew, while the "
        "thesis' read the stream once, so the ratio counts that too. Where there is one order only, the baseline, whose plans "
        "are made ahead, is the cheaper. Its times include matches that the sets do not have: the automaton of one order "
        "passes over an event that another order takes. They are dropped, outside the time, before numbers are compared.",
    ),
    Figure(
        "thesis-4.13",
        "Longer match windows",
        WINDOW_SIZES,
        "seconds",
        "Time grows linearly with the window for distinct types (P1 to P3), polynomially for one type (P4, P5).",
        "The axis is how often the events of the pattern's types are repeated among as many events (table 4.1). Repeating them "
        "adds windows that have a start, as well as events to each, until nearly all events are the pattern's: P1 grows about "
        "as the starts do, each plus makes the growth steeper, and P5 grows as a power, as in the thesis. With pruning, P1 to "
        "P3 follow from the next occurrence of each type without any automaton, and the window hardly matters.",
        growth=True,
    ),
    Figure(
        "thesis-4.14",
        "Longer streams",
        STREAM_SIZES,
        "seconds",
        "Time grows linearly with the stream for all patterns.",
        "Linear too, where it is more than the fixed cost of a call; pruned runs of P1 to P3 hardly get there.",
        growth=True,
        logarithmic=False,
    ),
    Figure(
        "thesis-5.5",
        "Two phases: the pattern, with the SES automaton",
        PRUNED,
        "events/s",
        "Filtering (f), partitioning (p) and necessary conditions (c) raise throughput, the more the more variables: by more "
        "than two orders of magnitude for sets, less for sequences; for P_onco the more the longer the window.",
        "The same order, with smaller factors: the baseline is no plain automaton. Also without pruning the properties of all "
        "events are judged in bulk before, and the automaton jumps to the next event that fits; so filtering has little left "
        "to remove, and partitioning and necessary conditions do the rest. For P_onco the factor grows with the window, as in "
        "the thesis.",
        ratios=True,
    ),
    Figure(
        "thesis-5.6",
        f"Two phases: the pattern, with {SECOND}",
        PRUNED_SECOND,
        "events/s",
        "With ZStream's join trees the factor is three to four: ZStream filters events as they come, and joins on keys.",
        f"ZStream is not at hand; `{SECOND}` stands for it, under skip-till-any-match and so with fewer variables. It, too, "
        "takes only events that fit a variable, whatever is pruned, and its time goes into the matches; so little is left to "
        "gain.",
        ratios=True,
    ),
    Figure(
        "thesis-5.7",
        "Two phases: the size of the data",
        PRUNED_GROWING,
        "events/s",
        "The factor does not depend on the size of the stream.",
        "Here the fixed cost of a call hides the factor in short streams; it shows as the events outweigh that cost.",
        ratios=True,
    ),
)
