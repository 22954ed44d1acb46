"""The comparison of rule sets prints a line for each kind and number, of events in memory and in Parquet."""

from __future__ import annotations

from benchmarks.rules import run
from benchmarks.rules.workload import KINDS, made


def test_every_kind_has_its_lines(tmp_path, capsys):
    run.main(["--events", "3000", "--rules", "1", "12", "--repeats", "1", "--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    for kind in KINDS:
        assert printed.count(f"| {kind} | 1 |") == printed.count(f"| {kind} | 12 |") == 2
    assert not list(tmp_path.iterdir())


def test_the_same_events_and_rules_each_time():
    assert made(1_000).equals(made(1_000))
    assert all(make(9) == make(9) and len(make(9)) == 9 for make in KINDS.values())
    types = [part for text in KINDS["disjoint funnels"](50).values() for part in text.split() if part.lstrip("SEQ(").startswith("T")]
    assert len(types) == len(set(types)) == 150
