"""Interval patterns against the oracle: random queries over random tables, both modes of detection, all algorithms and forms of output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpu_cep
from gpu_cep.analysis.windows import length_of
from gpu_cep.errors import CepError, EventError, UnsupportedError
from gpu_cep.lang.ast_intervals import RELATIONS, IntervalQuery
from gpu_cep.lang.parser import parse
from gpu_cep.oracle import intervals
from gpu_cep.oracle.intervals import IntervalMatch
from gpu_cep.oracle.options import IntervalOptions
from gpu_cep.oracle.streams import values
from gpu_cep.plan.interval_algorithms import INTERVAL_ALGORITHMS
from gpu_cep.plan.interval_order import OrderChoice
from gpu_cep_kernels.compile import launch
from tests.drawn.queries import Case
from tests.drawn.situations import Size, situation_cases
from tests.effort import examples
from tests.results import matches_of

# What most faults show in is tried more often than CEP_EXAMPLES says, unless that is a large number.
thoroughly = examples(100, 300)
ALGORITHMS = st.sampled_from([name for name in INTERVAL_ALGORITHMS if name != "brute_force"])
THREADS = st.integers(1, 3)
OUTPUTS = st.sampled_from(("matches", "matches", "events", "indices", "count"))
LIMIT = 3_000


def expected(case: Case) -> list[IntervalMatch]:
    """The oracle's matches; cases that are too much work for it are left out."""
    query = parse(case.text)
    assert isinstance(query, IntervalQuery)
    gap = case.options.get("gap")
    options = {**case.options, "gap": None if gap is None else length_of(gap)}
    try:
        return intervals.matches(query, case.events, IntervalOptions(**options), limit=LIMIT)
    except UnsupportedError:
        assume(False)
        raise


def answered(case: Case, **options: Any) -> pa.Table:
    return gpu_cep.match(case.events, case.text, **case.options, **options)


def outcome(case: Case, **options: Any) -> tuple[Any, ...]:
    """Schema and rows, or the kind of error; NaN equals NaN, and counts are of 0.0 where a stream's keys are -0.0, too."""
    try:
        table = answered(case, **options)
    except CepError as fault:
        return (type(fault),)
    rows = repr(table.to_pylist())
    return table.schema, rows.replace("-0.0", "0.0") if options.get("output") == "count" else rows


@thoroughly
@given(situation_cases(returns=(False,)), ALGORITHMS, THREADS)
def test_same_matches_in_the_same_order(case, algorithm, threads):
    wanted = expected(case)
    found = answered(case, algorithm=algorithm, threads=threads)
    keys = case.options.get("partition_by", [])
    for name in ("match_start", "match_end", "detected_at"):
        assert values(found[name]) == [getattr(match, name) for match in wanted]
    assert without_sign(zip(*(values(found[key]) for key in keys), strict=True)) == without_sign(match.keys for match in wanted if keys)
    assert matches_of(answered(case, algorithm=algorithm, threads=threads, output="indices")) == [match.rows for match in wanted]
    assert sum(answered(case, algorithm=algorithm, threads=threads, output="count")["count"].to_pylist()) == len(wanted)


def without_sign(keys: Iterable[Any]) -> list[str]:
    """Keys as texts, in which NaN equals NaN and -0.0, which is the same key, 0.0: a stream that has both shows either."""
    return [repr(key).replace("-0.0", "0.0") for key in keys]


@thoroughly
@given(situation_cases(), ALGORITHMS, THREADS, OUTPUTS)
def test_every_form_of_output_is_that_of_brute_force(case, algorithm, threads, output):
    expected_or_failing(case)
    assert outcome(case, output=output, algorithm=algorithm, threads=threads) == by_brute_force(case, output)


def by_brute_force(case: Case, output: str) -> tuple[Any, ...]:
    """The outcome by definition; cases are left out where RETURN fails, which the oracle reads always and the engine for matches alone."""
    found = outcome(case, output=output, algorithm="brute_force")
    assume(output == "matches" or found != (EventError,))
    return found


def expected_or_failing(case: Case) -> None:
    """Leaves out cases that are too much work for the oracle; that one fails is for brute force to say."""
    with suppress(CepError):
        expected(case)


