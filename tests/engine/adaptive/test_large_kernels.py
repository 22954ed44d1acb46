"""The large kernels that a run is expected to launch are those that it launches."""

from __future__ import annotations

import pytest

from benchmarks.gpu.large_kernels import noting_calls
from gpu_cep import api
from gpu_cep.cli.warmup import SmallQuery, events_of
from gpu_cep_kernels.compile import large
from gpu_cep_kernels.compile.forms import name_of, text_of

RISING = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].price > b[i-1].price AND c.price < a.price WITHIN 300"
PAIR = "PATTERN SEQ(A a, B b, C c) WHERE b.price > a.price + 50 WITHIN 300"
SETS = "PATTERN SEQ(AND(A a, B b), C c) WHERE a.price < c.price WITHIN 100"
NEGATED = "PATTERN SEQ(A a, NOT(B n), C c) WHERE n.price > a.price AND a.price < c.price WITHIN 100"
PLAIN = "PATTERN SEQ(A a, B b) WITHIN 100"
ROWS = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES last(b.price) AS p PATTERN {}"
SEARCHED = ROWS.format("(a b+ c) DEFINE b AS b.price >= avg(b.price), c AS c.price < a.price)")
WALKED = ROWS.format("(a b+) DEFINE b AS b.price > a.price)")
MEAN = "PATTERN SEQ(A a, B b+, C c) WHERE avg(b.price) > a.price WITHIN 300"
ANY = {"strategy": "skip_till_any_match"}
QUERIES = [
    (RISING, {}, ["walk_compared_chains"]),
    (MEAN, {}, ["walk_chains"]),
    (SETS, {}, ["walk_windows"]),
    (SETS, {"after_match": "skip_past_last"}, ["walk_restricted_windows"]),
    (PAIR, {"strategy": "robust_skip_till_next_match"}, ["walk_compared_chains"]),
    (RISING, {"strategy": "robust_skip_till_next_match"}, ["enumerate_matches"]),
    (PAIR, ANY, ["enumerate_chain"]),
    (NEGATED, ANY, ["enumerate_negated_chain"]),
    (RISING, ANY, ["enumerate_chain", "enumerate_iterations"]),
    (PAIR, {**ANY, "algorithm": "lazy_tree"}, ["enumerate_chain"]),
    (PAIR, {**ANY, "algorithm": "join_tree"}, ["filter_partners"]),
    (NEGATED, {**ANY, "algorithm": "join_tree"}, ["filter_partners", "judge_rows"]),
    (PAIR, {**ANY, "algorithm": "ses_automaton"}, ["enumerate_matches"]),
    (RISING, {"algorithm": "nfab"}, ["grow_runs", "enumerate_paths"]),
    (PLAIN, {}, []),
    (PAIR, {"strategy": "strict_contiguity"}, []),
    (SEARCHED, {}, ["search_row_matches"]),
    (WALKED, {}, ["walk_row_matches"]),
]


@pytest.fixture
def named(monkeypatch):
    """The names of the kernels that runs expect to launch."""
    found: list[str] = []
    for module in ("gpu_cep.engine.answers", "gpu_cep.engine.row_patterns.answers"):
        monkeypatch.setattr(f"{module}.compile_beside", lambda kernels, _: found.extend(each.__name__ for each in kernels))
    return found


@pytest.mark.parametrize(("query", "asked", "expected"), QUERIES)
def test_kernels_are_named_that_run_for_the_types_that_are_listed(named, query, asked, expected):
    keyed = {} if query in (SEARCHED, WALKED) else {"partition_by": ["k"]}
    with noting_calls() as called:
        api.match(events_of(SmallQuery(query)), query, engine="cpu", **keyed, **asked)
    assert named == expected
    forms = large.forms()
    launched = {kernel: types for kernel, types in called if kernel.__name__ in expected}
    assert {kernel.__name__ for kernel in launched} == set(expected)
    for kernel, types in launched.items():
        assert forms[name_of(kernel)].types == [text_of(each) for each in types]
