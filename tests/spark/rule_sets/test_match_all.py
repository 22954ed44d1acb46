"""gpu_match_all finds what match_all finds, with one shuffle for all patterns whose keys allow it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep_spark.rule_sets.shuffles import groups_of_columns, keys_of_shuffles
from gpu_cep_spark.tasks.failures import workers_errors
from tests.effort import examples
from tests.spark.samples import QUERIES, as_set, physical_plan, streams

EVENTS = streams(160, 31, distinct_times=True)
KEYED = {
    "up": "PARTITION BY key PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 20 RETURN a.n AS n",
    "down": "PARTITION BY key PATTERN SEQ(B a, C b) WHERE b.x < a.x WITHIN 20 RETURN a.n AS n",
    "lone": "PARTITION BY key PATTERN SEQ(D a, NOT(A b), C c) WITHIN 30 RETURN a.n AS n",
}


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EVENTS)


@pytest.mark.surface
@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("events", ("both", "no key")),
        ("count", ("derived key", "no key")),
        ("matches", ("derived key", "both", "branches", "no key", "negation between derived keys")),
    ],
)
def test_every_query_has_its_own_matches(frame: DataFrame, output: str, names: tuple[str, ...]) -> None:
    rules = {name: QUERIES[name] for name in (names if output != "matches" else QUERIES)}
    expected = cep.match_all(EVENTS, rules, output=output, split=True)
    found = cep.gpu_match_all(frame, rules, output=output, split=True)
    assert list(found) == list(expected)
    for name in names:
        assert found[name].columns == expected[name].column_names
        assert as_set(found[name].toArrow()) == as_set(expected[name]), name


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_one_frame_comes_of_one_shuffle(frame: DataFrame, output: str) -> None:
    found = cep.gpu_match_all(frame, KEYED, output=output)
    plan = physical_plan(found)
    assert plan.count("REPARTITION_BY_COL") == plan.count("MapInArrow") == 1
    expected = cep.match_all(EVENTS, KEYED, output=output)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)


SHAPES = ("SEQ({} a, {} b)", "SEQ({} a, {} b+)", "SEQ({} a, NOT({} n), {} b)", "AND({} a, {} b)", "SEQ({} a, ANY({} b))")
TESTS = ("", " AND b.x > a.x", " AND a.n < {}", " AND b.n >= {} AND a.n <> b.n")


@st.composite
def keyed_rules(draw: st.DrawFn) -> dict[str, cep.Rule]:
    """Rules whose streams have keys, by PARTITION BY or by conditions; some of them differ in constants only."""
    partition = draw(st.sampled_from(("", "PARTITION BY user ")))
    shape, test = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(TESTS))
    rules = {}
    for number in range(draw(st.integers(2, 7))):
        if draw(st.integers(0, 3)) == 0:
            shape, test = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(TESTS))
        types = draw(st.lists(st.sampled_from("ABCD"), min_size=3, max_size=3))
        keys = draw(st.sampled_from(("[key]", "[user]", "[key] AND [user]", "[key]")))
        where = f"{keys}{test.format(draw(st.integers(1, 8)))}"
        options = {"after_match": draw(st.sampled_from(("all", "skip_past_last", "skip_to_next")))}
        text = f"{partition}PATTERN {shape.format(*types)} WHERE {where} WITHIN {draw(st.sampled_from((5, 40)))} RETURN a.n AS n, b.x AS x"
        rules[f"rule {number}"] = cep.Rule(text, options)
    return rules


@examples(2, 20)
@given(keyed_rules(), st.integers(0, 99), st.sampled_from(("matches", "events", "count")))
def test_random_rule_sets_have_the_matches_of_one_process(spark: SparkSession, rules: dict, seed: int, output: str) -> None:
    events = streams(80, seed, distinct_times=True)
    found = cep.gpu_match_all(spark.createDataFrame(events), rules, output=output)
    assert as_set(found.toArrow()) == as_set(cep.match_all(events, rules, output=output))


def test_keys_that_contain_those_of_another_share_its_shuffle(frame: DataFrame) -> None:
    rules = {
        "one": "PARTITION BY user PATTERN SEQ(A a, B b) WITHIN 20 RETURN a.n AS n",
        "two": cep.Rule("PATTERN SEQ(A a, C b) WHERE [user] AND [key] WITHIN 40 RETURN a.n AS n", {"partition_by": "user"}),
        "other": "PARTITION BY user PATTERN SEQ(A a, B b) WHERE a.key = b.key WITHIN 20 RETURN a.n AS n",
    }
    found = cep.gpu_match_all(frame, rules)
    assert physical_plan(found).count("MapInArrow") == 1
    assert as_set(found.toArrow()) == as_set(cep.match_all(EVENTS, rules))


SPLIT = {
    "sum": "PARTITION BY key PATTERN SEQ(A a, B b) WITHIN 20 RETURN a.n + b.n AS total",
    "times": "PARTITION BY key PATTERN SEQ(B a, C b) WHERE b.x < a.x WITHIN 20 RETURN b.ts - a.ts AS lasted, a.user AS user",
    "near": "PATTERN SEQ(A a, B b) WHERE a.n < b.n WITHIN 2 RETURN a.n AS n",
    "far": "PATTERN SEQ(A a, C b) WHERE a.n <= b.n WITHIN 9 RETURN a.n AS n, b.x AS x",
}


def test_patterns_with_other_results_share_a_shuffle(frame: DataFrame) -> None:
    names = ("sum", "times")
    assert "one shuffle by key: sum, times" in str(cep.explain_all(frame, SPLIT))
    assert "one shuffle by slices of time of 144 ticks: their events are one stream: near, far" in str(cep.explain_all(frame, SPLIT))
    found, expected = cep.gpu_match_all(frame, SPLIT, split=True), cep.match_all(EVENTS, SPLIT, split=True)
    assert list(found) == list(expected)
    for name, own in expected.items():
        assert found[name].columns == own.column_names
        assert as_set(found[name].toArrow()) == as_set(own)
    left, right = (found[name].select(found[name].columns[-1]) for name in names)
    both = left.unionAll(right)
    assert len(both.collect()) == sum(expected[name].num_rows for name in names)
    assert "ReusedExchange" in physical_plan(both)


def test_columns_that_few_patterns_read_are_shuffled_apart() -> None:
    few, more, many = frozenset("kt"), frozenset("ktx"), frozenset("ktabcdefghij")
    assert groups_of_columns([few, more, few]) == [frozenset((few, more))]
    assert set(groups_of_columns([few, many, more])) == {frozenset((few, more)), frozenset((many,))}
    assert groups_of_columns([]) == []


def keys(*columns: str) -> frozenset[str]:
    return frozenset(columns)


def test_rules_are_served_by_the_fewest_keys_that_a_rule_has() -> None:
    wanted = [keys("k"), keys("k", "u"), keys("u", "n")]
    assert keys_of_shuffles(wanted, lambda _: False) == {keys("k"): keys("k"), keys("k", "u"): keys("k"), keys("u", "n"): keys("u", "n")}


def test_keys_in_common_serve_those_that_share_them_where_they_spread_rows() -> None:
    wanted = [keys("a", "u"), keys("b", "u"), keys("c", "u", "a"), keys("b", "c")]
    served = keys_of_shuffles(wanted, lambda own: own == keys("u"))
    assert served == {wanted[0]: keys("u"), wanted[1]: keys("u"), wanted[2]: keys("u"), wanted[3]: wanted[3]}
    assert keys_of_shuffles(wanted, lambda _: False).keys() == set(wanted)


@given(st.lists(st.frozensets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=6), st.frozensets(st.sampled_from("abcd")))
def test_keys_of_a_shuffle_are_among_those_of_each_rule_and_never_more_shuffles(wanted: list, spread: frozenset) -> None:
    served = keys_of_shuffles(wanted, lambda own: own <= spread)
    assert served.keys() == set(wanted)
    assert all(served[own] and served[own] <= own for own in wanted)
    assert len(set(served.values())) <= len(set(keys_of_shuffles(wanted, lambda _: False).values()))


def test_keys_in_common_are_sampled_in_files(spark: SparkSession, tmp_path: Path) -> None:
    many = pa.table({"ts": range(4000), "type": ["A", "B"] * 2000, "u": [n // 4 for n in range(4000)], "k": ["x"] * 4000, "d": [1] * 4000})
    many = many.append_column("one", pa.array([0] * 4000))
    pq.write_table(many, tmp_path / "events.parquet")
    frame = spark.read.parquet(str(tmp_path / "events.parquet"))
    text = "PATTERN SEQ(A a, B b) WHERE [{}] AND [{}] WITHIN 9 RETURN b.ts AS at"
    rules = {key: text.format("u", key) for key in "kd"}
    assert "one shuffle by u; 2 of them with more keys" in str(cep.explain_all(frame, rules))
    assert as_set(cep.gpu_match_all(frame, rules).toArrow()) == as_set(cep.match_all(many, rules))
    # a key of one value would leave all rows to one task
    few = {key: text.format("one", key) for key in "kd"}
    assert str(cep.explain_all(frame, few)).count("one shuffle by") == 2


KEYLESS = {
    "near": "PATTERN SEQ(A a, B b) WHERE a.n < b.n WITHIN 2 RETURN a.n AS n, b.x AS x",
    "far": "PATTERN SEQ(A a, NOT(D d), C b) WHERE a.n = b.n WITHIN 9 RETURN a.n AS n, b.x AS x",
    "before": "PATTERN SEQ(NOT(C c), A a, D b) WHERE a.n <= b.n WITHIN 7 RETURN a.n AS n, b.x AS x",
    "whole": "PATTERN SEQ(A a, B b) WITHIN 3 EVENTS RETURN a.n AS n, b.x AS x",
    "open": "PATTERN SEQ(A a, B b) WHERE a.n = 8 AND b.n = 7 RETURN a.n AS n, b.x AS x",
    "taken": cep.Rule("PATTERN SEQ(A a, C b) WITHIN 5 RETURN a.n AS n, b.x AS x", {"after_match": "skip_past_last"}),
}


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_patterns_without_keys_share_one_shuffle_by_slices_and_one_to_one_task(frame: DataFrame, output: str) -> None:
    found = cep.gpu_match_all(frame, KEYLESS, output=output)
    expected = cep.match_all(EVENTS, KEYLESS, output=output)
    assert found.columns == expected.column_names
    assert as_set(found.toArrow()) == as_set(expected)
    sliced = {name: KEYLESS[name] for name in ("near", "far", "before")}
    assert physical_plan(cep.gpu_match_all(frame, sliced, output="matches")).count("MapInArrow") == 1
    told = str(cep.explain_all(frame, KEYLESS, output=output))
    assert "one shuffle by slices of time of 144 ticks: their events are one stream: near, far, before" in told
    assert "one shuffle to one task: their events are one stream, which cannot be cut: whole, open" in told
    assert "alone: taken (skip_past_last chooses among the matches of all slices)" in told


def test_copies_of_events_start_no_match_of_patterns_without_keys(spark: SparkSession) -> None:
    events = streams(900, 5, distinct_times=True)
    rules = {name: KEYLESS[name] for name in ("near", "far", "before")}
    rare = "PATTERN SEQ(A a, B b) WHERE b.n = 3 AND a.n = {} WITHIN 6 RETURN a.n AS n, b.x AS x"
    rules |= {f"rare {number}": rare.format(number) for number in range(5)}
    for output in ("events", "count"):
        found = cep.gpu_match_all(spark.createDataFrame(events), rules, output=output)
        assert as_set(found.toArrow()) == as_set(cep.match_all(events, rules, output=output))


def test_slices_that_one_pattern_needs_look_back(spark: SparkSession) -> None:
    # at each border of slices an event that only the slice before owns rules a match out
    times = [144 * border + step for border in range(1, 5) for step in (-1, 0, 1)]
    events = pa.table({"ts": times, "type": list("CAD") * 4, "n": [1] * 12, "x": [1.0] * 12})
    rules = {name: KEYLESS[name] for name in ("near", "far", "before")}
    assert "slices of time of 144 ticks" in str(cep.explain_all(spark.createDataFrame(events), rules))
    assert cep.gpu_match_all(spark.createDataFrame(events), rules).count() == cep.match_all(events, rules).num_rows == 0


@st.composite
def mixed_rules(draw: st.DrawFn) -> dict[str, cep.Rule]:
    """Rules with the same, with other and with no keys, and with windows of time, of events and none."""
    rules = {}
    for number in range(draw(st.integers(2, 6))):
        types = draw(st.lists(st.sampled_from("ABCD"), min_size=3, max_size=3))
        shape = draw(st.sampled_from((*SHAPES, "SEQ(NOT({} n), {} a, {} b)")))
        tests = draw(st.sampled_from(("a.n < b.n", "[key]", "[user]", "[key] AND [user]", "a.n <> b.n")))
        partition = draw(st.sampled_from(("", "", "PARTITION BY user ", "PARTITION BY key, n ", "PARTITION BY user, n ")))
        window = "30" if "NOT" in shape else draw(st.sampled_from(("3", "40", "4 EVENTS")))
        text = f"{partition}PATTERN {shape.format(*types)} WHERE {tests} WITHIN {window} RETURN a.n AS an, b.x AS bx"
        rules[f"rule {number}"] = cep.Rule(text, {"after_match": draw(st.sampled_from(("all", "all", "skip_past_last", "skip_to_next")))})
    return rules


@examples(2, 20)
@given(mixed_rules(), st.integers(0, 99), st.sampled_from(("matches", "events", "count")))
def test_random_rule_sets_with_mixed_keys(spark: SparkSession, rules: dict, seed: int, output: str) -> None:
    events = streams(240, seed, distinct_times=True)
    found = cep.gpu_match_all(spark.createDataFrame(events), rules, output=output, split=True)
    expected = cep.match_all(events, rules, output=output, split=True)
    assert {name: as_set(each.toArrow()) for name, each in found.items()} == {name: as_set(each) for name, each in expected.items()}


def test_counts_without_keys_are_there_for_every_pattern(frame: DataFrame) -> None:
    rules = {
        "some": "PATTERN SEQ(A a, B b) WHERE [user] WITHIN 40",
        "none": "PATTERN SEQ(A a, B b) WHERE [user] AND a.n > 100 WITHIN 40",
        "whole": "PATTERN SEQ(A a, B b) WITHIN 4",
    }
    found = cep.gpu_match_all(frame, rules, output="count")
    assert as_set(found.toArrow()) == as_set(cep.match_all(EVENTS, rules, output="count"))
    assert found.filter("pattern = 'none'").toArrow()["count"].to_pylist() == [0]
    nothing = cep.gpu_match_all(frame.filter("ts < 0"), rules, output="count")
    assert as_set(nothing.toArrow()) == as_set(cep.match_all(EVENTS.slice(0, 0), rules, output="count"))


def test_missing_timestamps_are_dropped_for_those_that_ask(spark: SparkSession) -> None:
    events = EVENTS.set_column(1, "ts", pa.array([None, *EVENTS["ts"].to_pylist()[1:]], pa.int64()))
    rules = {name: cep.Rule(text, {"nulls": "drop"}) for name, text in KEYED.items()}
    frame = spark.createDataFrame(events)
    assert as_set(cep.gpu_match_all(frame, rules).toArrow()) == as_set(cep.match_all(events, rules))
    with workers_errors(), pytest.raises(Exception, match="pattern 'strict': timestamp column 'ts' holds 1 NULL in one partition"):
        cep.gpu_match_all(frame, {**rules, "strict": KEYED["up"]}).toArrow()


def test_errors_come_before_any_job(frame: DataFrame) -> None:
    rules = KEYED | {"wrong": "PARTITION BY key PATTERN SEQ(A a) WHERE a.m > 1 RETURN a.n AS n"}
    with pytest.raises(cep.PatternError, match="pattern 'wrong': unknown attribute 'm'"):
        cep.gpu_match_all(frame, rules)
    failures: dict[str, cep.CepError] = {}
    found = cep.gpu_match_all(frame, rules, on_error="report", failures=failures)
    assert list(failures) == ["wrong"]
    assert as_set(found.toArrow()) == as_set(cep.match_all(EVENTS, KEYED))
    with pytest.raises(cep.PatternError, match="have not the same columns"):
        cep.gpu_match_all(frame, KEYED | {"other": "PARTITION BY key PATTERN SEQ(A a) RETURN a.n AS m"})
    for output in ("compressed", "indices"):
        with pytest.raises(cep.UnsupportedError, match=f"output='{output}' is not supported .*; supported: matches, events, count$"):
            cep.gpu_match_all(frame, KEYED, output=output)
    with pytest.raises(cep.EventError, match="expected a Spark DataFrame"):
        cep.gpu_match_all(EVENTS, KEYED)


def test_a_limit_names_the_pattern(frame: DataFrame) -> None:
    rules = KEYED | {"many": cep.Rule(KEYED["up"], {"max_matches": 1, "strategy": "skip_till_any_match"})}
    with pytest.raises(PySparkException, match="MatchLimitExceeded: pattern 'many': more than max_matches=1") as raised:
        cep.gpu_match_all(frame, rules).toArrow()
    # frames of the engine tell a user nothing
    assert "run_shared" not in str(raised.value)


def test_a_result_may_have_a_column_called_pattern_if_it_stands_alone(frame: DataFrame) -> None:
    rules = {"named": 'PARTITION BY key PATTERN SEQ(A a) RETURN a.n AS "pattern"'}
    with pytest.raises(cep.PatternError, match="has a column 'pattern' already"):
        cep.gpu_match_all(frame, rules)
    found = cep.gpu_match_all(frame, rules, split=True)["named"]
    assert as_set(found.toArrow()) == as_set(cep.match_all(EVENTS, rules, split=True)["named"])


@pytest.mark.parametrize("output", ["matches", "count"])
def test_results_may_have_names_that_differ_in_case_alone(frame: DataFrame, output: str) -> None:
    events, given = EVENTS.append_column("Count", EVENTS["key"]), frame.withColumn("Count", frame["key"])
    keyed = 'PARTITION BY "Count" PATTERN SEQ(A a, B b) WITHIN 4 RETURN a.n AS n, b.n AS "N"'
    rules = {"one": keyed, "two": keyed, "whole": 'PATTERN a WHERE a.n > 10 RETURN a.n AS n, a.ts AS "N"'}
    found = cep.gpu_match_all(given, rules, output=output, split=True)
    for name, wanted in cep.match_all(events, rules, output=output, split=True).items():
        assert as_set(found[name].toArrow()) == as_set(wanted)
    derived = keyed.replace(" WITHIN", " WHERE [user] WITHIN")
    assert as_set(cep.gpu_match(given, derived, output=output).toArrow()) == as_set(cep.match(events, derived, output=output))
    together = dict.fromkeys(("one", "two"), keyed)
    assert as_set(cep.gpu_match_all(given, together, output=output).toArrow()) == as_set(cep.match_all(events, together, output=output))
