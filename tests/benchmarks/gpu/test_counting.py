"""What the counting device counts: launches, waits of the host, and bytes, for operations whose least is known."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest

import gpu_cep
from benchmarks.gpu.cold_start import launched
from benchmarks.gpu.counting import CountingDevice
from benchmarks.gpu.questions import QUESTIONS
from benchmarks.gpu.traffic import read_traffic, traffic
from benchmarks.record.folders import RESULTS
from benchmarks.row_patterns.questions import QUESTIONS as ROW_QUESTIONS
from benchmarks.row_patterns.questions import rows_of
from tests.requirements import require_modules

SIZE = 100
INT64 = 8 * SIZE

COUNTED = {
    "an operator": (lambda xp, a: a + a, (1, 0, 3 * INT64)),
    "a view": (lambda xp, a: a[3:].reshape(-1, 1), (0, 0, 0)),
    "the same type": (lambda xp, a: a.astype(xp.int64, copy=False), (0, 0, 0)),
    "another type": (lambda xp, a: a.astype(xp.int32), (1, 0, INT64 + INT64 // 2)),
    "memory": (lambda xp, a: xp.empty(7, xp.int64), (0, 0, 0)),
    "zeros": (lambda xp, a: xp.zeros(SIZE, xp.int64), (1, 0, INT64)),
    "a gather": (lambda xp, a: a[xp.zeros(3, xp.int64)], (2, 0, 24 + 3 * 24)),
    "by flags": (lambda xp, a: a[a < 0], (2, 1, INT64 + SIZE + SIZE)),
    "a compaction": (lambda xp, a: xp.flatnonzero(a), (1, 1, INT64 + INT64 - 8)),
    "a value": (lambda xp, a: int(a.max()), (1, 1, INT64 + 8)),
    "a comparison": (lambda xp, a: bool(a[:1] == 0), (1, 1, 8 + 1)),
    "an element": (lambda xp, a: a.__setitem__(slice(0, 2), 1), (1, 0, 16)),
    "a copy back": (lambda xp, a: xp.asnumpy(a), (0, 1, 0)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_operations_are_counted(name):
    require_modules("cupy")
    device = CountingDevice()
    array = device.upload(np.arange(SIZE))
    action, expected = COUNTED[name]
    action(device.xp, array)
    assert (device.counts.launches, device.counts.waits, device.counts.moved) == expected


# What phase 1 of the medical question may take for a chunk: kernels, array functions and operators; waits, and transfers to the device;
# and bytes per event.
MOST_LAUNCHES, MOST_WAITS, MOST_UPLOADS, MOST_BYTES = 16, 5, 9, 70
# What a question may take whose windows are walked, its phase 1 included.
MOST_WALKED_LAUNCHES, MOST_WALKED_WAITS, MOST_WALKED_UPLOADS = 77, 19, 13
# What a negation adds.
MOST_NEGATED_LAUNCHES, MOST_NEGATED_WAITS, MOST_NEGATED_UPLOADS = 17, 3, 1
# What a search adds: it keeps how many matches each window has.
MOST_SEARCHED_LAUNCHES, MOST_SEARCHED_WAITS = 7, 1
# What taking runs apart adds, in blocks of two sizes.
MOST_KEPT_LAUNCHES, MOST_KEPT_WAITS = 18, 3
# What another branch adds.
MOST_EITHER_LAUNCHES, MOST_EITHER_WAITS, MOST_EITHER_UPLOADS = 71, 15, 4
# What another branch adds whose matches are read.
MOST_READ_LAUNCHES, MOST_READ_WAITS, MOST_READ_UPLOADS = 40, 9, 2
# What a row pattern may take whose matches are found there, in cut partitions and in blocks of three sizes.
MOST_ROW_LAUNCHES, MOST_ROW_WAITS, MOST_ROW_UPLOADS = 36, 9, 13
# What a question may take whose matches are read and taken apart there, its phase 1 included.
MOST_APART_LAUNCHES, MOST_APART_WAITS, MOST_APART_UPLOADS = 76, 13, 10


def test_phase_one_takes_few_launches_waits_and_bytes():
    require_modules("cupy")
    found = traffic(QUESTIONS["medical"], 50_000)
    assert 0 < found.calls <= MOST_LAUNCHES
    assert 0 < found.waits <= MOST_WAITS
    assert 0 < found.uploads <= MOST_UPLOADS
    assert 0 < found.moved / found.events <= MOST_BYTES
    # neither depends on the number of events
    (recorded,) = (row for row in read_traffic(RESULTS) if row.question == "medical")
    assert (found.calls, found.waits) == (recorded.calls, recorded.waits)


@pytest.mark.parametrize("name", ["stocks_rising", "stocks_mean", "stocks_unbroken", "stocks_robust", "stocks_either", "medical_pair"])
def test_a_walk_through_windows_takes_few_launches_and_waits(name):
    """They do not depend on the number of windows, but on that of pieces, of which there is one."""
    require_modules("cupy")
    few, many = (traffic(QUESTIONS[name], size) for size in (50_000, 100_000))
    negations, branches, searches = (int(name == own) for own in ("stocks_unbroken", "stocks_either", "medical_pair"))
    assert "left" not in many.counts
    assert many.counts["matches"] > few.counts["matches"] > 500
    assert (few.calls, few.waits) == (many.calls, many.waits)
    added_launches = negations * MOST_NEGATED_LAUNCHES + branches * MOST_EITHER_LAUNCHES + searches * MOST_SEARCHED_LAUNCHES
    added_waits = negations * MOST_NEGATED_WAITS + branches * MOST_EITHER_WAITS + searches * MOST_SEARCHED_WAITS
    assert few.calls <= MOST_WALKED_LAUNCHES + added_launches
    assert few.waits <= MOST_WALKED_WAITS + added_waits
    assert few.uploads <= MOST_WALKED_UPLOADS + negations * MOST_NEGATED_UPLOADS + branches * MOST_EITHER_UPLOADS
    assert "matching" in few.on_device


def test_taking_matches_apart_takes_few_launches_and_waits():
    """Beside those of reading them; there is a launch for each size of blocks on the way up and on the way down."""
    require_modules("cupy")
    few, many = (traffic(QUESTIONS["stocks_apart"], size) for size in (50_000, 200_000))
    # blocks of one size more make two launches more
    assert few.calls <= many.calls <= few.calls + 2 <= MOST_APART_LAUNCHES
    assert few.waits == many.waits <= MOST_APART_WAITS
    assert few.uploads == many.uploads <= MOST_APART_UPLOADS
    assert "lift" in few.on_device


def test_another_branch_of_neighbours_takes_few_launches_and_waits():
    """What conditions read of the events is there for all branches."""
    require_modules("cupy")
    one = replace(QUESTIONS["stocks_apart"], after_match="all")
    either = replace(one, text=lambda size: one.text(size).replace("SEQ(a, b+, c)", "OR(SEQ(a, b+, c), SEQ(d, e, f))"))
    alone, both, many = traffic(one, 50_000), traffic(either, 50_000), traffic(either, 100_000)
    assert both.counts["matches"] > alone.counts["matches"] > 500
    assert both.on_cpu == ()
    assert (both.calls, both.waits) == (many.calls, many.waits)
    assert both.calls <= alone.calls + MOST_READ_LAUNCHES
    assert both.waits <= alone.waits + MOST_READ_WAITS
    assert both.uploads <= alone.uploads + MOST_READ_UPLOADS
    assert both.up < alone.up + 4_096
    # one number for each stream
    apart = traffic(replace(either, after_match="skip_past_last"), 50_000)
    assert 500 < apart.counts["kept"] < apart.counts["matches"]
    assert apart.on_cpu == ()
    assert apart.down < 10_000


def test_runs_that_must_not_overlap_are_counted_where_they_are_found():
    """As many numbers come back as there are streams."""
    require_modules("cupy")
    question, size = QUESTIONS["stocks_rising"], 50_000
    every, apart = traffic(question, size), traffic(replace(question, after_match="skip_past_last"), size)
    assert 200 < apart.counts["kept"] == apart.counts["matches"] < every.counts["matches"]
    assert apart.on_cpu == ()
    # of the held events the input rows travel, for what conditions read
    assert every.down < apart.down < every.down + 100 < size // 2
    assert apart.calls <= every.calls + MOST_KEPT_LAUNCHES
    assert apart.waits <= every.waits + MOST_KEPT_WAITS


@pytest.mark.parametrize("name", ["stocks_either", "medical_pair"])
def test_kept_matches_of_branches_and_sets_are_counted_where_they_are_found(name):
    """As many numbers come back as there are streams; no matches do, and no event of them."""
    require_modules("cupy")
    every, apart = (traffic(replace(QUESTIONS[name], after_match=kept), 50_000) for kept in ("all", "skip_past_last"))
    assert 200 < apart.counts["kept"] < apart.counts["matches"] == every.counts["matches"]
    assert apart.on_cpu == ()
    assert apart.down <= every.down
    assert apart.calls <= every.calls + MOST_KEPT_LAUNCHES
    assert apart.waits <= every.waits + MOST_KEPT_WAITS


def test_events_of_candidate_windows_make_no_detour():
    """Which ones they are is found on the device, and stays there: what goes to it are columns, and few tables."""
    require_modules("cupy")
    size = 50_000
    # an algorithm that runs on the CPU alone
    found = traffic(replace(QUESTIONS["medical_pair"], algorithm="nfab"), size)
    assert found.counts["candidates"] > 500
    columns = 13
    assert columns * size < found.up < columns * size + 4_096


@pytest.mark.parametrize("name", ["V shape", "V shape, next row", "equal rows", "funnel"])
def test_row_patterns_take_few_launches_and_waits(name):
    """They do not depend on the number of rows, nor on how long matches are."""
    require_modules("cupy")
    clauses = next(question.clauses for question in ROW_QUESTIONS if question.name == name)
    found = []
    for size in (50_000, 200_000):
        device = CountingDevice()
        with patch("gpu_cep.engine.phase_one.engine_choice.open_device", lambda device=device: device):
            gpu_cep.match(rows_of(size, 5), f"MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts {clauses})", engine="gpu", threads=1)
        found.append((device.counts.launches, device.counts.waits, device.uploads))
    assert found[0] == found[1]
    assert all(few <= most for few, most in zip(found[0], (MOST_ROW_LAUNCHES, MOST_ROW_WAITS, MOST_ROW_UPLOADS), strict=True))


@pytest.mark.parametrize("name", ["stocks_in_a_row", "stocks_apart", "selective_counted"])
def test_matches_that_labels_decide_are_found_on_the_device(name):
    """All of them: what comes back are numbers of streams. Values that conditions read of all events travel as they are."""
    require_modules("cupy")
    size = 50_000
    found = traffic(QUESTIONS[name], size)
    assert found.counts["matches"] > 200
    assert found.on_cpu == ()
    assert found.down < size // 4


@pytest.mark.parametrize(
    ("name", "walk"),
    [
        ("stocks_mean", "walk_chain_windows"),
        ("stocks_unbroken", "walk_compared_windows"),
        ("stocks_robust", "walk_robust_compared_windows"),
    ],
)
def test_kernels_of_a_question_are_noted_once_for_each_set_of_types(name, walk):
    """Where all conditions are comparisons of columns, the kernels that judge others, and take longer to compile, are not."""
    require_modules("cupy")
    noted = [(kernel.__name__, str(types)) for kernel, types in launched(QUESTIONS[name])]
    assert len(noted) == len(set(noted))
    assert {"judge_events", walk} <= {name for name, _ in noted}
