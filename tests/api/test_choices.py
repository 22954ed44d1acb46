"""Arguments: what is unknown, what is not supported yet, and how errors travel."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from pyarrow import parquet

import gpu_cep as cep
from gpu_cep import errors

EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"]})
PATTERN = "PATTERN SEQ(A a, B b) WITHIN 10"
# Each match of the first branch is one of the second, too.
ALIKE = "PATTERN OR(SEQ(A a, B b), AND(A a, B b)) WITHIN 5"


def fault(expected, pattern=PATTERN, **options):
    with pytest.raises(expected) as caught:
        cep.match(EVENTS, pattern, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("SEQ(A a+, B b) WHERE a[3].ts < b.ts", r"a\[3\].ts in WHERE"),
        ("SEQ(A a+, B b) WHERE NOT [type]", r"\[type\] inside another expression"),
        ("SEQ(A a+, B b) WHERE length(max(a.type)) = 1", r"length\(\) of these arguments"),
        ("SEQ(A a+, B b) WHERE skip_till_any_match(a) { TRUE }", r"skip_till_any_match\(a\) without b"),
    ],
)
def test_constructs_that_are_refused(pattern, construct):
    with pytest.raises(errors.UnsupportedError, match=construct):
        cep.match(EVENTS, f"PATTERN {pattern} WITHIN 10")


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"output": "matchs"}, "did you mean 'matches'?"),
        ({"algorithm": "ses_automat"}, "did you mean 'ses_automaton'?"),
        ({"engine": "tpu"}, "expected one of auto, cpu, gpu"),
        ({"after_match": "skip_past"}, "did you mean 'skip_past_last'?"),
        ({"strategy": "skip_till_next"}, "did you mean 'skip_till_next_match'?"),
        ({"ties": "loose"}, "there are strict, position"),
        ({"prune": ["chian"]}, "did you mean 'chain'?"),
        ({"time_unit": "fortnight"}, "unknown time_unit 'fortnight'"),
        ({"max_matches": -1}, "max_matches must be a whole number of at least 0, not -1"),
        ({"max_steps": 1.5}, "max_steps must be a whole number of at least 0, not 1.5"),
        ({"max_matches": True}, "max_matches must be a whole number of at least 0, not True"),
        ({"threads": 0}, "threads must be a whole number of at least 1, not 0"),
        ({"gpu_memory": "8 gallons"}, "or text such as '8GB' or '512MiB', not '8 gallons'"),
        ({"gpu_memory": 0}, "gpu_memory must be a number of bytes, at least 1"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_unknown_choices(options, hint):
    assert hint in fault(errors.PatternError, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": "x"}, "threads must be a whole number of at least 1, not 'x'"),
        ({"threads": 1.5}, "threads must be a whole number of at least 1, not 1.5"),
        ({"threads": True}, "threads must be a whole number of at least 1, not True"),
        ({"prune": None}, "prune must be True, False or some of filter, reach, partition, lift, summary, chain, overlap, not None"),
        ({"prune": 5}, "prune must be True, False or some of filter, reach, partition, lift, summary, chain, overlap, not 5"),
        ({"prune": [5]}, "prune: unknown step 5"),
        ({"partition_by": 5}, "partition_by must be the name of a column or a sequence of names, not 5"),
        ({"partition_by": [5]}, "partition_by must be the name of a column or a sequence of names, not [5]"),
        ({"order_by": b"ts"}, "order_by must be the name of a column or a sequence of names, not b'ts'"),
        ({"columns": {"ts": 1, 2: 3}}, "columns must be the name of a column or a sequence of names, not {'ts': 1, 2: 3}"),
        ({"timestamp": 5}, "timestamp must be text, not 5"),
        ({"timestamp": None}, "timestamp must be text, not None"),
        ({"type_column": ["type"]}, "type_column must be text, not ['type']"),
        ({"strategy": 5}, "strategy must be text, not 5"),
        ({"ties": 5}, "ties must be text, not 5"),
        ({"time_unit": 5}, "time_unit must be text, not 5"),
        ({"gpu_memory": 1.5e9}, "gpu_memory must be a number of bytes, at least 1, or text such as '8GB' or '512MiB', not 1500000000.0"),
        ({"gpu_memory": True}, "gpu_memory must be a number of bytes, at least 1, or text such as '8GB' or '512MiB', not True"),
        ({"output": 5}, "output=5 is unknown"),
        ({"algorithm": None}, "algorithm=None is unknown"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_arguments_of_another_type(options, message):
    assert message in fault(errors.PatternError, **options)


EXPLAINED = {
    "output": ("count", "matchs"),
    "engine": ("cpu", "tpu"),
    "threads": (1, 0),
    "algorithm": ("brute_force", "ses_automat"),
    "after_match": ("skip_to_next", "every"),
    "columns": (["ts"], ["tss"]),
    "prune": (["chain"], ["chian"]),
    "timestamp": ("ts", 5),
}


@pytest.mark.parametrize("argument", EXPLAINED)
def test_explain_takes_what_match_takes(argument):
    sound, unsound = EXPLAINED[argument]
    explained = cep.explain(EVENTS, PATTERN, **{argument: sound})
    assert "algorithm" in str(explained)
    if argument not in ("timestamp", "threads"):
        assert getattr(explained.plan.settings, argument) == (tuple(sound) if isinstance(sound, list) else sound)
    with pytest.raises(errors.PatternError) as caught:
        cep.explain(EVENTS, PATTERN, **{argument: unsound})
    assert str(caught.value) == fault(errors.PatternError, **{argument: unsound})


@pytest.mark.parametrize(
    "query",
    [
        PATTERN,
        "DEFINE P AS type = 'A', Q AS type = 'B' PATTERN P meets Q",
        "MATCH_RECOGNIZE (ORDER BY ts MEASURES x.ts AS at PATTERN (x) DEFINE x AS ts > 1)",
    ],
)
def test_explain_shows_its_own_run_alone(query):
    """Whatever runs the caller's profile holds, to which this one is added."""
    profile, alone = cep.Profile(), cep.Profile()
    cep.match(EVENTS, PATTERN, profile=profile)
    before = dict(profile.counts)
    explained = cep.explain(EVENTS, query, run=True, profile=profile)
    assert explained.counts == cep.explain(EVENTS, query, run=True, profile=alone).counts == alone.counts
    assert profile.counts == {name: before.get(name, 0) + alone.counts.get(name, 0) for name in [*before, *alone.counts]}


