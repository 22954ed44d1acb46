"""``gpu_memory=`` bounds what lies on the device at any time, measured on a device that counts it; or an error names what would do."""

from __future__ import annotations

import gc
import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.engine.input.device.uploads import load
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.read_tables import read_events
from gpu_cep.engine.phase_one.device import chain_walks, in_pieces, walked_matches, window_searches
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory, memory_of
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.row_patterns import device_matches
from gpu_cep.errors import EngineUnavailable
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.gpu.foreign import Foreign, strict_if_simulated
from tests.gpu.strict_arrays import StrictDevice

SMALL, LARGE = 500, 1500


def events(size, *, types="ABC", streams=4, ties=1):
    """Events of all kinds of columns; `ties` of them share each time."""
    return pa.table(
        {
            "ts": [e // ties for e in range(size)],
            "type": [types[e % len(types)] for e in range(size)],
            "k": [None if e % 50 == 0 else e % streams for e in range(size)],
            "s": [f"s{e % 7}" for e in range(size)],
            "x": [e * 7919 % 101 for e in range(size)],
            "y": [None if e % 10 == 0 else e * 31 % 17 / 2 for e in range(size)],
        }
    )


@dataclass(frozen=True)
class Case:
    text: str
    options: dict = field(default_factory=dict)
    events: dict = field(default_factory=dict)


LABELS = "PATTERN SEQ(A a, B b+, C c) WITHIN 9"
CASES = {
    "labels decide": Case(LABELS),
    "streams": Case(LABELS, {"partition_by": "k"}),
    "count": Case(LABELS, {"output": "count", "partition_by": "k"}),
    "count by states": Case("PATTERN SEQ(A a, B b+, C c) WITHIN 40", {"output": "count", "strategy": "skip_till_any_match"}),
    "count by many states": Case(
        "PATTERN AND(A a, B b, C c, A d) WITHIN 40",
        {"output": "count", "strategy": "skip_till_any_match", "partition_by": "k"},
        {"ties": 3},
    ),
    "many small streams": Case("PATTERN SEQ(A a, B b) WITHIN 900", {"output": "count", "partition_by": "k"}, {"streams": 500}),
    "ties and keys": Case(
        "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 9",
        {"partition_by": ["k", "s", "y"], "order_by": "x"},
        {"ties": 3},
    ),
    "programs": Case("PATTERN SEQ(a, b) WHERE a.x * 2 < 150 AND b.y + b.x > 3 AND a.k = b.k WITHIN 9"),
    "six variables": Case("PATTERN SEQ(A a, B b, C c, A d, B e, C f) WITHIN 30"),
    "every event starts a window": Case("PATTERN SEQ(a, b, c) WHERE a.x >= 0 AND b.x > a.x AND b.x < c.x WITHIN 3 EVENTS"),
    "unfiltered": Case(LABELS, {"prune": ["summary", "chain"], "partition_by": "s"}),
    "long windows": Case("PATTERN SEQ(A a, B b+, C c) WITHIN 250", {"partition_by": "k"}, {"streams": 1}),
    "matches of many events": Case("PATTERN SEQ(A a, B b+, C c) WITHIN 100", {}, {"types": "A" + "B" * 18 + "C"}),
    "many matches": Case("PATTERN SEQ(A a, B b) WITHIN 400", {}, {"types": "A" * 19 + "B"}),
    "neighbours": Case(
        "PATTERN SEQ(a, b+, c) WHERE b[1].x < a.x AND b[i].x < b[i-1].x AND c.x > last(b.x) WITHIN 40", {"strategy": "strict_contiguity"}
    ),
    "neighbours that do not overlap": Case(
        "PATTERN SEQ(a, b, c) WHERE b.x > a.x - 95 WITHIN 40", {"strategy": "strict_contiguity", "after_match": "skip_past_last"}
    ),
    "runs that do not overlap": Case(
        "PATTERN SEQ(A a, B b+, C c) WHERE b[i].x >= b[i-1].x - 95 WITHIN 40", {"after_match": "skip_past_last"}, {"types": "AABBC"}
    ),
    "negations": Case(
        "PATTERN SEQ(NOT(A n), B b, NOT(B m), C c, NOT(C o)) WHERE n.x > b.x + 90 AND m.x > c.x + 90 AND o.x > b.x + 90 WITHIN 40",
        {"partition_by": "k"},
    ),
    "single variables, robustly": Case(
        "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 40", {"strategy": "robust_skip_till_next_match"}
    ),
    "negations, robustly": Case(
        "PATTERN SEQ(A a, NOT(B n), B b, C c) WHERE b.x > a.x AND n.x > c.x WITHIN 40", {"strategy": "robust_skip_till_next_match"}
    ),
    "branches": Case(
        "PATTERN SEQ(A a, OR(B b+, C c), OR(A d, B e)) WHERE b.x > a.x AND c.x > a.x AND d.x > a.x WITHIN 40", {"partition_by": "k"}
    ),
    "branches of the same variables": Case("PATTERN OR(SEQ(A a, B b, NOT(C n)), SEQ(A a, NOT(C m), B b)) WHERE b.x > a.x WITHIN 40"),
    "neighbours of streams": Case("PATTERN SEQ(a, b) WHERE b.x > a.x WITHIN 40", {"strategy": "strict_contiguity", "partition_by": "k"}),
    "alternatives of neighbours": Case(
        "PATTERN OR(SEQ(a, b+), SEQ(c, d, e)) WHERE b[1].x > a.x AND b[i].x >= b[i-1].x - 90 AND d.x < c.x AND e.y > d.y - 3 WITHIN 40",
        {"strategy": "partition_contiguity", "partition_by": "k"},
    ),
    "neighbours by programs": Case(
        "PATTERN SEQ(a, b{2,}, c+) WHERE abs(b[i].y - b[i-1].x) > 1 AND c[1].x * 2 - last(b.y) > 3 AND NOT c[i].x > c[i-1].x WITHIN 9",
        {"strategy": "strict_contiguity", "partition_by": "s"},
    ),
}
PAIR = "DEFINE A AS x > 50, B AS y > 3 PATTERN A overlaps B; A during B; A contains B WITHIN 30"
SITUATIONS = {
    "situations": Case(PAIR),
    "situations of streams": Case(PAIR, {"partition_by": "k", "order_by": "x"}),
    "situations, early": Case(PAIR, {"partition_by": "s", "detect": "early"}, {"ties": 3}),
    "situations with gaps": Case(PAIR, {"partition_by": "k", "gap": 1}, {"streams": 40}),
    "situations of an event": Case(
        "DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C' PATTERN A meets B AND B meets C", {"output": "count"}
    ),
    "many candidates": Case("DEFINE A AS type = 'A', B AS type = 'B' AT LEAST 1 PATTERN A before B WITHIN 100"),
    "situations of many names": Case(
        f"DEFINE {', '.join(f'N{n} AS x % {n + 2} = 0 AT LEAST 2' for n in range(9))} PATTERN "
        + " AND ".join(f"N{n} before N{n + 1}; N{n} meets N{n + 1}" for n in range(8))
        + " WITHIN 25",
        {"output": "count"},
    ),
    "tiny streams": Case(PAIR, {"partition_by": "k"}, {"streams": 700}),
}
# Windows of these are searched, for which budgets of other cases have no room.
SEARCHED = {
    "sets with conditions": Case("PATTERN SEQ(AND(A a, B b+), C c) WHERE b[i].x > b[i-1].x AND c.x > a.x WITHIN 40", {"partition_by": "k"}),
    "any matches that are counted": Case(
        "PATTERN SEQ(A a, B b+, C c) WHERE b[i].x > b[i-1].x AND c.x > a.x WITHIN 15",
        {"strategy": "skip_till_any_match", "output": "count", "algorithm": "ses_automaton"},
    ),
}
# Windows of these are walked, for which budgets that just hold their events have no room.
WALKED = ("negations", "single variables, robustly", "negations, robustly", "runs that do not overlap")
WINDOWED = {name: CASES[name] for name in WALKED} | SEARCHED
each_case = pytest.mark.parametrize("case", CASES.values(), ids=[*CASES])
each_case_and_situations = pytest.mark.parametrize("case", (CASES | SITUATIONS).values(), ids=[*CASES, *SITUATIONS])


@pytest.fixture(scope="module")
def counted(device):
    """A device that counts what arrays hold of it."""
    if not device.simulated:
        pytest.skip("a card does not count what one run takes")
    found = strict_if_simulated(device)
    # what was there before is none of a run's arrays: without it, garbage is collected in a tenth of the time
    gc.freeze()
    with patch("gpu_cep_kernels.device.selection._find_device", lambda: found):
        yield found
    gc.unfreeze()


def run(case, table, **options):
    # in one thread, since others may still hold what they last worked on
    return gpu_cep.match(table, case.text, **{"output": "indices", "threads": 1, **case.options, **options})


def peak(device: StrictDevice, case, table, budget):
    """The most bytes that a run within a budget holds; its matches are those of the CPU."""
    ledger = device.xp.ledger
    # the traceback of an error before may still hold arrays
    gc.collect()
    before = ledger.live
    ledger.restart()
    found = run(case, table, engine="gpu", gpu_memory=budget)
    assert found.equals(run(case, table, engine="cpu"))
    assert ledger.live == before
    return ledger.peak - before


def refused(case, table, budget):
    """The bytes that the error for a budget names."""
    with pytest.raises(EngineUnavailable, match="larger gpu_memory") as raised:
        run(case, table, engine="gpu", gpu_memory=budget)
    return int(re.search(r"the query takes ([\d,]+) bytes at least", str(raised.value))[1].replace(",", ""))


@each_case_and_situations
@pytest.mark.parametrize("size", [1, 40, pytest.param(300, marks=pytest.mark.full), pytest.param(LARGE, marks=pytest.mark.full)])
def test_the_least_budget_is_named_and_kept(counted, case, size):
    table = events(size, **case.events)
    least = refused(case, table, 1)
    assert refused(case, table, least - 1) == least
    assert 0 < peak(counted, case, table, least) <= least


@each_case_and_situations
@pytest.mark.parametrize(("factor", "size"), [(3, SMALL), *(pytest.param(each, LARGE, marks=pytest.mark.full) for each in (1.5, 3, 10))])
def test_budgets_are_kept(counted, case, factor, size):
    table = events(size, **case.events)
    budget = int(factor * refused(case, table, 1))
    assert 0 < peak(counted, case, table, budget) <= budget


class Planned(Exception):
    """Ends a run where it is known what it takes, which is its argument."""


def planned_memory(case, table):
    """What the plan of a case makes of a budget."""

    def noted(*arguments):
        raise Planned(memory_of(*arguments))

    with patch.object(in_pieces, "memory_of", noted), pytest.raises(Planned) as raised:
        run(case, table, engine="gpu")
    return lambda size: replace(raised.value.args[0], bytes=size)


@each_case
def test_budgets_that_just_hold_all_events_at_once_are_kept_and_used(counted, case):
    table = events(LARGE, **case.events)
    memory = planned_memory(case, table)
    holding = bisect_left(range(1 << 30), LARGE, key=lambda size: memory(size).batch_events(min(LARGE, memory(size).kept_events)))
    budget = max(holding, refused(case, table, 1))
    assert budget / 5 < peak(counted, case, table, budget) <= budget


def budget_of_windows(case, table, windows):
    """The least budget in which so many windows are searched at once."""
    memory, windows_at_once = planned_memory(case, table), walked_matches.windows_at_once
    with patch.object(walked_matches, "windows_at_once", wraps=windows_at_once) as opened:
        run(case, table, engine="gpu")
    walk, *others = opened.call_args.args
    return bisect_left(range(1 << 30), windows, key=lambda size: windows_at_once(replace(walk, memory=memory(size)), *others))


@pytest.mark.parametrize("case", WINDOWED.values(), ids=[*WINDOWED])
def test_budgets_that_just_hold_some_windows_at_once_are_kept(counted, case):
    table, pieces = events(300, **case.events), []
    budget = budget_of_windows(case, table, 30)
    kind = window_searches.WindowSearches if case in SEARCHED.values() else chain_walks.ChainWalks
    count = kind.count

    def noted(walks, low, high):
        pieces.append(high - low)
        return count(walks, low, high)

    with patch.object(kind, "count", noted):
        assert 0 < peak(counted, case, table, budget) <= budget
    assert max(pieces) == 30 < sum(pieces)


@pytest.mark.parametrize("after", ["all", "skip_to_next"])
def test_budgets_are_kept_where_matches_of_many_branches_are_counted(counted, after):
    branches, size = 24, 3300
    alternatives = ", ".join(f"SEQ(a{n}, b{n})" for n in range(branches))
    conditions = " AND ".join(f"b{n}.x > a{n}.x - {60 + n}" for n in range(branches))
    options = {"strategy": "strict_contiguity", "output": "count", "after_match": after}
    case, table = Case(f"PATTERN OR({alternatives}) WHERE {conditions} WITHIN 40", options), events(size)
    budget = refused(case, table, 1)
    # in a single batch, an event takes more than 50 bytes
    assert 50 * size < peak(counted, case, table, budget) <= budget


@pytest.mark.parametrize("skip", ["PAST LAST ROW", "TO NEXT ROW"])
@pytest.mark.parametrize(("streams", "within"), [(1, ""), (700, ""), (3, "WITHIN 900")])
@pytest.mark.parametrize("size", [SMALL, pytest.param(LARGE, marks=pytest.mark.full)])
def test_budgets_that_just_hold_the_search_of_rows_are_kept_and_used(counted, skip, streams, within, size):
    table, profile = events(4 * size, streams=streams), gpu_cep.Profile()
    text = f"""MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES count(*) AS c AFTER MATCH SKIP {skip} PATTERN (A+ B? X{{0,12}}) {within}
        DEFINE A AS x >= 0, B AS y > PREV(y))"""
    holds = DeviceMemory.holds

    def noted(memory, taken, rows):
        raise Planned(taken, rows)

    case = Case(text, {"output": "matches"})
    with patch.object(DeviceMemory, "holds", noted), pytest.raises(Planned) as raised:
        run(case, table, engine="gpu")
    label = memory_of(counted, make_plan("PATTERN SEQ(a, b, c)", table.schema, make_options(), Settings())).label
    budget = bisect_left(range(1 << 30), True, key=lambda size: holds(DeviceMemory(size, label), *raised.value.args))
    # long matches are followed, too
    with patch.object(device_matches, "_FEW_FOLLOWED", ()):
        assert budget / 3 < peak(counted, replace(case, options=case.options | {"profile": profile}), table, budget) <= budget
    assert "left" not in profile.counts


KINDS = [pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64()]
TEXT = [pa.string(), pa.dictionary(pa.int8(), pa.string())]


def loading(device, column):
    """Bytes that loading all of a column, and where it is NULL, takes; and what it is said to take."""
    table = {"ts": pa.array(range(len(column))), "c": column}
    read = read_events(table) if isinstance(column, Foreign) else pa.table(table)
    plan = make_plan("PATTERN a", read.schema, make_options(), Settings())
    columns = DeviceColumns(EventColumns(read, plan.query, threads=1), device)
    values, present = columns.values(1), columns.present(1)
    ledger = device.xp.ledger
    before = ledger.live
    ledger.restart()
    loaded = load(device, [source for source in (values, present) if source is not None], 3, len(column))
    assert loaded
    return ledger.peak - before, columns.row_bytes(1) * (len(column) - 3)


@pytest.mark.parametrize("kind", [*KINDS, *TEXT], ids=str)
@pytest.mark.parametrize("nulls", [False, True])
def test_loading_a_column_takes_what_it_is_said_to_take(counted, kind, nulls):
    numbers = np.arange(4000) % 2
    values = pa.array(numbers.astype(str) if kind in TEXT else numbers).cast(pa.string() if kind in TEXT else pa.int64())
    if kind in (pa.date32(), pa.date64()):
        values = values.cast(pa.int32()).cast(pa.date32())
    column = values.cast(kind) if kind not in TEXT else values.dictionary_encode().cast(kind)
    column = column.take(pa.array(np.arange(4000), mask=np.arange(4000) % 3 == 0)) if nulls else column
    taken, said = loading(counted, column)
    assert 0 < taken <= said + 4096


@pytest.mark.parametrize("kind", ["b1", "i1", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("strided", [False, True])
def test_so_does_loading_an_array_of_the_device(counted, kind, strided):
    taken, said = loading(counted, Foreign(counted, (np.arange(4000) % 2).astype(kind), strided=strided))
    assert taken <= said + 4096
