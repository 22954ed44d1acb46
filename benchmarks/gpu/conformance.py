"""The GPU's matches against the CPU's: targeted corners, then random queries over random tables, binding for binding."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import gpu_cep
from benchmarks.gpu.findings import Check, Deadline, Finding, fault, in_time, row
from benchmarks.gpu.side_by_side import outcomes, processes
from gpu_cep.engine.phase_one.device.chain_walks import STEPS_PER_LAUNCH
from gpu_cep.plan.settings import PRUNING_STEPS
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.phase_one.tiles import GROUP, TILE
from tests.drawn.queries import AFTER_MATCH, Case, cases, trend_cases, whole_language
from tests.drawn.row_patterns import ALONE, BESIDE, clauses
from tests.drawn.situations import situation_cases

OUTPUTS = ("indices", "count")
# Random cases run in rounds, each from a seed of its own, until time is up; a quick check has one.
ROUND, QUICK_ROUND = 50, 10
# Of the time that is left, for corners; of what they leave, for random cases, which may end in the middle of one.
CORNERS_SHARE, RANDOM_SHARE = 0.6, 0.85


class Disagreement(AssertionError):
    """GPU and CPU answered differently."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """Cases of one kind that both engines answered alike; `matched` of them have matches, `refused` end in an error on both."""

    kind: str
    cases: int
    matched: int
    refused: int

    def cells(self) -> dict[str, str]:
        return {"cases": self.kind, "agreed": f"{self.cases:,}", "with matches": f"{self.matched:,}", "errors on both": f"{self.refused:,}"}


def compare(case: Case, **options: Any) -> str:
    """Return what both engines say to a case: ``matched``, ``empty`` or ``refused``.

    Raises
    ------
    Disagreement
        They differ; the message has the whole case.
    """
    expected, found = (answer(case, engine=engine, **options) for engine in ("cpu", "gpu"))
    if found != expected:
        asked = [case.text, repr({**case.options, **options}), repr(case.events.to_pydict())]
        raise Disagreement("\n".join([*asked, f"CPU: {expected}", f"GPU: {found}"]))
    if expected.startswith("error"):
        return "refused"
    return "matched" if expected.count("{") > 0 else "empty"


def answer(case: Case, **options: Any) -> str:
    """Return rows and types of the result, or the kind of error, as text: NaN equals NaN there, and -0.0 is not 0.0."""
    try:
        table = gpu_cep.match(case.events, case.text, **{**case.options, **options})
    except gpu_cep.EngineUnavailable:
        raise
    except gpu_cep.CepError as error:
        return f"error {type(error).__name__}"
    return f"{table.schema.to_string()}\n{table.to_pylist()!r}"


def run(check: Check) -> Iterator[Finding]:
    """Yield corners first: they name what is wrong. On a card both are asked in processes side by side."""
    if check.device.simulated:
        yield from in_time(check, {kind: kind for kind in CORNERS}, partial(corner, modes=MODES[:1]))
        found = random_cases(0, 1, check.deadline, check.quick)
        yield from (*found.faults, *_random_rows([found]))
        return
    threads, said = available_threads(), list[RandomCases]()

    def take(name: str, found: RandomCases) -> list[Finding]:
        said.append(found)
        return found.faults

    with processes(threads) as pool:
        corners = {pool.submit(corner, kind, MODES): kind for kind in check.asked(CORNERS)}
        yield from outcomes(corners, CORNERS_SHARE * check.deadline.left, lambda kind, found: found)
    with processes(threads) as pool:
        deadline = Deadline.after(RANDOM_SHARE * check.deadline.left)
        parts = {number: pool.submit(random_cases, number, threads, deadline, check.quick) for number in range(threads)}
        drawn = {part: f"random cases, part {number}" for number, part in parts.items()}
        yield from outcomes(drawn, check.deadline.left, take)
    yield from _random_rows(said)


# Corners ---------------------------------------------------------------------

LEAST, GREATEST = -(2**63), 2**63 - 1
SIZE = 64


def _inexact() -> pa.Table:
    """`z` is ``y * 0.1 + 0.2``, each operation rounded: a contraction to one fused operation would give other bits in many rows."""
    random = np.random.default_rng(SIZE)
    y, w = random.random(SIZE), random.random(SIZE)
    columns = {"ts": np.arange(SIZE), "y": y, "w": w, "z": y * 0.1 + 0.2, "p": y * w, "q": y * w - w * 0.3}
    return pa.table({"type": ["A", "B"] * (SIZE // 2), **columns})


def _special() -> pa.Table:
    y = [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324, 1e308, None, 1.0, -1.0]
    x = [LEAST, LEAST + 1, -1, 0, 1, GREATEST - 1, GREATEST, None, 2**53, 2**53 + 1]
    rows = len(y) * 3
    return pa.table(
        {
            "ts": [e // 2 for e in range(rows)],
            "type": [("A", "B", "A", None)[e % 4] for e in range(rows)],
            "k": pa.array([None if e % 7 == 0 else e % 3 for e in range(rows)], pa.int64()),
            "x": pa.array(x * 3, pa.int64()),
            "y": pa.array(y * 3, pa.float64()),
        }
    )


def _extreme_times(kind: pa.DataType, values: list[Any]) -> pa.Table:
    times = [value for value in values for _ in range(3)]
    return pa.table({"ts": pa.array(times, kind), "type": ["B", "A", "B"] * len(values), "x": list(range(3 * len(values)))})


def _groups() -> pa.Table:
    """Return more events than a group of tiles has, in streams that are not in order; most fit no variable."""
    random, size = np.random.default_rng(SIZE), TILE * GROUP + TILE + 1
    types = random.choice([*"ABC", *"X" * 37], size)
    return pa.table(
        {"ts": np.arange(size) // 2, "type": types, "k": random.integers(-3, 4, size), "x": random.integers(0, 9, size)}
    )  # fmt: skip


def _long_run() -> pa.Table:
    """Return an A and a C with twice as many events of B and C between as a run may look at in a launch; the last C alone is above 1."""
    size = 2 * STEPS_PER_LAUNCH
    types = ["A", *"BC" * size, "C"]
    return pa.table({"ts": range(len(types)), "type": types, "x": [0] * (len(types) - 1) + [2]})


MODES = tuple(
    {"strategy": strategy, "ties": ties} for strategy in ("skip_till_any_match", "skip_till_next_match") for ties in ("strict", "position")
)


@dataclass(frozen=True, slots=True)
class Corners:
    """Queries over one table; each is asked with all modes and outputs."""

    kind: str
    events: Callable[[], pa.Table]
    queries: tuple[str, ...]
    options: Mapping[str, Any]

    def cases(self, modes: Sequence[Mapping[str, str]]) -> list[Case]:
        return [Case(text, self.events(), {**mode, **self.options}) for text in self.queries for mode in modes]


_WIDE = ", ".join(f"v{number}" for number in range(20))

CORNERS = {
    corners.kind: corners
    for corners in (
        Corners(
            "products and sums, which must not be fused",
            _inexact,
            (
                "PATTERN a WHERE a.y * 0.1 + 0.2 = a.z",
                "PATTERN a WHERE a.y * a.w - a.p = 0",
                "PATTERN a WHERE a.y * a.w - a.w * 0.3 = a.q",
                "PATTERN SEQ(A a, B b) WHERE a.y * b.w - a.y * b.w = 0 WITHIN 3",
                "PATTERN SEQ(A a, B b+) WHERE prev(b.y) * b.w + a.y > b.y * 0.1 + a.z WITHIN 6",
                "PATTERN a WHERE a.y % 0.1 < 0.05 AND a.y / a.w * a.w - a.y <> 0",
            ),
            {},
        ),
        Corners(
            "NaN, infinities, -0.0, NULLs and the ends of int64",
            _special,
            (
                "PATTERN SEQ(A a, B b+) WITHIN 3",
                "PATTERN SEQ(a, b) WHERE a.y < b.y WITHIN 4",
                "PATTERN SEQ(a, b) WHERE a.y = b.y AND a.x <> b.x WITHIN 4",
                "PATTERN SEQ(a, b) WHERE NOT (a.y < 0) AND b.y >= -0.0 WITHIN 2",
                "PATTERN SEQ(a, b) WHERE a.x < b.x WITHIN 2",
                "PATTERN SEQ(a, b) WHERE a.x < 9007199254740993.0 AND b.x = 9007199254740992e0 WITHIN 9",
                "PATTERN a WHERE a.x + 1 > 0",
                "PATTERN a WHERE a.x IS NULL OR a.x - 1 < a.x",
                "PATTERN a WHERE a.x BETWEEN -9223372036854775807 AND 9223372036854775807",
                "PARTITION BY y PATTERN SEQ(A a, B b)",
                "PARTITION BY k PATTERN SEQ(AND(A a, B b), c) WITHIN 9",
                "PARTITION BY x PATTERN SEQ(A a, b)",
                "PARTITION BY k PATTERN SEQ(A a, B b{2,3}) WITHIN 9 EVENTS",
                "PATTERN SEQ(a, b) WHERE [y] AND [k]",
            ),
            {"order_by": ["y", "x"]},
        ),
        Corners(
            "int64 times from end to end",
            lambda: _extreme_times(pa.int64(), [GREATEST, LEAST, 0, LEAST + 1, GREATEST - 1]),
            ("PATTERN SEQ(A a, B b+) WITHIN 1", "PATTERN SEQ(A a, B b) WITHIN 9223372036854775807", "PATTERN SEQ(B b+, A a)"),
            {},
        ),
        Corners(
            "infinite times, and zeros of both signs",
            lambda: _extreme_times(pa.float64(), [0.0, math.inf, -0.0, -math.inf, 5e-324]),
            ("PATTERN SEQ(A a, B b+) WITHIN 1", "PATTERN SEQ(A a, B b) WITHIN 1.5", "PATTERN SEQ(B b+, A a)"),
            {},
        ),
        Corners(
            "several groups of tiles",
            _groups,
            ("PATTERN SEQ(A a, B b) WITHIN 100", "PARTITION BY k PATTERN SEQ(A a, B b+, C c) WHERE a.x < 7 WITHIN 300"),
            {},
        ),
        Corners(
            "joins",
            _groups,
            ("PATTERN SEQ(A a, B b, C c) WHERE a.k = c.k AND a.x < b.x WITHIN 200", "PATTERN SEQ(A a, B b) WHERE a.x + b.x > 9 WITHIN 50"),
            {"strategy": "skip_till_any_match", "algorithm": "join_tree"},
        ),
        Corners(
            "runs of more steps than a launch allows",
            _long_run,
            ("PATTERN SEQ(A a, B b+, C c) WHERE b.x >= a.x AND c.x > a.x",),
            {"strategy": "skip_till_next_match"},
        ),
        Corners("more variables than a byte of labels has bits", _inexact, (f"PATTERN SEQ({_WIDE}) WITHIN 21 EVENTS",), {}),
        Corners(
            "no events",
            lambda: _special().slice(0, 0),
            ("PATTERN SEQ(A a, B b+) WITHIN 3", "PARTITION BY k PATTERN SEQ(AND(A a, B b), c)"),
            {},
        ),
    )
}


def corner(kind: str, modes: Sequence[Mapping[str, str]]) -> list[Finding]:
    """Return what both engines say to the queries of a corner; any process may ask."""
    said: Counter[str] = Counter()
    for case in CORNERS[kind].cases(modes):
        for output in OUTPUTS:
            try:
                said[compare(case, output=output)] += 1
            except Disagreement as differing:
                return [fault(f"{kind}:\n\n```\n{differing}\n```")]
    return [row("Corners", Agreed(kind, said.total(), said["matched"], said["refused"]))]


# Random cases ----------------------------------------------------------------

PRUNING = st.one_of(st.just(True), st.booleans(), st.sets(st.sampled_from(PRUNING_STEPS)).map(sorted))
# Two of which a card follows runs, and one whose matches it reads off labels.
LONGER = ("skip_till_next_match", "robust_skip_till_next_match", "partition_contiguity")
KINDS: Mapping[str, st.SearchStrategy[Case]] = {
    "random queries": whole_language(),
    "random queries, longer streams": whole_language(max_size=40, strategies=LONGER),
    "queries whose strategies differ": trend_cases(after_match=AFTER_MATCH),
    "random queries, single variables": cases(max_size=14, strategies=("skip_till_any_match",), quantifiers=("",)),
    "random queries over situations": situation_cases(),
    "random row patterns": clauses(ALONE + 2 * BESIDE, most=40).map(lambda drawn: Case(f"MATCH_RECOGNIZE ({drawn.clauses})", drawn.table)),
}
ALGORITHMS = {"random queries, single variables": ("auto", "lazy_chain", "lazy_tree", "join_tree", "ses_automaton")}


@dataclass(frozen=True, slots=True)
class RandomCases:
    """What both engines say to the random cases of a process, by kind; faults where they differ."""

    said: Mapping[str, Counter[str]]
    faults: list[Finding]


def random_cases(first: int, step: int, deadline: Deadline, quick: bool) -> RandomCases:
    """Return rounds `first`, ``first + step`` and so on of each kind, until time is up or the engines differ; a quick check has one round.

    The same round has the same cases every time.
    """
    found = RandomCases({kind: Counter[str]() for kind in KINDS}, [])
    for number in count(first, step):
        for kind in KINDS:
            if not deadline.passed:
                found.faults.extend(_round(kind, number, QUICK_ROUND if quick else ROUND, deadline, found.said[kind]))
        if quick or found.faults or deadline.passed:
            break
    return found


def _random_rows(parts: Sequence[RandomCases]) -> Iterator[Finding]:
    """Yield what all processes found, as a row for each kind; a kind of which no case was compared is a fault."""
    for kind in KINDS:
        said = sum((part.said[kind] for part in parts), Counter[str]())
        if said:
            yield row("Random cases", Agreed(kind, said.total(), said["matched"], said["refused"]))
        else:
            yield fault(f"{kind}: none was compared in time")


def _options(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return what is asked of a kind's cases; the clauses of row patterns say all themselves."""
    if kind == "random row patterns":
        return st.just({})
    algorithms = st.sampled_from(ALGORITHMS.get(kind, ("auto",)))
    return st.fixed_dictionaries({"prune": PRUNING, "output": st.sampled_from(OUTPUTS), "algorithm": algorithms})


def _round(kind: str, number: int, size: int, deadline: Deadline, said: Counter[str]) -> list[Finding]:
    """Return a fault where the engines differ; `said` counts what both say."""

    @seed(number)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(KINDS[kind], _options(kind))
    def agree(case: Case, options: dict[str, Any]) -> None:
        if not deadline.passed:
            said[compare(case, max_steps=10**6, **options)] += 1

    try:
        agree()
    except Disagreement as differing:
        return [fault(f"{kind}, round {number}:\n\n```\n{differing}\n```")]
    return []