@pytest.mark.parametrize("output", ["matches", "count", "events"])
@pytest.mark.parametrize("keys", [None, "k"])
@pytest.mark.parametrize("keep", [{"after_match": "skip_past_last"}, {"after_match": "skip_to_next"}, {"limit_per_start": 2}, {}])
def test_explain_says_how_many_matches_are_kept(tmp_path, keep, output, keys):
    events, path = pa.table({"ts": range(60), "type": list("ABB") * 20, "k": [0, 0, 0, 1, 1, 1] * 10}), tmp_path / "events.parquet"
    parquet.write_table(events, path, row_group_size=6)
    asked = {"strategy": "skip_till_any_match", "partition_by": keys, **keep}
    for pattern, given, memory in ((PATTERN, events, None), (PATTERN, path, 4_000), (ALIKE, events, None), (ALIKE, path, 4_000)):
        kept = cep.match(events, pattern, **asked).num_rows
        explained = cep.explain(given, pattern, output=output, memory=memory, run=True, **asked)
        assert explained.counts.get("kept") == (kept if keep or pattern == ALIKE else None)
        assert explained.counts["matches"] >= kept
        assert (" slices of time" in str(explained)) == (memory is not None)


@pytest.mark.parametrize(("after_match", "counted"), [("skip_past_last", False), ("skip_to_next", True)])
def test_a_stream_says_how_many_matches_are_kept_where_no_later_event_decides(after_match, counted):
    profile, events = cep.Profile(), pa.table({"ts": range(60), "type": list("ABB") * 20})
    kept = cep.match(events, PATTERN, after_match=after_match).num_rows
    stream = cep.stream(PATTERN, events.schema, after_match=after_match, profile=profile)
    found = [stream.push(events.slice(0, 30)), stream.push(events.slice(30)), stream.finish()]
    assert sum(each.num_rows for each in found) == kept < profile.counts["matches"] + counted
    assert profile.counts.get("kept") == (kept if counted else None)


@pytest.mark.parametrize("unsound", [{"max_steps": "x"}, {"engine": "x"}, {"max_matches": -1}])
@pytest.mark.parametrize("call", [cep.explain, cep.report, lambda events, query, **given: cep.stream(query, events.schema, **given)])
def test_row_patterns_are_refused_as_match_refuses_them(call, unsound):
    query = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A+) WITHIN 5 DEFINE A AS ts >= FIRST(ts))"
    with pytest.raises(errors.PatternError) as caught:
        call(EVENTS, query, **unsound)
    assert str(caught.value) == fault(errors.PatternError, query, **unsound)


