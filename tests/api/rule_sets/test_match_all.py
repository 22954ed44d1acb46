"""Many patterns at once have the matches, and the errors, that each has by itself."""

from __future__ import annotations

import math
import warnings
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.input.sources import Source
from gpu_cep.engine.rule_sets.compact_texts import compact_texts
from gpu_cep.keywords import read_keywords
from gpu_cep.queries.plans import make_plan
from gpu_cep.rule_sets import families as rule_families
from gpu_cep.rule_sets import runs as rule_runs
from gpu_cep.rule_sets.plans import plan_rules
from gpu_cep.rule_sets.rules import as_rules, named
from tests.drawn.rule_sets import RuleCase, families, rule_sets, typed_rule_sets
from tests.effort import examples

OUTPUTS = ("matches", "events", "indices", "count")
STEPS = pa.table({
    "ts": [1, 2, 3, 4, 5, 6],
    "user": ["ann", "bob", "ann", "bob", "ann", "bob"],
    "type": ["View", "View", "Buy", "Leave", "View", "Buy"],
    "price": [5, 6, 7, 8, 9, 10],
})  # fmt: skip
RULES = {
    "bought": "PATTERN SEQ(View v, Buy b) WITHIN 5 RETURN v.ts AS at",
    "left": "PATTERN SEQ(View v, Leave x) WITHIN 5 RETURN v.ts AS at",
    "costly": "PATTERN SEQ(v) WHERE v.price > 8 RETURN v.ts AS at",
}


def one_by_one(events, rules, **options):
    """The result of each rule by a call of its own, and the errors of those that have none."""
    found, failed = {}, {}
    for name, rule in rules.items():
        try:
            found[name] = cep.match(events, rule.pattern, **{**options, **rule.options})
        except cep.CepError as fault:
            failed[name] = fault
    return found, failed


def together(events, rules, **options):
    """The same by one call."""
    failed = {}
    try:
        found = cep.match_all(events, rules, on_error="report", failures=failed, split=True, **options)
    except cep.CepError:
        # it is raised if no rule is left
        assert len(rules) == len(one_by_one(events, rules, **options)[1])
        return {}, None
    return found, failed


