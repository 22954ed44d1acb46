"""The comparison of rule sets prints a line for each kind and number, of events in memory and in Parquet."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import gpu_cep as cep
from benchmarks.rivals import rule_sets
from benchmarks.rules import capacity, run
from benchmarks.rules.workload import KINDS, made


def test_every_kind_has_its_lines(tmp_path, capsys):
    run.main(["--events", "3000", "--rules", "1", "12", "--repeats", "1", "--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    for kind in KINDS:
        assert printed.count(f"| {kind} | 1 |") == printed.count(f"| {kind} | 12 |") == 2
    assert not list(tmp_path.iterdir())


def test_the_model_stands_beside_what_rules_take(tmp_path, capsys):
    capacity.main(["--events", "3000", "--rules", "1", "5", "--repeats", "1", "--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    assert re.search(r"An event costs \d+ ns, a rule \d+\.\d ms, a row \d+ ns\.", printed)
    for kind in KINDS:
        assert printed.count(f"| {kind} | 1 |") == printed.count(f"| {kind} | 5 |") == 1
    assert not list(tmp_path.iterdir())


def test_rules_of_a_capacity_are_planned_anew():
    once, again = (capacity.fresh({"a": "PATTERN SEQ(a)"}) for _ in range(2))
    assert once != again


def test_rivals_are_asked_for_the_types_of_the_rules():
    rules, types = rule_sets.texts(12, "skip_till_next_match"), rule_sets.triples(12)
    assert [text.partition("SEQ(")[2].partition(")")[0] for text in rules.values()] == [f"{a} a, {b} b, {c} c" for a, b, c in types]
    assert all(len(set(own)) == 3 for own in types)


def test_rules_of_a_rival_are_divided_into_jobs():
    assert rule_sets.in_jobs([("A", "B", "C"), ("D", "E", "F"), ("G", "H", "I")], 2) == "0:A B C;D E F|2:G H I"
    assert rule_sets.in_jobs([("A", "B", "C")], 10) == "0:A B C"


@pytest.mark.parametrize("strategy", ["skip_till_next_match", "skip_till_any_match"])
def test_matches_of_rules_are_compared_by_numbers(strategy):
    events, rules = rule_sets.made(4_000), rule_sets.texts(6, strategy)
    found = rule_sets.comparable(cep.match_all(events, rules))
    assert found.num_rows
    assert all(pa.types.is_int64(kind) for kind in found.schema.types)
    assert set(found["pattern"].to_pylist()) <= set(range(6))
    own = found.filter(pc.equal(found["pattern"], 3)).drop_columns(["pattern"])
    assert own.equals(cep.match(events, rules["3"]).select(["a", "b", "c"]))


def test_a_rival_without_a_package_needs_a_checkout(tmp_path, capsys):
    for given, told in (([], "OpenCEP is on no package index"), (["--opencep", str(tmp_path)], f"{tmp_path} has no CEP.py")):
        with pytest.raises(SystemExit):
            rule_sets.main(["--rival", "opencep", *given])
        assert f"{told}; give --opencep a folder with a checkout of https" in capsys.readouterr().err
    (tmp_path / "CEP.py").touch()
    assert rule_sets.chosen("opencep", str(tmp_path)).strategy == "skip_till_any_match"


def test_the_same_events_and_rules_each_time():
    assert made(1_000).equals(made(1_000))
    assert all(make(9) == make(9) and len(make(9)) == 9 for make in KINDS.values())
    types = [part for text in KINDS["disjoint funnels"](50).values() for part in text.split() if part.lstrip("SEQ(").startswith("T")]
    assert len(types) == len(set(types)) == 150
