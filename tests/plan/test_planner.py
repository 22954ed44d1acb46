"""What the planner makes of a query: label tests, branches, conditions between bindings, keys and pruning steps."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import PatternError, UnsupportedError
from gpu_cep.keywords import make_options
from gpu_cep.lang.ast_intervals import RELATIONS
from gpu_cep.plan.event_plan import CodeProperty, ComparisonProperty, PlannedNegation, ProgramProperty, Spread
from gpu_cep.plan.settings import PRUNING_STEPS, Settings, pruning_steps
from gpu_cep.queries.plans import make_plan

ROOT = Path(__file__).parents[2]
EVENTS = pa.table(
    {
        "ts": pa.array([], pa.int64()),
        "type": pa.array([], pa.string()),
        "k": pa.array([], pa.int64()),
        "x": pa.array([], pa.int64()),
        "y": pa.array([], pa.float64()),
        "s": pa.array([], pa.string()),
    }
)


def planned(pattern, *, partition_by=None, strategy=None, **settings):
    return make_plan(pattern, EVENTS.schema, make_options(partition_by=partition_by, strategy=strategy), Settings(**settings))


def column(name):
    return EVENTS.schema.get_field_index(name)


def test_tests_of_one_text_column_are_one_table():
    (test,) = planned("PATTERN SEQ(A a, B b, A c) WHERE b.type <> 'C'").properties
    assert isinstance(test, CodeProperty)
    assert (test.column, [bits for _, bits in test.predicates]) == (column("type"), [0b101, 0b010, 0b010])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.x > 3", ComparisonProperty(3, "gt", 3, 1)),
        ("3 > a.x", ComparisonProperty(3, "lt", 3, 1)),
        ("a.y <= 2", ComparisonProperty(4, "le", 2.0, 1)),
        ("b.x = -1", ComparisonProperty(3, "eq", -1, 2)),
    ],
)
def test_a_column_against_a_constant_is_one_pass(condition, expected):
    assert planned(f"PATTERN SEQ(a, b) WHERE {condition}").properties == (expected,)


def test_conjuncts_are_split_and_equal_tests_shared():
    properties = planned("PATTERN SEQ(a, b) WHERE a.x > 3 AND a.y > 0.5 AND b.x > 3").properties
    assert [type(test) for test in properties] == [ComparisonProperty] * 2
    assert {(test.column, test.bits) for test in properties} == {(column("x"), 0b11), (column("y"), 0b01)}


def test_cheap_tests_come_first():
    properties = planned("PATTERN a WHERE a.x * 2 > a.k AND a.y < 1 AND a.s LIKE 'x%'").properties
    assert [type(test) for test in properties] == [CodeProperty, ComparisonProperty, ProgramProperty]


def test_a_condition_without_variables_binds_all():
    (test,) = planned("PATTERN SEQ(a, b) WHERE 1 > 2").properties
    assert test.bits == 0b11


@pytest.mark.parametrize(("condition", "number"), [("TRUE", 0), ("a.x > 1 AND TRUE", 1), ("FALSE", 1)])
def test_true_is_no_property(condition, number):
    assert len(planned(f"PATTERN SEQ(a, b) WHERE {condition}").properties) == number


def test_conditions_between_bindings_read_a_bank_of_their_columns():
    plan = planned("PATTERN SEQ(a, b+, c) WHERE a.x < b.x AND b[i].y > b[i-1].y AND a.y + c.y > 1")
    (branch,) = plan.branches
    assert (plan.layout.ints, plan.layout.floats) == ((column("x"),), (column("y"),))
    assert [sorted(condition.variables) for condition in branch.conditions] == [[0, 1], [1], [0, 2]]
    (consecutive,) = branch.conditions[1].parts
    assert consecutive.spread is Spread.CONSECUTIVELY
    assert consecutive.each >= 0
    assert consecutive.previous >= 0


def test_branches_number_their_variables_by_themselves():
    plan = planned("PATTERN SEQ(a, OR(b, c), NOT(d), e+) WHERE a.x < c.x AND d.x < e.x AND b.y < e.y WITHIN 5")
    assert [variable.name for variable in plan.query.variables] == ["a", "b", "c", "e", "d"]
    first, second = plan.branches
    assert (first.variables, second.variables) == ((0, 1, 3, 4), (0, 2, 3, 4))
    assert (first.positives, first.before) == ((0, 1, 3), (0b000, 0b001, 0b011))
    assert [sorted(condition.variables) for condition in first.conditions] == [[2, 3], [1, 2]]
    assert [sorted(condition.variables) for condition in second.conditions] == [[0, 1], [2, 3]]
    assert first.negations == second.negations == (PlannedNegation(3, after=(0, 1), before=(2,)),)


def test_aggregates_are_kept_once_and_averages_are_quotients():
    plan = planned("PATTERN SEQ(a+, b+) WHERE avg(b.x) > 1 AND sum(b.x) < 9 AND count(a) > 1 AND b.y > max(a[..i-1].y)")
    (branch,) = plan.branches
    assert [(aggregate.variable, aggregate.step) for aggregate in branch.aggregates] == [
        (0, "count_events"), (0, "max_floats"), (1, "sum_ints"), (1, "count_ints"),
    ]  # fmt: skip
    assert [condition.closing for condition in branch.conditions] == [(1,), (1,), (0,), ()]


@pytest.mark.parametrize(
    ("text", "options", "stream_keys"),
    [
        ("SEQ(a, b) WHERE [k]", {}, ("k",)),
        ("SEQ(a, b) WHERE [k]", {"strategy": "robust_skip_till_next_match"}, ("k",)),
        # positions of the undivided stream count
        ("SEQ(a, b) WHERE [k]", {"strategy": "strict_contiguity"}, ()),
        ("SEQ(a, b) WHERE [k] WITHIN 5 EVENTS", {"strategy": "partition_contiguity"}, ()),
        # derived keys split streams only if they are all that partitions are made of, in each branch
        ("SEQ(a, b) WHERE [k]", {"strategy": "partition_contiguity"}, ("k",)),
        ("SEQ(a, b) WHERE [k]", {"strategy": "partition_contiguity", "prune": ()}, ("k",)),
        ("SEQ(a, b) WHERE [k] AND [s]", {"strategy": "partition_contiguity", "partition_by": "s"}, ("s", "k")),
        ("SEQ(a, b) WHERE [k] AND [y]", {"strategy": "partition_contiguity"}, ()),
        ("SEQ(a, b?, c) WHERE a.k = c.k AND b.s = c.s AND a.s = b.s", {"strategy": "partition_contiguity"}, ()),
    ],
)
def test_what_splits_streams(text, options, stream_keys):
    assert planned(f"PATTERN {text}", **options).stream_keys == tuple(map(column, stream_keys))


@pytest.mark.parametrize("strategy", ["strict_contiguity", "partition_contiguity"])
def test_contiguity_leaves_events_where_they_are(strategy):
    assert "filter" not in planned("PATTERN SEQ(A a, B b) WITHIN 5", strategy=strategy).pruning


def test_a_bank_holds_sixty_four_columns_of_each_kind():
    def match(width):
        events = pa.table({"ts": [1, 2], **{f"x{n}": pa.array([1, None if n == 63 else 2]) for n in range(width)}})
        related = " AND ".join(f"a.x{n} <> b.x{n}" for n in range(width) if n != 63)
        pattern = f"PATTERN SEQ(a, b) WHERE {related} AND (b.x63 IS NULL) = (a.x63 > 0)"
        return cep.match(events, pattern, output="count")["count"].to_pylist()

    assert match(64) == [1]
    with pytest.raises(UnsupportedError, match="more than 64 attributes"):
        match(65)


def test_derived_keys_make_their_conditions_redundant():
    pattern = "PATTERN SEQ(a, b, c) WHERE a.k = b.k AND b.k = c.k AND a.x < c.x WITHIN 5"
    plan = planned(pattern)
    assert (plan.derived, plan.stream_keys, len(plan.branches[0].conditions)) == ((column("k"),), (column("k"),), 1)
    unpartitioned = planned(pattern, prune=())
    assert (unpartitioned.derived, unpartitioned.stream_keys, len(unpartitioned.branches[0].conditions)) == ((), (), 4)


@pytest.mark.parametrize(
    ("condition", "shared"),
    [
        ("[s]", []),
        ("a.k = b.k AND a.s <> b.s", []),
        ("a.s = b.type", [["type", "s"]]),
        ("a.s < b.s", [["s"]]),
        ("a.s = b.s AND a.s < b.type", [["type", "s"]]),
        ("a.s = coalesce(b.s, 'x')", []),
        ("a.s = coalesce(b.s, a.type)", [["type", "s"]]),
    ],
)
def test_only_text_that_is_ordered_or_of_two_columns_shares_a_dictionary(condition, shared):
    plan = planned(f"PATTERN SEQ(a, b) WHERE {condition}")
    assert [[EVENTS.column_names[column] for column in group] for group in plan.dictionaries] == shared


def test_windows_of_events_leave_streams_and_events_whole():
    plan = planned("PATTERN SEQ(a, b) WHERE a.k = b.k AND a.x > 1 WITHIN 5 EVENTS")
    assert (plan.derived, len(plan.branches[0].conditions)) == ((), 1)
    assert not {"filter", "partition"} & set(plan.pruning)


def test_steps_that_cannot_help_are_left_out():
    assert planned("PATTERN SEQ(a, b)").pruning == ("filter", "chain")
    assert planned("PATTERN SEQ(a, b{2})").pruning == ("filter", "summary", "chain")
    assert planned("PATTERN SEQ(a, b) WHERE a.k = b.k").pruning == ("filter", "partition", "chain")
    assert planned("PATTERN SEQ(a, b)", prune=("summary",)).pruning == ("summary",)
    assert planned("PATTERN SEQ(a, b)", after_match="skip_to_next").pruning == ("filter", "chain", "overlap")
    everything = planned("PATTERN SEQ(a, b) WHERE skip_till_any_match { TRUE }", after_match="skip_to_next", algorithm="lazy_chain")
    assert everything.pruning == ("filter",)


def test_names_of_pruning_steps():
    assert pruning_steps(True) == PRUNING_STEPS
    assert pruning_steps(False) == ()
    assert pruning_steps("chain") == ("chain",)
    assert pruning_steps({"chain", "filter"}) == ("filter", "chain")
    with pytest.raises(PatternError, match=r"unknown step 'sumary'(.|\n)*did you mean 'summary'"):
        pruning_steps(["sumary"])


TEXT = "PATTERN SEQ(A a, B b+) WHERE a.x < b.x AND b.s LIKE 'x%' AND b.y > 0.5 AND lower(a.s) = 'y' WITHIN 5 RETURN sum(b.x)"

# All of these relations in one set: the order of a set of texts differs from process to process.
SITUATIONS = "DEFINE A AS x > 1, B AS y > 0.5 PATTERN " + "; ".join(f"A {relation} B" for relation in RELATIONS) + " WITHIN 5"


def test_plans_travel():
    plan = planned(TEXT)
    copy = pickle.loads(pickle.dumps(plan))
    assert copy == plan
    assert copy.fingerprint() == plan.fingerprint()


# Without this module, and so without pytest, which takes a third of the time.
ELSEWHERE = """
import sys
import pyarrow as pa
from gpu_cep.keywords import make_options
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(sys.argv[-1])))
for text in sys.argv[1:-1]:
    print(make_plan(text, schema, make_options(partition_by=None, strategy=None), Settings()).fingerprint())
