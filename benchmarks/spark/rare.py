"""Rare events under Spark: what shuffling only the events near them saves, and what the search for them costs where it does not pay.

That is measured of queries by themselves, and of rule sets whose patterns share a shuffle.

``python -m benchmarks.spark.rare [--events N] [--repeats N] [--folder FOLDER | --no-record]`` checks that all ways count the same matches,
prints the page and writes it with its record to ``results/``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

import gpu_cep
from benchmarks.record import pages
from benchmarks.record.arguments import measuring
from benchmarks.record.machine import ON_SPARK, environment, name_on, versions
from benchmarks.spark.floor import total
from benchmarks.spark.sessions import BATCH_ROWS, spark_session
from benchmarks.spark.times import SparkSeconds, least_seconds

EVENTS, REPEATS, KEYS, ROW_GROUP, RARE = 10_000_000, 3, 1_000, 1_000_000, 1e-5
OFF, AUTO, NAMED = "rare=None", "rare='auto'", "rare named"
# What each question asks, and the variable that is named as rare.
QUESTIONS = {
    "one in 100,000, per key": ("PATTERN SEQ(A a, B b, R r) WHERE a.x < b.x WITHIN 1000", "r"),
    "one in 100,000, neighbours of any type, per key": ("PATTERN SEQ(R r, e+) WHERE partition_contiguity { e.x > 0.5 } WITHIN 1000", "r"),
    "one in 5, per key": ("PATTERN SEQ(A a, C c) WHERE a.x < c.x WITHIN 1000", "c"),
    "one in 100, none far from these, per key": ("PATTERN SEQ(A a, B b, D d) WHERE a.x < b.x AND b.x < d.x WITHIN 1000000", "d"),
    "one in 100,000, of one in 100 that count, per key": ("PATTERN SEQ(D d, R r) WITHIN 1000", "r"),
}
# What each of the patterns of a rule set asks, which differ in a constant, and the variable that is named as rare.
PATTERNS = 20
RULE_SETS = {
    f"{PATTERNS} patterns, one in 100,000, per key": ("PATTERN SEQ(A a, B b, R r) WHERE a.x < b.x AND a.x < {most} WITHIN 1000", "r"),
    f"{PATTERNS} patterns, one in 5, per key": ("PATTERN SEQ(A a, C c) WHERE a.x < c.x AND a.x < {most} WITHIN 1000", "c"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """What each way takes for a question, how many matches there are, and what auto says of its choice."""

    question: str
    off: SparkSeconds
    auto: SparkSeconds
    named: SparkSeconds
    matches: int
    why: str

    @classmethod
    def of(cls, told: dict[str, Any]) -> Line:
        """Return the line that a record has as a mapping."""
        return cls(**{**told, **{way: SparkSeconds(**told[way]) for way in ("off", "auto", "named")}})


@dataclass(frozen=True, slots=True)
class RuleSetLine:
    """What a rule set takes, and how many matches there are.

    `off`: all events are shuffled. `named`: those near events of the named variable.
    """

    rules: str
    off: SparkSeconds
    named: SparkSeconds
    matches: int

    @classmethod
    def of(cls, told: dict[str, Any]) -> RuleSetLine:
        """Return the line that a record has as a mapping."""
        return cls(**{**told, **{way: SparkSeconds(**told[way]) for way in ("off", "named")}})


def events(number: int) -> pa.Table:
    """Return events in the order of time: two fifths each of types A and B, a fifth of C, one in 100 of D, and one in 100,000 of R."""
    random = np.random.default_rng(7)
    drawn = random.random(number)
    types = np.select([drawn < RARE, drawn < 0.01, drawn < 0.2, drawn < 0.6], ["R", "D", "C", "B"], "A")
    return pa.table(
        {"ts": np.arange(number), "key": random.integers(0, KEYS, number), "type": pa.array(types), "x": random.random(number)}
    )  # fmt: skip


def count(frame: DataFrame, query: str, rare: str | None, report: gpu_cep.RunReport | None = None) -> int:
    found = gpu_cep.gpu_match(frame, query, partition_by="key", output="count", scan="spark", slices=None, rare=rare, report=report)
    return total(found)


def count_all(frame: DataFrame, pattern: str, rare: str | None) -> int:
    rules = {f"{number}": pattern.format(most=number / PATTERNS) for number in range(1, PATTERNS + 1)}
    return total(gpu_cep.gpu_match_all(frame, rules, partition_by="key", output="count", rare=rare))


def measured(path: Path, repeats: int) -> tuple[list[Line], list[RuleSetLine]]:
    with spark_session(2, "4g", {BATCH_ROWS: "10000"}) as spark:
        frame = spark.read.parquet(str(path))
        return [_line(frame, question, repeats) for question in QUESTIONS], [_rule_set_line(frame, rules, repeats) for rules in RULE_SETS]


def _line(frame: DataFrame, question: str, repeats: int) -> Line:
    """Return one line; ways take turns, so that other work of the machine slows all of them alike."""
    query, rare = QUESTIONS[question]
    report = gpu_cep.RunReport()
    ways = {name: partial(count, frame, query, named) for name, named in ((OFF, None), (AUTO, "auto"), (NAMED, rare))}
    answers = {name: way() for name, way in ways.items()} | {"reported": count(frame, query, "auto", report)}
    matches = _agreed(question, answers)
    best = _best(ways, repeats)
    line = Line(question, best[OFF], best[AUTO], best[NAMED], matches, report.rare)
    print(line, file=sys.stderr)
    return line


def _rule_set_line(frame: DataFrame, rules: str, repeats: int) -> RuleSetLine:
    pattern, rare = RULE_SETS[rules]
    ways = {name: partial(count_all, frame, pattern, named) for name, named in ((OFF, None), (NAMED, rare))}
    matches = _agreed(rules, {name: way() for name, way in ways.items()})
    best = _best(ways, repeats)
    line = RuleSetLine(rules, best[OFF], best[NAMED], matches)
    print(line, file=sys.stderr)
    return line


def _agreed(question: str, answers: dict[str, int]) -> int:
    """Return the number of matches that all ways count."""
    if len(set(answers.values())) > 1:
        raise ValueError(f"{question}: {answers}")
    return answers[OFF]


def _best(ways: Mapping[str, Callable[[], int]], repeats: int) -> dict[str, SparkSeconds]:
    """Return the least that each way takes, of runs in turn."""
    best = dict.fromkeys(ways, SparkSeconds())
    for _ in range(repeats):
        for name, way in ways.items():
            best[name] = least_seconds(way, best[name])
    return best


def markdown(record: dict[str, Any]) -> str:
    where = record["environment"]
    table = [["rare events", OFF, AUTO, NAMED, "auto over None", "of cores", "named over None", "of cores", "matches", "auto says"]]
    for each in map(Line.of, record["lines"]):
        seconds = [f"{value.clock:.2f} s" for value in (each.off, each.auto, each.named)]
        ratios = [f"{ratio:.2f}" for way in (each.auto, each.named) for ratio in (way.clock / each.off.clock, way.cores / each.off.cores)]
        table.append([each.question, *seconds, *ratios, f"{each.matches:,}", each.why])
    sets = [["rule sets", OFF, NAMED, "named over None", "of cores", "matches"]]
    for rules in map(RuleSetLine.of, record["rule_sets"]):
        seconds = [f"{value.clock:.2f} s" for value in (rules.off, rules.named)]
        ratios = [f"{ratio:.2f}" for ratio in (rules.named.clock / rules.off.clock, rules.named.cores / rules.off.cores)]
        sets.append([rules.rules, *seconds, *ratios, f"{rules.matches:,}"])
    sections = [
        f"# Rare events under Spark, on {where['machine']}, {where['day']}",
        f"{versions(where, ON_SPARK)}. "
        f'{record["events"]:,} events in Parquet, {KEYS:,} keys; `local[2]`, `scan="spark"`; the best of {record["repeats"]} '
        "warm runs, turn by turn; matches are counted. Seconds are the clock's; `of cores` compares the CPU time of all processes, which "
        f"suffers less from what else the machine does. Load {where['load']}, commit {where['commit']}. Written by `python -m "
        "benchmarks.spark.rare`.",
        pages.table(table, figures=8),
        pages.table(sets, figures=5),
        *(f"{question}: `{query}`" for question, (query, _) in (QUESTIONS | RULE_SETS).items()),
    ]
    return "\n\n".join(sections) + "\n"


def main(argv: list[str]) -> int:
    options = measuring("Measure what it spares to shuffle only events near rare ones.", EVENTS, REPEATS).parse_args(argv)
    where = environment(ON_SPARK)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        pq.write_table(events(options.events), path, row_group_size=ROW_GROUP)
        lines, sets = measured(path, options.repeats)
    record = {
        "environment": where,
        "events": options.events,
        "repeats": options.repeats,
        "lines": [asdict(line) for line in lines],
        "rule_sets": [asdict(line) for line in sets],
    }
    pages.publish(markdown(record), options.folder, name_on(where, "rare"), record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
