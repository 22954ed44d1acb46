"""The benchmark of rare events under Spark: its page has a line for each query and each rule set."""

from __future__ import annotations

from dataclasses import asdict

import pytest

pytest.importorskip("pyspark")

from benchmarks.record.machine import ON_SPARK, environment
from benchmarks.spark.rare import QUESTIONS, RULE_SETS, Line, RuleSetLine, markdown
from benchmarks.spark.times import SparkSeconds


def test_the_page_says_what_each_way_takes() -> None:
    lines = [Line(name, SparkSeconds(4.0, 8.0), SparkSeconds(2.0, 2.0), SparkSeconds(1.0, 4.0), 1_234, "why") for name in QUESTIONS]
    sets = [RuleSetLine(name, SparkSeconds(4.0, 8.0), SparkSeconds(1.0, 4.0), 5_678) for name in RULE_SETS]
    page = markdown(
        {
            "environment": environment(ON_SPARK),
            "events": 10,
            "repeats": 2,
            "lines": [asdict(line) for line in lines],
            "rule_sets": [asdict(line) for line in sets],
        }
    )
    for name in QUESTIONS:
        assert f"| {name} | 4.00 s | 2.00 s | 1.00 s | 0.50 | 0.25 | 0.25 | 0.50 | 1,234 | why |" in page
    for name, (pattern, _) in RULE_SETS.items():
        assert f"| {name} | 4.00 s | 1.00 s | 0.25 | 0.50 | 5,678 |" in page
        assert f"{name}: `{pattern}`" in page
