"""Searches through windows on a device, which the CPU plays with spoilt memory: sets in any order, and robust runs of any length."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.phase_one.device import chain_walks, searched_plans, walked_matches, window_searches
from gpu_cep.engine.phase_one.device.batch_walks import windows_at_once
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory
from gpu_cep.engine.phase_one.device.held_windows import FIXED
from tests.effort import examples
from tests.engine.matchers.automaton.test_chains import QUERIES, drawn_events
from tests.engine.phase_one.test_chain_walks import (
    ALTERNATIVES,
    ANY_ORDER,
    CHOICE,
    COUNTED,
    NEGATED,
    ROOMY,
    SEARCHED,
    STEPPING_BACK,
    device,
    found,
)
from tests.gpu import strict_arrays
from tests.gpu.spoilt_device import SLOTS
from tests.kernel_cases.calls import arrays_in

# Events of type C are a c or a further b. No condition waits for the end of a match: it is searched.
CHOOSING_SET = "SEQ(AND(A a, b+), C c) WHERE b.k > 0 AND c.x > a.x"
# Windows of its last branch are left to the CPU.
CHOOSING_LAST = "OR(SEQ(A a, D d), SEQ(A a, b+, C c)) WHERE b.k > a.k AND c.x > a.x AND d.x > a.x"
LARGE = replace(ROOMY, chunk=10_000, kept_events=10_000, batch=10_000, bound_events=10_000, walked=10_000)
SINGLES = "SEQ(A a, B b, C c) WHERE skip_till_any_match { b.x > a.x AND c.x > a.x }"


@pytest.mark.parametrize("text", [*SEARCHED, CHOOSING_SET])
def test_all_matches_are_found_on_the_device(text):
    """Also where an event leaves a choice, so that a start has several matches."""
    events, profiles = drawn_events(np.random.default_rng(7), 400), (cep.Profile(), cep.Profile())
    wanted = found("cpu", events, f"{text} WITHIN 15", profile=profiles[0])
    counted = found("cpu", events, f"{text} WITHIN 15", output="count")
    searching = patch.object(searched_plans, "match_on_device", wraps=walked_matches.match_on_device)
    with device(), searching as searched:
        assert found("gpu", events, f"{text} WITHIN 15", profile=profiles[1]).equals(wanted)
        assert found("gpu", events, f"{text} WITHIN 15", output="count").equals(counted)
    assert searched.call_count == 2
    counts = [profile.counts for profile in profiles]
    assert counts[1]["matches"] == counts[0]["matches"] > 3
    assert "left" not in counts[1]
    assert text != CHOOSING_SET or len(set(wanted["a"].to_pylist())) < wanted.num_rows


@pytest.mark.parametrize("text", COUNTED)
def test_all_matches_under_any_match_are_counted_on_the_device(text):
    """Those of sequences of single variables are for joins; so is each match that is asked for by its events."""
    events = drawn_events(np.random.default_rng(7), 400)
    for asked, output, searched in ((text, "count", True), (text, "indices", False), (SINGLES, "count", False)):
        profile, wanted = cep.Profile(), found("cpu", events, f"{asked} WITHIN 12", output=output)
        with device(), patch.object(walked_matches, "_walk_batch", wraps=walked_matches._walk_batch) as walked:
            assert found("gpu", events, f"{asked} WITHIN 12", output=output, profile=profile).equals(wanted)
        assert walked.called == searched
        assert "left" not in profile.counts


@pytest.mark.parametrize("after_match", ["skip_past_last", "skip_to_next"])
@pytest.mark.parametrize("text", [ALTERNATIVES[0], ALTERNATIVES[1], SEARCHED[0], SEARCHED[7], CHOOSING_SET, CHOOSING_LAST])
def test_what_is_kept_is_counted_where_it_is_found(text, after_match):
    """Of alternatives, sets, and several matches of a start; unless windows are left to the CPU. Each match is accounted for once."""
    events, profile, options = drawn_events(np.random.default_rng(7), 400), cep.Profile(), {"output": "count", "after_match": after_match}
    wanted = found("cpu", events, f"{text} WITHIN 15", **options)
    walking = patch.object(walked_matches, "_walk_batch", wraps=walked_matches._walk_batch)
    keeping = patch.object(walked_matches, "kept_starts", wraps=walked_matches.kept_starts)
    with device(), walking as walked, keeping as kept:
        assert found("gpu", events, f"{text} WITHIN 15", profile=profile, **options).equals(wanted)
    assert kept.called
    assert walked.called == ("left" in profile.counts) == (text == CHOOSING_LAST)
    most = profile.counts["matches"]
    assert 3 < sum(wanted["count"].to_pylist()) <= most
    with device():
        assert found("gpu", events, f"{text} WITHIN 15", max_matches=most, **options).equals(wanted)


@pytest.mark.parametrize(
    ("text", "types", "numbers", "number"),
    [
        # the search takes the first C of a start as a c; then as a further b of a match that ends with the next C
        (CHOOSING_SET, "ABCABCABC", [0, 1, 1] * 3, 3),
        # it takes event 0 as b, for which no a comes until event 3; then as a, behind which event 1 is a b
        ("SEQ(AND(a, b), C c) WHERE a.k <= 0 AND b.k >= 0 AND c.x > a.x", "BBCBCBC", [0, 1, None, -1, None, 1, None], 2),
    ],
)
def test_the_match_of_a_start_that_ends_first_is_kept_wherever_the_search_finds_it(text, types, numbers, number):
    size, kept = len(types), {"output": "count", "after_match": "skip_past_last"}
    events = pa.table({"ts": range(size), "type": list(types), "x": [int(kind == "C") for kind in types], "k": numbers, "s": ["p"] * size})
    with device(), patch.object(walked_matches, "_walk_batch", side_effect=AssertionError("comes back")):
        counted = found("gpu", events, f"{text} WITHIN 15", **kept)
    assert counted["count"].to_pylist() == [number]
    assert counted.equals(found("cpu", events, f"{text} WITHIN 15", **kept))


def test_a_search_takes_up_what_it_left_in_the_next_launch():
    """Only the last launch leaves windows to the CPU."""
    events, profile = drawn_events(np.random.default_rng(7), 400), cep.Profile()
    with device(steps=2, launches=100):
        found("gpu", events, ANY_ORDER, profile=profile)
    assert "left" not in profile.counts


@pytest.mark.parametrize("output", ["indices", "count"])
def test_matches_of_many_events_are_left_to_the_cpu(output):
    events, profile = drawn_events(np.random.default_rng(7), 400), cep.Profile()
    wanted = found("cpu", events, ANY_ORDER, output=output)
    with device(), patch.object(window_searches, "MOST_BOUND", 4):
        assert found("gpu", events, ANY_ORDER, output=output, profile=profile).equals(wanted)
    assert 0 < profile.counts["left"] < profile.counts["candidates"]


@pytest.mark.parametrize("text", [CHOICE, SEARCHED[1], COUNTED[0]])
def test_steps_of_windows_that_are_left_are_those_of_the_cpu(text):
    """The bound on steps that the CPU keeps is kept, however long the device has tried."""
    events, profiles = drawn_events(np.random.default_rng(7), 400), (cep.Profile(), cep.Profile())
    wanted = found("cpu", events, f"{text} WITHIN 15", output="count", profile=profiles[0])
    steps = profiles[0].counts["steps"]
    with device(steps=0, launches=1):
        assert found("gpu", events, f"{text} WITHIN 15", output="count", profile=profiles[1], max_steps=steps).equals(wanted)
    assert profiles[1].counts["left"] > 3
    assert profiles[1].counts["steps"] == steps > 100


@pytest.mark.parametrize("text", [SEARCHED[1], COUNTED[0], NEGATED[0], STEPPING_BACK[3], *QUERIES[:2]])
def test_walks_and_searches_take_what_they_are_said_to_take(text):
    """Few windows have a path each; more of them share those of all slots. Where columns are compared there are no paths."""
    events, opened, taken = drawn_events(np.random.default_rng(7), 4000), walked_matches.open_windows, []

    def measured(walk, query, tables, held):
        bytes_of = window_searches.bytes_of_search if isinstance(tables, window_searches.SearchTables) else chain_walks.bytes_of_walk
        window, slot, _ = bytes_of(query.tables, query.plan)
        for windows in (1, SLOTS, SLOTS + 1, 500):
            least = FIXED + windows * window + min(windows, SLOTS) * slot
            for size, most in ((16 * least, windows), (16 * least - 1, windows - 1)):
                assert windows_at_once(replace(walk, memory=DeviceMemory(size)), query, tables, held) == most
        searches, ledger, windows = opened(walk, query, tables, held), walk.run.device.xp.ledger, held.starts.size
        scratch = sum(array.nbytes for array in arrays_in(strict_arrays.opened(searches._scratch(windows))))
        assert 0.9 * slot * SLOTS < scratch <= slot * SLOTS or (text == QUERIES[0] and slot == 0)
        before = ledger.live
        ledger.restart()
        searches.count(0, windows)
        taken.append((ledger.peak - before) / (SLOTS * slot + windows * window))
        return searches

    with device(pieces=LARGE), patch.object(walked_matches, "open_windows", measured):
        found("gpu", events, f"{text} WITHIN 12", output="count")
    assert 0.5 < taken[0] <= 1


@pytest.mark.filterwarnings("ignore::gpu_cep.AbsentValueWarning")
@examples(40, 400)
@given(
    text=st.sampled_from([*COUNTED, "SEQ(A a+, B b) WHERE skip_till_any_match { sum(a.k) >= b.k }"]),
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(10, 60),
    steps=st.sampled_from([2, 1 << 12]),
    most=st.sampled_from([2, 64]),
    walked=st.sampled_from([0, 5, 1_000]),
    algorithm=st.sampled_from(["auto", "ses_automaton"]),
)
def test_the_cpu_counts_no_window_that_the_device_has_counted(text, seed, size, steps, most, walked, algorithm):
    """Windows are left for their steps, for their runs, or for want of memory; they overlap those that are not."""
    events, options = drawn_events(np.random.default_rng(seed), size), {"output": "count", "algorithm": algorithm}
    wanted, pieces = found("cpu", events, f"{text} WITHIN 12", **options), replace(ROOMY, walked=walked)
    with device(seed, pieces, steps, 3), patch.object(window_searches, "MOST_BOUND", most):
        assert found("gpu", events, f"{text} WITHIN 12", **options).equals(wanted)