"""


def fingerprints_elsewhere(seed, *texts):
    """The plans' fingerprints in a process with other hashes."""
    command = [sys.executable, "-c", ELSEWHERE, *texts, EVENTS.schema.serialize().to_pybytes().hex()]
    environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    return done.stdout.split()


def test_a_fingerprint_is_the_same_in_every_process():
    # texts have other hashes there
    assert fingerprints_elsewhere("1", TEXT, SITUATIONS) == [planned(text).fingerprint() for text in (TEXT, SITUATIONS)]


@pytest.mark.parametrize("change", [("0.5", "0.25"), ("WITHIN 5", "WITHIN 6"), ("sum", "max"), ("'x%'", "'y%'"), ("B b+", "B b{2,}")])
def test_a_fingerprint_tells_plans_apart(change):
    assert planned(TEXT.replace(*change)).fingerprint() != planned(TEXT).fingerprint()


def test_an_explanation_names_all_that_will_happen():
    pattern = "PATTERN SEQ(A a, B b+) WHERE a.k = b.k AND a.x < b.x AND b.y > 0.5 AND a.x + a.k > 1 WITHIN 5"
    text = str(cep.explain(EVENTS, pattern, partition_by="s"))
    for part in (
        "PATTERN SEQ(A a, B b+)", "a first; b after {a}", "skip_till_next_match", "5 ticks of ts", "s, derived keys k",
        "b: y > 0.5", "a.x + a.k > 1", "a.x < b.x", "implied by the derived keys: a.k = b.k", "filter", "partition", "ses_automaton",
    ):  # fmt: skip
        assert part in text