def same(case: RuleCase, events, output: str, picked: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, wrong = one_by_one(events, case.rules, output=output)
        with patch.object(rule_runs, "_SHARE", 0 if picked else 1 << 30):
            found, failed = together(events, case.rules, output=output)
    assert list(found) == list(expected)
    for name, table in expected.items():
        assert found[name].schema == table.schema
        # NaN is no equal of its own
        assert str(found[name].to_pylist()) == str(table.to_pylist()), name
    if failed is not None:
        assert {name: (type(fault), str(fault)) for name, fault in failed.items()} == {
            name: (type(fault), str(named(name, fault))) for name, fault in wrong.items()
        }


@examples(60, 300)
@given(rule_sets(), st.sampled_from(OUTPUTS), st.booleans())
def test_each_has_the_matches_that_it_has_by_itself(case, output, picked):
    same(case, case.events, output, picked)


@examples(60, 300)
@given(typed_rule_sets(), st.sampled_from(OUTPUTS))
def test_events_of_other_types_are_not_missed(case, output):
    same(case, case.events, output, picked=True)


@examples(80, 400)
@given(families(), st.sampled_from(OUTPUTS), st.sampled_from([1, 4, 1 << 20]), st.sampled_from([0, 1 << 30]))
def test_rules_that_differ_in_constants_are_one_query(case, output, pairs, shared):
    with patch.multiple(rule_families, _FEWEST=1, _PAIRS=pairs, _SHARED=shared):
        same(case, case.events, output, picked=True)


FAMILY = {f"over {n}": f"PATTERN SEQ(View v, Buy b) WHERE b.price > {n} WITHIN 3 RETURN v.ts AS at, b.ts AS to" for n in range(5, 10)}


def test_rules_of_one_query_are_told_and_run_no_engine_of_their_own():
    told = cep.explain_all(STEPS, FAMILY | {"costly": RULES["costly"]})
    assert told.as_one == (tuple(FAMILY),)
    assert "one query: over 5, over 6, over 7, over 8, over 9 (they differ in constants only)" in str(told)
    expected, _ = one_by_one(STEPS, as_rules(FAMILY))
    with patch.object(rule_runs, "run_engine", side_effect=AssertionError("run")):
        assert cep.match_all(STEPS, FAMILY, split=True) == expected


def test_a_family_keeps_what_negations_look_back_at():
    rules = {
        f"over {n}": f"PATTERN SEQ(NOT(Leave n), View v, Buy b) WHERE b.price > {n} WITHIN 4 RETURN v.ts AS at, b.ts AS to"
        for n in range(5)
    }  # fmt: skip
    steps = pa.table({"ts": [1, 11, 12, 13, 30, 31], "type": ["Buy", "Leave", "View", "Buy", "View", "Buy"], "price": [9] * 6})
    assert cep.explain_all(steps, rules).as_one == (tuple(rules),)
    found = cep.match_all(steps, rules, split=True)
    assert found == one_by_one(steps, as_rules(rules))[0]
    assert found["over 0"]["at"].to_pylist() == [30]


@pytest.mark.parametrize("shared", [0, 2])
@pytest.mark.parametrize("missing", [None, math.nan])
@pytest.mark.parametrize("times", [pa.int64(), pa.float64(), pa.timestamp("s")])
def test_a_family_drops_events_without_a_time(times, missing, shared):
    # only floats may be no number
    missing = missing if pa.types.is_floating(times) else None
    stamps = pa.array([missing, 1, 2, missing, 3, 4, 9, 10, missing, 11], times)
    steps = pa.table({"ts": stamps, "type": ["View", "View", "Buy", "Buy", "View", "Buy", "Buy", "View", "View", "Buy"], "price": [9] * 10})
    within = "3 seconds" if pa.types.is_timestamp(times) else "3"
    rules = {name: cep.Rule(text.replace("WITHIN 3", f"WITHIN {within}"), {"nulls": "drop"}) for name, text in FAMILY.items()}
    with patch.object(rule_families, "_SHARED", shared), patch.object(rule_runs, "run_engine", side_effect=AssertionError("run")):
        found = cep.match_all(steps, rules, split=True)
    assert found == one_by_one(steps, rules)[0]
    assert [found[name].num_rows for name in rules] == [3, 3, 3, 3, 0]


@pytest.mark.usual
def test_rows_far_from_others_are_ordered_once_for_all_families():
    events = many_types(30_000, 9)
    text = "PARTITION BY k PATTERN SEQ(T{} a, T{} b, T{} c) WHERE {} WITHIN {} RETURN a.ts AS a, c.ts AS c"
    rules = {
        f"{test} {length} {n}": text.format(n, (n + 2) % 9, (n + 5) % 9, test, length)
        for test in ("a.x < c.x", "a.x = b.x") for length in (10, 15) for n in range(8)
    }  # fmt: skip
    assert len(cep.explain_all(events, rules).as_one) == 4
    found, ordered = [], []
    for shared in (2, 1 << 30):
        profile = cep.Profile()
        with patch.object(rule_families, "_SHARED", shared), patch.object(rule_runs, "run_engine", side_effect=AssertionError("run")):
            found.append(cep.match_all(events, rules, profile=profile, split=True))
        ordered.append(profile.counts["filtered"])
    assert found[0] == found[1] == one_by_one(events, as_rules(rules))[0]
    assert any(table.num_rows for table in found[0].values())
    assert 2 * ordered[0] < ordered[1]


def test_an_error_in_a_family_is_that_of_its_rule():
    rules = {name: cep.Rule(text, {"max_matches": 2}) for name, text in FAMILY.items()}
    failures = {}
    found = cep.match_all(STEPS, rules, on_error="report", failures=failures, split=True)
    expected, wrong = one_by_one(STEPS, rules)
    assert found == expected
    assert sorted(failures) == list(wrong) == ["over 5", "over 6"]


@pytest.mark.usual
def test_of_a_family_in_which_a_rule_fails_only_its_part_runs_once_more():
    rules = {name: cep.Rule(text, {"max_matches": 2}) for name, text in FAMILY.items()}
    expected, wrong = one_by_one(STEPS, rules)
    alone: list[str] = []

    def run_engine(plan, *arguments, **keywords):
        alone.append(plan.query)
        return run_engine_itself(plan, *arguments, **keywords)

    run_engine_itself = rule_runs.run_engine
    for pairs, most in ((1, len(wrong)), (1 << 20, len(rules))):
        alone.clear()
        with patch.object(rule_families, "_PAIRS", pairs), patch.object(rule_runs, "run_engine", run_engine):
            found = cep.match_all(STEPS, rules, on_error="report", failures={}, split=True)
        assert found == expected
        assert len(alone) <= most < len(rules) + 1


def test_negated_events_are_among_those_of_a_rule():
    events = pa.table({"ts": range(8), "type": list("ABCXACXX")})
    rules = {"without": "PATTERN SEQ(A a, NOT(B n), C c) WITHIN 5", "with": "PATTERN SEQ(A a, B b, C c) WITHIN 5"}
    with patch.object(rule_runs, "_SHARE", 0):
        found = cep.match_all(events, rules, output="indices", split=True)
    assert found["without"].to_pylist() == [{"a": 4, "c": 5}]
    assert found["with"].to_pylist() == [{"a": 0, "b": 1, "c": 2}]


@examples(15, 60)
@given(rule_sets(), st.sampled_from(OUTPUTS), st.booleans())
def test_files_are_read_once_for_all(tmp_path_factory, case, output, picked):
    path = tmp_path_factory.mktemp("rules") / "events.parquet"
    pa.parquet.write_table(case.events, path, row_group_size=4)
    same(case, str(path), output, picked)


@pytest.mark.parametrize("missing", [None, float("nan")])
@pytest.mark.parametrize("nulls", ["error", "drop"])
def test_a_missing_timestamp_is_seen_wherever_it_is(missing, nulls):
    events = STEPS.set_column(0, "ts", pa.array([1.0, 2.0, 3.0, missing, 5.0, 6.0]))
    rules = {name: cep.Rule(RULES[name]) for name in ("bought", "bought", "costly")} | {"again": cep.Rule(RULES["bought"])}
    expected, wrong = one_by_one(events, rules, nulls=nulls)
    with patch.object(rule_runs, "_SHARE", 0):
        found, failed = together(events, rules, nulls=nulls)
    assert found == expected
    assert failed is None or failed.keys() == wrong.keys()


def test_one_table_has_the_name_of_the_pattern_first():
    found = cep.match_all(STEPS, RULES, partition_by="user")
    assert found.column_names == ["pattern", "user", "match_start", "match_end", "at"]
    parts = {name: cep.match(STEPS, text, partition_by="user").to_pylist() for name, text in RULES.items()}
    assert found.to_pylist() == [{"pattern": name, **row} for name, rows in parts.items() for row in rows]


def test_many_small_results_are_one_piece():
    found = cep.match_all(STEPS, {f"rule {n}": RULES["bought"] for n in range(20)})
    assert found["pattern"].num_chunks == 1
    assert found.num_rows == 20 * cep.match(STEPS, RULES["bought"]).num_rows


def test_results_with_other_columns_are_no_one_table():
    rules = {"a": "PATTERN SEQ(View v) RETURN v.ts AS at", "b": "PATTERN SEQ(View v) RETURN v.ts AS then"}
    with pytest.raises(cep.PatternError, match=r"the patterns 'a' and 'b' have not the same columns: .*at int64.*then int64.*split=True"):
        cep.match_all(STEPS, rules)
    assert {name: table.column_names[-1] for name, table in cep.match_all(STEPS, rules, split=True).items()} == {"a": "at", "b": "then"}
    with pytest.raises(cep.PatternError, match="has a column 'pattern' already"):
        cep.match_all(STEPS, {"a": 'PATTERN SEQ(View v) RETURN v.ts AS "pattern"'})


def test_what_is_wrong_with_all_is_told_once():
    rules = {f"r{number}": "PATTERN SEQ(A a, B b)" for number in range(5)} | {"own": "PATTERN SEQ(A a, B b) WHERE a.nope > 1"}
    with pytest.raises(cep.PatternError) as fault:
        cep.match_all(STEPS, rules, strategy="any")
    told = str(fault.value)
    assert told.startswith("patterns 'r0', 'r1', 'r2' and 3 more: unknown strategy 'any'\n  hint: there are strict_contiguity, ")
    assert (told.count("unknown strategy"), "line 1, column 29: pattern 'own': unknown attribute 'nope'" in told) == (1, True)


def test_all_faults_are_told_at_once_by_name():
    with pytest.raises(cep.PatternError) as caught:
        cep.match_all(STEPS, {"fine": RULES["bought"], "x": "PATTERN SEQ(v) WHERE v.pric > 1", "y": "PATTERN SEQ(v) WHERE v.k > 1"})
    assert "pattern 'x': " in str(caught.value)
    assert "pattern 'y': " in str(caught.value)


@pytest.mark.parametrize("wrong", ["PATTERN SEQ(View v) WHERE v.k > 1", "PATTERN SEQ(View v) RETURN v.ts AS other"])
def test_nothing_is_read_for_rules_that_cannot_run(tmp_path, wrong):
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(STEPS, path)
    with patch.object(Source, "read_part", side_effect=AssertionError("read")), pytest.raises(cep.PatternError):
        cep.match_all(str(path), RULES | {"wrong": wrong})


def test_a_limit_stops_no_other_pattern():
    rules = RULES | {"many": cep.Rule("PATTERN SEQ(a, b) RETURN a.ts AS at", {"max_matches": 1, "strategy": "skip_till_any_match"})}
    with pytest.raises(cep.MatchLimitExceeded, match="pattern 'many': more than max_matches=1 "):
        cep.match_all(STEPS, rules)
    failures = {}
    found = cep.match_all(STEPS, rules, on_error="report", failures=failures)
    assert list(failures) == ["many"]
    assert found == cep.match_all(STEPS, RULES)
    with pytest.warns(cep.FailedPatternWarning, match="pattern 'many': more than max_matches=1 "):
        assert cep.match_all(STEPS, rules, on_error="report") == found


def test_what_no_event_has_is_told_by_name():
    with pytest.warns(cep.AbsentValueWarning, match="pattern 'typo': no event has type 'Byu'; did you mean 'Buy'?"):
        cep.match_all(STEPS, {"typo": "PATTERN SEQ(View v, Byu b) RETURN v.ts AS at", "fine": RULES["bought"]})


@pytest.mark.parametrize(
    ("patterns", "options", "message"),
    [
        ([], {}, "give each of them a name"),
        ("rules.yaml", {}, "load_rules(path) reads them"),
        (STEPS, {}, "match_all(events, patterns) takes the events first"),
        ({"a": {"pattern": "PATTERN SEQ(a)"}}, {}, "pattern 'a': a rule is a pattern, or a Rule of one, not dict"),
        ({"a": cep.Rule("a", "PATTERN SEQ(a)")}, {}, "the name of a rule is its key"),
        (RULES, {"split": "no"}, "split must be True or False, not 'no'"),
        ({}, {}, "there is no pattern"),
        ({1: "PATTERN SEQ(a)"}, {}, "the name of a pattern must be text, not 1"),
        ({"a": cep.Rule("PATTERN SEQ(a)", {"partitionby": "k"})}, {}, "did you mean 'partition_by'?"),
        ({"a": cep.Rule("PATTERN SEQ(a)", {"output": "count"})}, {}, "output= is the same for all rules: give it to the call"),
        ({"a": cep.Rule("PATTERN SEQ(a)", {"late": "rows"})}, {}, "late= is the same for all rules: give it to the call"),
        ({"a": cep.Rule("PATTERN SEQ(a)", {"patterns": {}})}, {}, "'patterns' is no option of a rule"),
        (RULES, {"on_error": "rais"}, "did you mean 'raise'?"),
        (RULES, {"failures": []}, "failures must be a dictionary"),
        (RULES, {"result": "reader"}, "result='reader' is not supported for many patterns"),
        (RULES, {"output": "compressed"}, "give split=True"),
        (RULES, {"complete_until": 3}, "complete_until= is not supported for many patterns"),
    ],
)
def test_what_cannot_be_is_refused(patterns, options, message):
    with pytest.raises((cep.PatternError, cep.UnsupportedError)) as caught:
        cep.match_all(STEPS, patterns, **options)
    assert message in str(caught.value)


def test_results_come_in_every_form():
    assert cep.match_all(STEPS, RULES, result="pandas")["pattern"].tolist()[0] == "bought"
    found = cep.match_all(STEPS, RULES, output="compressed", split=True)
    assert {name: graph.count() for name, graph in found.items()} == {name: cep.match(STEPS, text).num_rows for name, text in RULES.items()}


def test_rules_of_other_kinds_run_beside_the_others():
    rows = "MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS at PATTERN (A) DEFINE A AS price > 9)"
    rules = RULES | {
        "rows": cep.Rule(rows, {"algorithm": "brute_force"}),
        "literally": cep.Rule(RULES["bought"], {"algorithm": "brute_force"}),
        "situations": "DEFINE High AS price > 7 AT LEAST 1, Low AS price < 9 PATTERN Low overlaps High WITHIN 9",
    }
    found = cep.match_all(STEPS, rules, split=True)
    assert found["literally"].to_pylist() == found["bought"].to_pylist()
    assert found["rows"].num_rows == 1
    assert found["situations"] == cep.match(STEPS, rules["situations"])


def many_types(size: int, types: int) -> pa.Table:
    scatter = np.random.default_rng(31)
    names = pa.array([f"T{n}" for n in range(types)])
    return pa.table({
        "ts": np.arange(size), "k": scatter.integers(0, 50, size), "type": names.take(pa.array(scatter.integers(0, types, size))),
        "x": scatter.integers(0, 9, size),
    })  # fmt: skip


@pytest.mark.usual
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.uint8(), pa.string())])
def test_each_funnel_touches_its_own_rows(kind):
    events = many_types(20_000, 90)
    events = events.set_column(2, "type", events["type"].cast(kind))
    funnel = "PATTERN SEQ(T{} a, T{} b+, T{} c) WHERE a.x < c.x WITHIN 4000 RETURN a.ts AS a, b.ts AS b"
    rules = {f"funnel {n}": funnel.format(3 * n, 3 * n + 1, 3 * n + 2) for n in range(30)}
    told = cep.explain_all(events, rules, partition_by="k")
    assert dict(told.looked_up) == {"type": 90}
    assert len(told.groups) == 30
    assert all(group.rows < 1_000 for group in told.groups)
    assert sum(group.rows for group in told.groups) == len(events)
    found = cep.match_all(events, rules, partition_by="k", split=True)
    for name, text in rules.items():
        assert found[name].to_pylist() == cep.match(events, text, partition_by="k").to_pylist()


