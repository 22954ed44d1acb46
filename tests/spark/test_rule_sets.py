"""gpu_match_all finds what match_all finds, with one shuffle for all patterns whose keys allow it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

import gpu_cep as cep
from gpu_cep_spark.failures import workers_errors
from gpu_cep_spark.rule_matching import group_rules
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
    return spark.createDataFrame(EVENTS).repartition(3)


@pytest.mark.surface
@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_every_query_has_its_own_matches(frame: DataFrame, output: str) -> None:
    expected = cep.match_all(EVENTS, QUERIES, output=output, split=True)
    found = cep.gpu_match_all(frame, QUERIES, output=output, split=True)
    assert list(found) == list(expected)
    for name in ("derived key", "both", "branches", "no key", "negation between derived keys"):
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
    found = cep.gpu_match_all(spark.createDataFrame(events).repartition(2), rules, output=output)
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


def test_groups_have_the_fewest_keys(frame: DataFrame) -> None:
    from gpu_cep_spark.rule_matching import plan_spark_rules

    rules = {
        "k": cep.Rule("PATTERN SEQ(A a)", {"partition_by": "key"}),
        "ku": cep.Rule("PATTERN SEQ(B a)", {"partition_by": ["key", "user"]}),
        "un": cep.Rule("PATTERN SEQ(C a)", {"partition_by": ["user", "n"]}),
        "none": cep.Rule("PATTERN SEQ(D a)"),
    }
    queries, failed = plan_spark_rules(rules, {"output": "count"}, EVENTS.schema)
    assert not failed
    assert sorted((sorted(keys), sorted(group)) for group, keys in group_rules(queries)) == [
        (["key"], ["k"]), (["key"], ["ku"]), (["n", "user"], ["un"])
    ]  # fmt: skip


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
    with pytest.raises(cep.UnsupportedError, match="output='compressed' is not supported"):
        cep.gpu_match_all(frame, KEYED, output="compressed")
    with pytest.raises(cep.EventError, match="expected a Spark DataFrame"):
        cep.gpu_match_all(EVENTS, KEYED)
    with pytest.raises(cep.UnsupportedError, match="does not take a streaming DataFrame yet"):
        cep.gpu_match_all(frame.sparkSession.readStream.format("rate").load(), KEYED)


def test_a_limit_names_the_pattern(frame: DataFrame) -> None:
    rules = KEYED | {"many": cep.Rule(KEYED["up"], {"max_matches": 1, "strategy": "skip_till_any_match"})}
    with pytest.raises(cep.MatchLimitExceeded, match="pattern 'many': more than max_matches=1"), workers_errors():
        cep.gpu_match_all(frame, rules).toArrow()


def test_a_result_may_have_a_column_called_pattern_if_it_stands_alone(frame: DataFrame) -> None:
    rules = {"named": 'PARTITION BY key PATTERN SEQ(A a) RETURN a.n AS "pattern"'}
    with pytest.raises(cep.PatternError, match="has a column 'pattern' already"):
        cep.gpu_match_all(frame, rules)
    found = cep.gpu_match_all(frame, rules, split=True)["named"]
    assert as_set(found.toArrow()) == as_set(cep.match_all(EVENTS, rules, split=True)["named"])
