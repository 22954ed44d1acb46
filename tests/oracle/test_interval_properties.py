"""What early and final detection must have in common, on drawn streams."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.oracle.intervals import IntervalMatch
from tests.oracle.lanes import found, lanes

NAMES = "ABC"
MARKS = st.sampled_from("####....?")


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    """Up to twelve events in three lanes, some at the same time and some far apart."""
    size = draw(st.integers(4, 12))
    drawn = ["".join(draw(st.lists(MARKS, min_size=size, max_size=size))) for _ in NAMES]
    gaps = draw(st.lists(st.sampled_from([0, 1, 1, 1, 3]), min_size=size, max_size=size))
    return lanes(*drawn, ts=[sum(gaps[: number + 1]) for number in range(size)])


def constraints(left: str, right: str) -> st.SearchStrategy[str]:
    """Most constraints have many alternatives, so that there are matches."""
    missing = st.frozensets(st.sampled_from(sorted(RELATIONS)), max_size=12)
    return missing.map(lambda names: "; ".join(f"{left} {name} {right}" for name in RELATIONS if name not in names))


PATTERNS = st.lists(st.sampled_from(["AB", "BC", "AC", "BA"]), min_size=1, max_size=3, unique=True).flatmap(
    lambda pairs: st.tuples(*(constraints(*pair) for pair in pairs)).map(" AND ".join)
)
DURATIONS = st.sampled_from(["", "", "", "AT LEAST 1", "AT LEAST 2", "AT LEAST 4", "AT MOST 3", "AT LEAST 1 AT MOST 4"])
DEFINITIONS = st.tuples(DURATIONS, DURATIONS, DURATIONS).map(
    lambda bounds: ", ".join(f"{name} AS {name.lower()} {bound}" for name, bound in zip(NAMES, bounds, strict=True))
)
WINDOWS = st.sampled_from(["", "WITHIN 4", "WITHIN 8"])
RETURN = "RETURN start(A), duration(B), count(C), end(A) - start(B)"


def identity(match: IntervalMatch) -> tuple[int, ...]:
    """A situation is known by its first event."""
    return tuple(rows[0] for rows in match.rows.values())


def by_identity(matches: list[IntervalMatch]) -> dict[tuple[int, ...], IntervalMatch]:
    table = {identity(match): match for match in matches}
    assert len(table) == len(matches), "a combination is reported once"
    return table


@given(streams(), PATTERNS, DEFINITIONS, WINDOWS)
def test_final_matches_are_detected_early(events, pattern, define, window):
    early = by_identity(found(f"{pattern} {window}", events, define, detect="early"))
    final = by_identity(found(f"{pattern} {window}", events, define))
    assert early.keys() >= final.keys()
    assert all(early[key].detected_at <= match.detected_at for key, match in final.items())


@given(streams(), PATTERNS, DEFINITIONS)
def test_early_matches_become_final(events, pattern, define):
    """Once everything has ended; a window could still keep them from it."""
    closed = closed_by(events, "...")
    early = by_identity(found(pattern, events, define, detect="early"))
    final = by_identity(found(pattern, closed, define))
    assert early.keys() <= final.keys()
    for key, match in early.items():
        assert all(rows == final[key].rows[name][: len(rows)] for name, rows in match.rows.items())
        assert match.match_end in (None, final[key].match_end)


@given(streams(), PATTERNS, DEFINITIONS, WINDOWS)
def test_early_detection_does_not_look_ahead(events, pattern, define, window):
    text = f"{pattern} {window} {RETURN}"
    whole = found(text, events, define, detect="early")
    times = events["ts"].to_pylist()
    for now in set(times):
        prefix = events.filter(pa.array([time <= now for time in times]))
        assert found(text, prefix, define, detect="early") == [match for match in whole if match.detected_at <= now]


@given(streams(), constraints("A", "B"))
def test_a_constraint_is_decided_once_it_is_certain(events, constraint):
    """Without durations, Table 2 detects a pair of situations exactly if all ways in which they may go on satisfy the constraint."""
    define = "A AS a, B AS b"
    ways = (["..."], ["#..", "..."], [".#.", "..."])  # those that are open end together, A later, B later
    final = [{identity(match) for match in found(constraint, closed_by(events, *way), define)} for way in ways]
    certain = {key for key in set.intersection(*final) if max(key) < events.num_rows}
    assert {identity(match) for match in found(constraint, events, define, detect="early")} == certain


def closed_by(events: pa.Table, *marks: str) -> pa.Table:
    """`events` and one more at a time for each of `marks`, which are its truths."""
    last = max(events["ts"].to_pylist())
    drawn = ["".join(column) for column in zip(*marks, strict=True)]
    return pa.concat_tables([events, lanes(*drawn, ts=range(last + 1, last + 1 + len(marks)))])
