"""Patterns as tables: the engine gives kernels the arrays, of the types, that kernels are tested with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpu_cep.analysis.options import Options
from gpu_cep.api import make_plan
from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.patterns import matcher_tables
from gpu_cep.engine.programs import tabulator
from gpu_cep.plan.settings import Settings
from gpu_cep.testing.kernel_cases.tables import pattern_table

EVENTS = pa.table({"ts": [1], "type": ["A"]})


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
    found = matcher_tables(plan, tabulator(EventColumns(EVENTS, plan.query))).pattern._asdict()
    wanted = pattern_table(sizes, quantifiers)._asdict()
    assert {name: array.tolist() for name, array in found.items()} == {name: array.tolist() for name, array in wanted.items()}
    assert {name: array.dtype for name, array in found.items()} == {name: array.dtype for name, array in wanted.items()}