def test_an_explanation_tells_branches_negations_and_what_is_kept():
    pattern = "PATTERN SEQ(A a, OR(B b+, C c), NOT(D d), E e) WHERE count(b) > 1 AND d.x < e.x AND a.k = e.k"
    text = str(cep.explain(EVENTS, pattern, strategy="strict_contiguity", after_match="skip_past_last"))
    for part in (
        "strategy   strict_contiguity, ties strict, window none, after_match skip_past_last",
        "branch 1 of 2\n  order: a first; b after {a}; e after {a, b}\n  no d after {a, b}, before {e}\n  condition: count(b) > 1\n",
        "branch 2 of 2\n  order: a first; c after {a}; e after {a, c}\n  no d after {a, c}, before {e}\n  condition: d.x < e.x\n",
    ):
        assert part in text


def test_an_explanation_has_each_condition_once_with_the_earlier_events_that_first_asks_it_of():
    text = str(cep.explain(EVENTS, "PATTERN SEQ(A a, FIRST(B b), C c) WHERE b.x > a.x AND c.x > b.x WITHIN 9"))
    assert [line for line in text.splitlines() if "condition:" in line] == [
        "  condition: b.x > a.x, also for earlier b",
        "  condition: c.x > b.x, also for earlier c",
    ]


def test_an_explanation_says_where_an_open_scope_begins_and_ends():
    text = str(cep.explain(EVENTS, "PATTERN SEQ(NOT(B b), A a, NOT(C c)) WITHIN 9"))
    assert "no b from a window before the last event on, before {a}" in text
    assert "no c after {a}, until a window after the first event" in text


def test_an_explanation_without_events_is_the_query():
    assert str(cep.explain("pattern seq(A a,B b) within 5")) == "PATTERN SEQ(A a, B b)\nWITHIN 5"