@given(situation_cases(returns=(True,)), ALGORITHMS)
def test_what_is_returned_is_what_the_oracle_reads(case, algorithm):
    try:
        wanted = expected(case)
    except CepError as fault:
        with pytest.raises(type(fault)):
            answered(case, algorithm=algorithm)
        return
    found = answered(case, algorithm=algorithm)
    items = [name for name in found.column_names if name.startswith("r")]
    rows = zip(*(values(found[name]) for name in items), strict=True)
    assert repr(list(rows)) == repr([match.returned for match in wanted])


@given(situation_cases(Size(events=10, names=6)), ALGORITHMS, OUTPUTS)
def test_many_names(case, algorithm, output):
    expected_or_failing(case)
    assert outcome(case, output=output, algorithm=algorithm) == by_brute_force(case, output)


@given(situation_cases(Size(events=40, names=3)), ALGORITHMS, THREADS, OUTPUTS)
def test_longer_streams(case, algorithm, threads, output):
    expected_or_failing(case)
    assert outcome(case, output=output, algorithm=algorithm, threads=threads) == by_brute_force(case, output)


@given(situation_cases(Size(events=60, names=2), partitions=(("n",), ("n", "k"))), THREADS, OUTPUTS)
def test_many_tiny_streams(case, threads, output):
    assert outcome(case, output=output, threads=threads) == by_brute_force(case, output)


# Events of a slice, events of a block, situations of a part, windows of a slice of time, candidates of a call.
SEAMS = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(4, 12), st.integers(1, 3), st.integers(1, 5))