def test_a_run_that_fails_leaves_what_it_counted():
    profile, asked = cep.Profile(), {"strategy": "skip_till_any_match", "max_matches": 1}
    with pytest.raises(errors.MatchLimitExceeded):
        cep.explain(pa.table({"ts": range(6), "type": ["A", "B"] * 3}), "PATTERN SEQ(A a, B b)", run=True, profile=profile, **asked)
    assert profile.counts["events"] == 6


def test_explain_names_the_algorithm_that_was_chosen():
    assert "algorithm  brute_force" in str(cep.explain(EVENTS, PATTERN, algorithm="brute_force"))


def test_all_unknown_choices_are_reported_at_once():
    message = fault(errors.PatternError, output="x", algorithm="y", max_steps=-1)
    assert all(name in message for name in ("output", "algorithm", "max_steps"))


@pytest.mark.parametrize(
    ("keyword", "clause"),
    [({"strategy": "skip_till_any_match"}, "WHERE skip_till_next_match { a.ts > 0 }"), ({"partition_by": "ts"}, "")],
)
def test_a_keyword_that_contradicts_the_text(keyword, clause):
    prefix = "PARTITION BY type " if "partition_by" in keyword else ""
    with pytest.raises(errors.PatternError, match=next(iter(keyword))):
        cep.match(EVENTS, f"{prefix}PATTERN SEQ(A a, B b) {clause}", **keyword)


def test_a_pattern_is_text_or_a_parsed_query():
    assert cep.match(EVENTS, cep.parse(PATTERN), output="count").to_pydict() == {"count": [1]}
    with pytest.raises(errors.PatternSyntaxError, match=r"a query is text, or built by seq\(…\) and its like, not int"):
        cep.match(EVENTS, 5)
    with pytest.raises(errors.PatternSyntaxError, match=r"not Rule: give what it holds, rule\.pattern .* or .* to match_all\(\)"):
        cep.match(EVENTS, cep.Rule(PATTERN))


RAISED = [
    (errors.PatternSyntaxError, "PATTERN SEQ(A a", {}),
    (errors.PatternError, "PATTERN A a WHERE a.x = 1", {}),
    (errors.UnsupportedError, "PATTERN A a+ WHERE a[3].ts > 1", {}),
    (errors.MatchLimitExceeded, PATTERN, {"max_matches": 0}),
    (errors.EventError, "PATTERN SEQ(A a, B b) WHERE a.ts + 9223372036854775807 > 0", {}),
]


@pytest.mark.parametrize(("kind", "pattern", "options"), RAISED, ids=[kind.__name__ for kind, _, _ in RAISED])
def test_errors_are_cep_errors_and_travel_between_processes(kind, pattern, options):
    with pytest.raises(kind) as caught:
        cep.match(EVENTS, pattern, **options)
    assert isinstance(caught.value, cep.CepError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is kind
    assert str(copy) == str(caught.value) != ""
    assert getattr(copy, "diagnostics", None) == getattr(caught.value, "diagnostics", None)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: cep.match(EVENTS, "PATTERN a", profile=3), "profile must be a gpu_cep.Profile, .*, not 3"),
        (lambda: cep.match(EVENTS, "PATTERN a", tuning=cep.Tuning(profile=3)), "profile must be a gpu_cep.Profile"),
        (lambda: cep.explain(EVENTS, "PATTERN a", run=True, profile={}), "profile must be a gpu_cep.Profile, .*, not {}"),
        (lambda: cep.plot(EVENTS, "PATTERN a", profile=3), "profile must be a gpu_cep.Profile"),
        (lambda: cep.report(EVENTS, "PATTERN a", profile=3), "profile must be a gpu_cep.Profile"),
        (lambda: cep.waterfall(5), r"a waterfall shows a gpu_cep.Profile or what explain\(…, run=True\) returned, not 5"),
        (lambda: cep.register(None), r"register\(\) takes the session of Spark first, register\(spark\), not None"),
    ],
)
def test_arguments_of_another_kind_are_refused_at_the_call(ask, message):
    with pytest.raises(errors.PatternError, match=message):
        ask()