def test_text_that_plans_often_read_is_encoded_once():
    events = many_types(1 << 16, 9)
    planned = make_plan("PATTERN SEQ(T1 a, T2 b) WITHIN 9", events.schema, *read_keywords({}))
    for rows, encoded in (([1 << 16] * 4, True), ([1 << 16] * 3, False), ([1 << 13] * 31, False), ([1 << 13] * 32, True)):
        found = compact_texts(events, [(planned, each) for each in rows])
        assert pa.types.is_dictionary(found.schema.field("type").type) == encoded
        assert found["type"].cast(pa.string()) == events["type"]
    assert compact_texts(events.slice(1), [(planned, 1 << 16)] * 9) == events.slice(1)


@pytest.mark.usual
def test_the_explanation_says_what_is_shared_and_what_is_wrong():
    events = many_types(1_000, 20)
    same, other = "PATTERN SEQ(T1 a, T2 b)", "PATTERN SEQ(a) WHERE a.x > 7"
    rules = {"a": same, "b": f"{same} WHERE a.x > 3", "c": other, "d": "PATTERN SEQ(T1 a"}
    told = str(cep.explain_all(events, rules))
    assert "4 patterns over 1,000 events" in told
    assert "looked up together: 2 constants of type" in told
    assert "(by type): a, b" in told
    assert "1,000 events (all): c" in told
    assert "error: line 1, column 17: pattern 'd': " in told
    with pytest.raises(cep.UnsupportedError, match=r"(?s)rare= is for Spark DataFrames.*leave rare= out"):
        cep.explain_all(events, rules, rare="a")
    with pytest.raises(cep.UnsupportedError, match=r"(?s)every= is for a streaming .*stream_all\(\) takes it.*late= is for a streaming"):
        cep.explain_all(events, rules, late="error", every=5)
    for name, fault in cep.explain_all(events, {"a": same, "b": other}, timeouts=True).failed.items():
        assert str(fault).startswith(f"pattern {name!r}: timeouts=True is not supported here")


def test_little_memory_makes_each_run_alone(tmp_path):
    path = tmp_path / "events.parquet"
    events = many_types(400_000, 9)
    pa.parquet.write_table(events, path, row_group_size=10_000)
    rules = {f"{n}": f"PATTERN SEQ(T{n} a, T{n + 1} b) WITHIN 9 RETURN a.ts AS at" for n in range(2)}
    told = cep.explain_all(str(path), rules)
    assert not told.alone
    planned = plan_rules(str(path), as_rules(rules), {"memory": "4MiB"})
    assert planned.alone == dict.fromkeys(rules, "together the events do not fit in memory")
    found = cep.match_all(str(path), rules, memory="4MiB")
    assert found == cep.match_all(str(path), rules)