def with_seams(seams: tuple[int, int, int, int, int], case: Case, **options: Any) -> tuple[Any, ...]:
    """The outcome where all is cut into small parts."""
    events, block, part, windows, candidates = seams
    parts = -(-case.events.num_rows // events)
    with ExitStack() as patches:
        for module in ("situations", "borders", "events"):
            patches.enter_context(patch(f"gpu_cep.engine.intervals.{module}.slices", lambda length, _: launch.slices(length, parts)))
        patches.enter_context(patch("gpu_cep.engine.intervals.borders.BLOCK", block))
        patches.enter_context(patch("gpu_cep.engine.intervals.join._CHUNK", part))
        patches.enter_context(patch("gpu_cep.engine.intervals.chunks.WINDOWS", windows))
        patches.enter_context(patch("gpu_cep.engine.intervals.statistics._TESTED", candidates))
        patches.enter_context(patch("gpu_cep.engine.intervals.join._CANDIDATES", candidates))
        return outcome(case, **options)


@thoroughly
@given(situation_cases(), SEAMS, ALGORITHMS, THREADS, OUTPUTS)
def test_seams_change_nothing(case, seams, algorithm, threads, output):
    options = {"output": output, "algorithm": algorithm, "threads": threads}
    assert with_seams(seams, case, **options) == outcome(case, **options)


@given(situation_cases(Size(events=40, names=3), sorted_only=True, partitions=(None, ("k",), ("n",))), SEAMS, OUTPUTS)
def test_seams_change_nothing_in_longer_streams(case, seams, output):
    expected_or_failing(case)
    assert with_seams(seams, case, output=output) == by_brute_force(case, output)


@given(situation_cases(), SEAMS, st.integers(0, 2**32 - 1), ALGORITHMS, THREADS, OUTPUTS)
def test_the_order_of_the_joins_changes_nothing(case, seams, seed, algorithm, threads, output):
    """Each part takes its names in any order, cross products and all."""
    options = {"output": output, "algorithm": algorithm, "threads": threads}
    plain, scatter = outcome(case, **options), Random(seed)
    with patch.object(OrderChoice, "order", lambda _, buffers: tuple(scatter.sample(range(len(buffers)), len(buffers)))):
        assert with_seams(seams, case, **options) == plain


@given(situation_cases(tied=False, returns=(False,)), st.data())
def test_the_order_of_rows_means_nothing_without_ties(case, data):
    assume(len(set(case.events["ts"].to_pylist())) == case.events.num_rows)
    order = data.draw(st.permutations(range(case.events.num_rows)))
    shuffled = Case(case.text, case.events.take(pa.array(order, pa.int64())), case.options)
    renumbered = [{name: tuple(order[row] for row in rows) for name, rows in match.items()} for match in matches_of(indices(shuffled))]
    assert renumbered == matches_of(indices(case))


def indices(case: Case) -> pa.Table:
    return answered(case, output="indices")


@given(situation_cases())
def test_count_counts_the_matches_of_each_stream(case):
    expected_or_failing(case)
    keys = case.options.get("partition_by", [])
    counts = answered(case, output="count").to_pylist()
    rows = case.events.select(keys).to_pylist()
    wanted = Counter(without_sign(tuple(rows[match["A"][0]].values()) for match in matches_of(indices(case))))
    found = zip(without_sign(tuple(row[key] for key in keys) for row in counts), (row["count"] for row in counts), strict=True)
    assert {key: count for key, count in found if count} == wanted


@pytest.mark.parametrize("detect", ["final", "early"])
@pytest.mark.parametrize("allen", ["paper", "1983"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_each_relation_alone(relation, allen, detect):
    """All ways in which two situations may lie to each other, in ten streams whose events often tie."""
    scatter = Random(0)
    numbers = range(400)
    columns = {"ts": [number // 10 * 2 // 3 for number in numbers], "k": [number % 10 for number in numbers]}
    marks = {lane: [scatter.random() < 0.6 for _ in numbers] for lane in "ab"}
    options = {"detect": detect, "allen": allen, "partition_by": ["k"]}
    case = Case(f"DEFINE A AS a, B AS b PATTERN A {relation} B", pa.table(columns | marks), options)
    wanted = expected(case)
    assert wanted
    assert matches_of(answered(case, output="indices")) == [match.rows for match in wanted]


@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
@pytest.mark.parametrize("partition_by", [None, "k"])
def test_no_events(output, partition_by):
    events = pa.table({"ts": pa.array([], pa.int64()), "a": pa.array([], pa.bool_()), "k": pa.array([], pa.string())})
    for detect in ("final", "early"):
        case = Case("DEFINE A AS a, B AS NOT a PATTERN A meets B", events, {"detect": detect, "partition_by": partition_by})
        assert outcome(case, output=output) == outcome(case, output=output, algorithm="brute_force")


ANYHOW = "; ".join(f"A {relation} B" for relation in RELATIONS)


@pytest.mark.parametrize("detect", ["final", "early"])
@pytest.mark.parametrize("pattern", [ANYHOW, f"{ANYHOW} AND B before C; B meets C; B overlaps C", "B after A"])
@pytest.mark.parametrize("window", [1, 4, 9])
def test_slices_of_time_change_nothing(window, pattern, detect):
    """A long stream with a short window, cut at every few situations; times tie, so that names start together."""
    scatter = Random(window)
    marks = {lane: [scatter.random() < 0.5 for _ in range(150)] for lane in "abc"}
    events = pa.table({"ts": [number * 2 // 3 for number in range(150)], **marks})
    case = Case(f"DEFINE A AS a, B AS b, C AS c PATTERN {pattern} WITHIN {window}", events, {"detect": detect})
    whole = outcome(case, output="indices")
    for part in (3, 7, 20):
        assert with_seams((150, 150, part, 1, 1_000), case, output="indices") == whole


@pytest.mark.parametrize("algorithm", list(INTERVAL_ALGORITHMS))
def test_a_duration_may_stand_behind_between(algorithm):
    draw = Random(3)
    rows = {"ts": range(200), "f": [draw.random() < 0.7 for _ in range(200)], "x": [draw.randrange(9) for _ in range(200)]}
    events = pa.table(rows)
    text = "DEFINE A AS f {}, B AS x > 2 AND NOT f {} PATTERN A meets B;A before B WITHIN 30"
    between, bounds = (text.format(*each) for each in (["BETWEEN 2 AND 5"] * 2, ["AT LEAST 2 AT MOST 5"] * 2))
    wanted = expected(Case(between, events, {}))
    assert [match.rows for match in wanted] == [match.rows for match in expected(Case(bounds, events, {}))] != []
    for each in (between, bounds):
        assert matches_of(gpu_cep.match(events, each, algorithm=algorithm, output="indices")) == [match.rows for match in wanted]
