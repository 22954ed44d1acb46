"""The thesis' worked examples of phase 1, and what each pruning step leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from examples.chemo import P1, P2, chemo
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.times import load_pieces_of_times
from gpu_cep.engine.lowering.pattern_tables import MatcherTables, matcher_tables
from gpu_cep.engine.phase_one.label_events import label_events
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.windows.candidates import BranchWindows, branch_windows, match_windows, prune_windows
from gpu_cep.keywords import make_options
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.settings import PRUNING_STEPS, Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.phase_one.window_conditions import prefix_counts
from tests.kernels.statistics import summary_statistics


@dataclass(frozen=True)
class PhaseOne:
    """What phase 1 makes of a query over events."""

    plan: EventPlan
    columns: EventColumns
    ordered: OrderedEvents
    tables: MatcherTables
    windows: BranchWindows

    def numbers(self, events):
        """The thesis' numbers of ordered events."""
        return (self.ordered.rows[events] + 1).tolist()

    def window(self, number):
        """The window that starts at the thesis' event of that number, by the thesis' numbers."""
        start = np.flatnonzero(self.ordered.rows == number - 1)
        return self.numbers(slice(int(start[0]), int(self.windows.ends(start)[0])))


def phase_one(events, pattern, prune, timestamp="T"):
    options = make_options(timestamp=timestamp)
    plan = make_plan(pattern, events.schema, options, Settings(prune=prune))
    columns = EventColumns(events, plan.query, plan.dictionaries, threads=1)
    times = load_pieces_of_times(columns, plan.query.timestamp)
    ordered = order_events(plan, columns, times, label_events(plan, columns, 1), encode_keys(columns, plan.stream_keys), 1)
    (batch,) = cut_batches(plan, ordered)
    (tables,) = matcher_tables(plan, columns)
    windows = branch_windows(match_windows(plan, ordered, batch, Profile()), ordered, batch, tables, WHOLE, Profile())
    return PhaseOne(plan, columns, ordered, tables, windows)


def test_match_windows_of_example_4_5():
    """Figures 4.5 and 5.3: both hold 13 events and span at most fifteen days."""
    found = phase_one(chemo(), P2, ())
    assert found.window(1) == list(range(1, 14))
    assert found.window(2) == list(range(2, 15))


def test_filtered_match_windows_of_example_5_4():
    """All but e5 and e7 satisfy the properties of a variable (the example's list drops e13 from W1, Example 5.5 counts it)."""
    found = phase_one(chemo(), P2, ("filter",))
    assert found.window(1) == [1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13]
    assert found.window(2) == [2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14]


@pytest.mark.parametrize("prune", [("filter", "summary"), ("filter", "chain"), ("summary",), ("chain",)])
def test_candidate_match_windows_of_example_5_5(prune):
    """W1 satisfies the necessary match conditions; no variable of B1 can bind the first event of W2 (Condition 5.2)."""
    found = phase_one(chemo(), P2, prune)
    starts = found.numbers(prune_windows(found.plan, found.windows, found.tables, Profile()).starts)
    assert 1 in starts
    assert 2 not in starts


def test_derived_keys_of_example_5_8():
    """PID connects c, p and b, so it splits each window."""
    found = phase_one(chemo(), P2, ("filter", "partition"))
    assert [found.columns.name(column) for column in found.plan.derived] == ["PID"]
    assert found.window(1) == [1, 3 - 1, 3, 10, 12]
    assert found.window(4) == [4, 6, 8, 9, 11, 13, 14]


def test_summary_statistics_of_figure_5_4():
    """The window grows over patient 1's events, then e1 leaves it; counters by Def. 5.2."""
    found = phase_one(chemo(), P2, ("filter", "partition"))
    assert found.numbers(slice(0, 5)) == [1, 2, 3, 10, 12]
    starts, ends = np.array([0, 0, 0, 0, 0, 1]), np.array([1, 2, 3, 4, 5, 5], np.int32)
    counts = np.empty(found.windows.next_events.occurrence.shape, np.int32)
    prefix_counts(found.windows.labels[0], 3, counts)
    statistics = summary_statistics(starts, ends, found.windows.next_events, found.tables.pattern, counts)
    assert [variable.name for variable in found.plan.query.variables] == ["c", "p", "b"]
    assert statistics.tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 2, 0], [1, 2, 1], [0, 2, 0]]


def test_the_first_event_leaves_its_window_without_undercounting():
    """On b, a, b the papers' incremental update forgets the last b; Def. 5.2 counts it."""
    events = pa.table({"T": [1, 2, 3], "type": ["B", "A", "B"]})
    found = phase_one(events, "PATTERN SEQ(A a, B b) WITHIN 10", ("summary",))
    assert found.numbers(prune_windows(found.plan, found.windows, found.tables, Profile()).starts) == [2]


def counted(events, pattern, **options):
    profile = cep.Profile()
    cep.match(events, pattern, profile=profile, **options)
    return profile.counts


def test_the_waterfall_of_p1():
    everything = counted(chemo(), P1, timestamp="T")
    assert (everything["events"], everything["filtered"], everything["matches"]) == (15, 15, 3)
    # a c, p or d starts a window: nine do, and those of e1, e6 and e7 hold all that can follow
    assert (everything["windows"], everything["candidates"]) == (9, 3)


def test_the_waterfall_never_rises():
    events = pa.table({"ts": range(60), "type": [*"AXBXXACXBX"] * 6, "k": [e % 3 for e in range(60)]})
    pattern = "PATTERN SEQ(A a, B b{2,}, C c) WHERE a.k = b.k AND b.k = c.k WITHIN 25"
    counts = counted(events, pattern)
    steps = [counts[name] for name in ("events", "filtered", "windows", "summarised", "candidates")]
    assert steps == sorted(steps, reverse=True)
    assert counts["filtered"] == 30
    assert counts["matches"] <= counts["candidates"]


def test_no_pruning_looks_at_every_event():
    counts = counted(chemo(), P1, timestamp="T", prune=False)
    assert (counts["filtered"], counts["candidates"]) == (15, counts["windows"])
    assert "summarised" not in counts


@pytest.mark.parametrize("steps", [True, False, *PRUNING_STEPS, ["filter", "chain"], []])
def test_any_pruning_gives_the_same_matches(steps):
    wanted = cep.match(chemo(), P1, timestamp="T", output="indices")
    assert cep.match(chemo(), P1, timestamp="T", output="indices", prune=steps).equals(wanted)


def test_a_profile_prints_itself():
    profile = cep.Profile()
    cep.match(chemo(), P1, timestamp="T", profile=profile)
    assert str(profile).startswith("events 15 → filtered 15 → windows 9")
    assert all(seconds >= 0 for seconds in profile.seconds.values())
