"""Patterns as tables: the engine gives kernels the arrays, of the types, that kernels are tested with."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep.analysis.options import Options
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.pattern_tables import is_chain, matcher_tables
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from tests.kernel_cases.tables import AGGREGATES, ITERATED, aggregate_table, condition_table, pattern_table

EVENTS = pa.table({"ts": [1], "type": ["A"], "x": [1]})


@pytest.mark.parametrize(
    ("text", "sizes", "quantifiers"),
    [
        ("A a", (1,), [(1, 1)]),
        ("SEQ(A a, AND(B b{2}, C c+), D d{2,3})", (1, 2, 1), [(1, 1), (2, 2), (1, None), (2, 3)]),
        ("SEQ(AND(A a, B b), AND(C c, D d), E e)", (2, 2, 1), [(1, 1)] * 5),
    ],
)
def test_a_pattern_as_the_kernels_tests_build_it(text, sizes, quantifiers):
    plan = make_plan(f"PATTERN {text}", EVENTS.schema, Options(), Settings())
    (tables,) = matcher_tables(plan, EventColumns(EVENTS, plan.query, threads=1))
    found = tables.pattern._asdict()
    wanted = pattern_table(sizes, quantifiers)._asdict()
    assert {name: array.tolist() for name, array in found.items()} == {name: array.tolist() for name, array in wanted.items()}
    assert {name: array.dtype for name, array in found.items()} == {name: array.dtype for name, array in wanted.items()}


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("SEQ(A a, B b+) WHERE b.x > a.x", True),
        ("SEQ(A a, B b) WHERE a.type LIKE 'A%' OR b.type LIKE '%B' OR b.x > a.x", True),
        ("SEQ(AND(A a, B b), C c) WHERE c.x > a.x", False),
        ("SEQ(A a+, B b) WHERE b.x > a.x", False),
        ("SEQ(A a, B b+) WHERE sum(b.x) > 3", False),
        ("SEQ(A a, NOT(C c), B b+) WHERE b.x > a.x AND c.x < sum(b.x)", True),
        ("SEQ(A a, NOT(C c), B b+) WHERE b.x > a.x AND c.x < b.x", False),
        ("SEQ(A a, AND(NOT(C c), B b)) WHERE b.x > a.x WITHIN 9", True),
        ("SEQ(A a, AND(NOT(C c), B b{2})) WHERE b.x > a.x WITHIN 9", False),
        ("SEQ(AND(A a, B b), NOT(C c), A d)", False),
    ],
)
def test_whether_a_pattern_is_a_chain_is_known_before_its_events(text, chain):
    plan = make_plan(f"PATTERN {text}", EVENTS.schema, Options(), Settings())
    (tables,) = matcher_tables(plan, EventColumns(EVENTS, plan.query, threads=1))
    assert (tables.walked_chain is not None) is is_chain(plan, *plan.branches) is chain
    assert tables.chain is (None if plan.branches[0].negations else tables.walked_chain)


EVERYTHING = """
PATTERN SEQ(A a+, OR(B b, C c{2}), NOT(D d), E e)
WHERE sum(a.x) > 3 AND a.x < b.x AND d.x = e.x AND c[i].x > max(c[..i-1].x) AND avg(e.x) < 9
WITHIN 9
"""


def tables_of(text):
    plan = make_plan(text, EVENTS.schema, Options(), Settings())
    return matcher_tables(plan, EventColumns(EVENTS, plan.query, threads=1))


def test_conditions_and_aggregates_of_the_types_that_kernels_are_tested_with():
    wanted = condition_table(4, ITERATED), aggregate_table(4, AGGREGATES)
    for tables in tables_of(EVERYTHING):
        for found, reference in zip((tables.conditions, tables.aggregates), wanted, strict=True):
            assert {name: np.asarray(value).dtype for name, value in found._asdict().items()} == {
                name: np.asarray(value).dtype for name, value in reference._asdict().items()
            }


def test_each_branch_is_a_pattern_of_its_own():
    first, second = tables_of(EVERYTHING)
    assert (first.branch.variables, second.branch.variables) == ((0, 1, 3, 4), (0, 2, 3, 4))
    assert (first.minimal, second.minimal, first.fewest, second.fewest) == (1, 1, 3, 4)
    assert [len(tables.conditions.means) for tables in (first, second)] == [3, 3]


def test_what_waits_for_a_closed_binding_is_asked_of_what_closes_it():
    (tables,) = tables_of("PATTERN SEQ(A a+, AND(B b, C c), D d+) WHERE sum(a.x) > 1 AND count(d) > 1 AND last(a.x) < d.x")
    listed = np.split(tables.conditions.listed, tables.conditions.first[1:-1])
    assert [own.tolist() for own in listed] == [[], [0, 2], [0, 2], [0, 2]]
    assert tables.conditions.final.tolist() == [1], "nothing closes d but the end"


def test_conditions_on_a_negated_variable_are_asked_of_its_events_alone():
    (tables,) = tables_of("PATTERN SEQ(A a, NOT(B b), C c) WHERE a.x < b.x AND b.x < c.x AND a.x < c.x")
    listed = np.split(tables.conditions.listed, tables.conditions.first[1:-1])
    assert [own.tolist() for own in listed] == [[2], [2], [0, 1]]
