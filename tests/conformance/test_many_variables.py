"""Patterns of more variables than a label word has bits, against the oracle."""

from __future__ import annotations

from functools import partial
from itertools import chain, combinations
from unittest.mock import patch

import pyarrow as pa
import pytest

import gpu_cep
from gpu_cep.engine.events.batches import cut_batches
from gpu_cep.plan.settings import PRUNING_STEPS
from tests.conformance.many_variables import ANY, CASES, NEXT, SINGLE, typed
from tests.results import matches_of

NAMES = pytest.mark.parametrize("name", CASES)
STRATEGIES = pytest.mark.parametrize("strategy", [NEXT, ANY])


def found(name, strategy, **options):
    case = CASES[name]
    return gpu_cep.match(case.events, case.text, strategy=strategy, engine="cpu", **options)


def test_the_cases_have_matches():
    assert {name for name, case in CASES.items() if not case.matches(ANY)} == {"no match"}


@NAMES
@STRATEGIES
def test_same_matches_in_the_same_order_whatever_is_pruned(name, strategy, pytestconfig):
    wanted = CASES[name].matches(strategy)
    sizes = range(len(PRUNING_STEPS) + 1) if pytestconfig.getoption("--full") else (0, 1, len(PRUNING_STEPS))
    for prune in chain.from_iterable(combinations(PRUNING_STEPS, size) for size in sizes):
        assert matches_of(found(name, strategy, output="indices", prune=list(prune))) == wanted
    assert found(name, strategy, output="count")["count"].to_pylist() == [len(wanted)]


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("algorithm", ["lazy_chain", "lazy_tree", "join_tree", "ses_automaton"])
def test_algorithms_agree(name, algorithm):
    wanted = CASES[name].matches(ANY)
    assert matches_of(found(name, ANY, output="indices", algorithm=algorithm)) == wanted
    assert found(name, ANY, output="count", algorithm=algorithm)["count"].to_pylist() == [len(wanted)]


@NAMES
@pytest.mark.parametrize("algorithm", ["lazy_chain", "lazy_tree"])
def test_lazy_automata_run_them_all(name, algorithm):
    wanted = CASES[name].matches(ANY)
    assert matches_of(found(name, ANY, output="indices", algorithm=algorithm)) == wanted


@pytest.mark.parametrize(
    ("strategy", "algorithm"),
    [(NEXT, "auto"), (NEXT, "ses_automaton"), *((ANY, name) for name in ("auto", "ses_automaton", "join_tree", "lazy_chain", "lazy_tree"))],
)
def test_sets_of_many_variables(strategy, algorithm):
    """Three streams: each type once in another order, one type missing, and each once with one of them twice."""
    size = 66
    streams = [range(size)[::-1], range(size - 1), [*range(size), 65]]
    rows = [(key, f"T{v}") for key, stream in enumerate(streams) for v in stream]
    events = pa.table({"ts": range(len(rows)), "key": [key for key, _ in rows], "type": [name for _, name in rows]})
    text = f"PATTERN AND({typed(range(size))}) WITHIN {size} EVENTS"
    counts = gpu_cep.match(events, text, partition_by="key", strategy=strategy, algorithm=algorithm, output="count")
    assert {row["key"]: row["count"] for row in counts.to_pylist() if row["count"]} == {0: 1, 2: 1}


def test_small_batches_of_several_streams():
    """Labels of two words, sorted into streams and into order of time."""
    size, keys = 70, 5
    rows = sorted(((7 * v + key) % 13, key, v) for key in range(keys) for v in range(size))
    events = pa.table({"ts": [v for _, _, v in rows], "key": [key for _, key, _ in rows], "type": [f"T{v}" for _, _, v in rows]})
    text = f"PATTERN SEQ({typed(range(size))}) WHERE [key]"
    wanted = {rows.index(((7 * 0 + key) % 13, key, 0)) for key in range(keys)}
    for options in ({"partition_by": "key"}, {}):
        with patch("gpu_cep.engine.run.cut_batches", partial(cut_batches, size=3)):
            matches = matches_of(gpu_cep.match(events, text, output="indices", **options))
        assert {match["v0"][0] for match in matches} == wanted
        assert len(matches) == keys
