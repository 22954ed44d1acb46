"""The figures that pages show, written between marks in them from the records.

``python -m benchmarks.record.headline`` writes them, and so does ``make pages``. A page shows a block of figures between
``<!-- figures: NAME -->`` and ``<!-- end of figures -->``; each block stands in every page with the same figures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.record import followed, layouts, pages, push_kinds, pushes
from benchmarks.record.folders import RESULTS, ROOT

PAGES = (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("performance", "event-files", "streams", "cluster", "rule-sets")))
# The records that are shown; a new measurement is named here.
RIVALS = RESULTS / "rivals-amd-epyc-2026-11-23.json"
RIVALS_KINDS = RESULTS / "rivals-kinds-amd-epyc-2026-11-24.json"
SUITE = RESULTS / "amd-epyc-2-cores-2026-11-23-55c4acbcf107-full.json"
DRIVERS = RESULTS / "drivers-amd-epyc-2026-11-22.json"
KINDS = RESULTS / "kinds-amd-epyc-2026-11-28.json"
ROW_PATTERNS = RESULTS / "row-patterns-amd-epyc-2026-11-26.json"
RIVALS_ROW_PATTERNS = RESULTS / "rivals-row-patterns-amd-epyc-2026-11-26.json"
SPARK_FILES = RESULTS / "spark-files-amd-epyc-2026-11-27.json"
LARGER_SPARK_FILES = RESULTS / "spark-files-40000000-amd-epyc-2026-11-27.json"
LAYOUTS = RESULTS / "layouts-amd-epyc-2026-11-25.json"
PUSHES = RESULTS / "pushes-amd-epyc-2026-11-28.json"
PUSH_KINDS = RESULTS / "push-kinds-amd-epyc-2026-11-28.json"
STREAMS = RESULTS / "rivals-streams-amd-epyc-2026-11-28.json"
MICRO_BATCHES = RESULTS / "micro-batches-amd-epyc-2026-11-28.json"

AIM = 4  # so many times DuckDB's rate is aimed at for kinds of questions

_BLOCK = re.compile(r"(<!-- figures: ([\w ]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)

# What the questions of the rivals ask, in their order in the table.
_ASKED = {
    "contiguous": "`A B+ C` in a row",
    "set": "a set, then an event",
    "selective": "`SEQ` of three, all matches",
}
_WORKLOADS = {
    "medical": "`SEQ(AND(C, P+, D), B)` per patient, 80 % noise",
    "medical_dense": "`SEQ(AND(C, P+, D), B)` per patient, no noise",
    "medical_pair": "`SEQ(AND(C, P+, D), B)` per patient, 80 % noise, two conditions between bindings",
    "stocks": "`SEQ(A, B+, C)` per symbol",
    "selective": "selective `SEQ` of three, skip till any match, rising prices",
    "selective_plain": "selective `SEQ` of three, event types as plain text instead of a dictionary",
}
_DRIVERS = {
    "as printed": "TPStream's Listing 1: aggressive drivers among 1,000 cars",
    "percentiles": "Listing 1 with the thresholds of the paper's figure 5",
    "percentiles, any duration": "Listing 1 with these thresholds, without durations",
}
# The forms of a question that are shown, and the head of their column.
_KIND_FORMS = {
    "base": "row numbers, one thread",
    "two threads": "two threads",
    "one chunk": "one chunk",
    "keyword": "`partition_by=`",
    "count": "count",
    "RETURN": "RETURN",
    "whole events": "whole events",
}
_OURS = "gpu_match"
_FILES = "tasks read files"
_BESIDE_FILES = {
    "SQL": "Spark SQL",
    "Spark's scan and shuffle": "gpu_match by Spark's scan and shuffle",
    "shuffle, unbounded batches": "the same, batches without a limit of bytes",
    "scan and hand-over": "Spark's scan, handed over without a shuffle",
    "bare hand-over": "bare hand-over of all rows",
    "match(path)": "match(path), no Spark",
    "empty job": "a job of tasks that do nothing",
}
_SPARK_QUESTIONS = {"medical": "80 % noise", "medical_dense": "no noise"}
_SPARK_WAYS = {
    "Spark SQL, running frames": "window functions, running frames",
    "Spark SQL, sliding frames": "window functions, sliding frames",
    "applyInPandas, a loop": "a loop over each patient's events in `applyInPandas`",
    "repartition + mapInArrow(count)": "Spark's filter, shuffle and hand-over to Python alone",
}


def rivals() -> str:
    """Return other engines' processor time as multiples of the library's, the least ratio first."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for each in pages.read(RIVALS)["comparisons"]:
        found.setdefault(each["rival"], {})[each["question"]] = each
    rows = [[rival, *(_both_ratios(asked.get(name)) for name in _ASKED)] for rival, asked in sorted(found.items(), key=_least_ratio)]
    return f"{pages.table([['engine', *_ASKED.values()], *rows], figures=len(_ASKED))}\n\n{_source(RIVALS)}"


def rivals_kinds() -> str:
    """Return how many times DuckDB's time is the library's, for each kind of question, the least ratio first."""
    asked = {each["kind"]: each["asked"] for each in pages.read(KINDS)["kinds"]}
    found = sorted(pages.read(RIVALS_KINDS)["comparisons"], key=_cpu_ratio)
    rows = [[asked[each["question"]], f"{each['matches']:,}", _both_ratios(each)] for each in found]
    by_cpu, by_clock = [_cpu_ratio(each) for each in found], [_clock_ratio(each) for each in found]
    cpu, clock = (sum(ratio >= AIM for ratio in ratios) for ratios in (by_cpu, by_clock))
    summaries = [
        f"DuckDB takes at least {AIM} times as long on {cpu} of {len(found)} kinds by processor time, and on {clock} by the clock.",
        f"The medians are {median(by_cpu):.1f} and {median(by_clock):.1f}, the least {min(by_cpu):.1f} and {min(by_clock):.1f}.",
    ]
    table = pages.table([["question", "matches", "DuckDB"], *rows], figures=2)
    return "\n".join([*summaries, "", table, "", _source(RIVALS_KINDS)])


def floor() -> str:
    """Return the share of a C++ loop's speed that the library reaches: the median of all kinds of questions, and the worst."""
    record = pages.read(KINDS)
    one, two = ([each["ratios"][form] for each in record["kinds"]] for form in ("base", "two threads"))
    return "\n".join(
        [
            "Beside a C++ loop that is written for the one query, knows its data and runs on one thread, the library has",
            f"{median(one):.2f} times its speed on one thread as the median of {len(one)} kinds of questions, and {min(one):.2f} at worst;",
            f"on two threads {median(two):.2f} and {min(two):.2f}. The questions are asked as users ask them: over the chunks of a Parquet",
            "file, with keys in the text.",
        ]
    )


def kinds() -> str:
    """Return kinds of questions beside C++ loops, the worst first: ratios of speeds in some of the forms in which they are asked."""
    record = pages.read(KINDS)
    worst_first = sorted(record["kinds"], key=lambda each: each["ratios"]["base"])
    rows = [[each["asked"], *(_ratio(each["ratios"].get(form)) for form in _KIND_FORMS)] for each in worst_first]
    summaries = [
        [words, *(f"{summary(each['ratios'][form] for each in worst_first if form in each['ratios']):.2f}" for form in _KIND_FORMS)]
        for words, summary in (("**median**", median), ("**worst**", min))
    ]
    head = ["question", *_KIND_FORMS.values()]
    return f"{pages.table([head, *rows, *summaries], figures=len(_KIND_FORMS))}\n\n{_source(KINDS)}"


def loops() -> str:
    """Return the library beside C++ loops, in million events per second: a row for each question, the worst on one thread first."""
    rows = [
        [each.question, *(_pair(each.speeds(way), ".0f") for way in ("2 threads", "1 thread", "C++")), _pair(each.shares(1), ".2f")]
        for each in sorted(_beside_loops(), key=lambda each: min(each.shares(1)))
    ]
    head = ["question, count / rows", "gpu_cep, 2 threads", "gpu_cep, 1 thread", "C++, 1 thread", "1 thread over C++"]
    return f"{pages.table([head, *rows], figures=4)}\n\n{_source(SUITE)} The drivers: {_source(DRIVERS)}"


def spark() -> str:
    """Return ways of Spark for one question: their seconds and `gpu_match`'s over the same events, the least ratio first."""
    taken = {(each["workload"], each["contestant"], each["events"]): each["seconds"] for each in pages.read(SUITE)["spark"]}
    compared = [
        (theirs / taken[workload, _OURS, events], workload, way, events)
        for (workload, way, events), theirs in taken.items()
        if way in _SPARK_WAYS
    ]
    rows = []
    for ratio, name, way, events in sorted(compared):
        figures = (taken[name, way, events], taken[name, _OURS, events], ratio)
        rows.append([_SPARK_WAYS[way], _SPARK_QUESTIONS[name], f"{events:,}", *(f"{figure:.1f}" for figure in figures)])
    return f"{pages.table([['way', 'question', 'events', 'its seconds', 'gpu_match', 'ratio'], *rows], figures=4)}\n\n{_source(SUITE)}"


def drivers() -> str:
    """Return ways to find TPStream's drivers, rows, in million events per second."""
    record = pages.read(DRIVERS)
    speeds = {(each["query"], each["way"]): record["events"] / each["seconds"] / 1e6 for each in record["timings"]}
    ways = {
        "gpu_cep, matches, from Parquet": "gpu_cep from Parquet",
        "C++, matches, from Parquet that Arrow reads in threads": "the loop, for which Arrow reads the Parquet file in threads",
        "DuckDB, matches, 2 threads": "DuckDB with SQL written by hand, from its memory",
        "gpu_cep on Spark, matches, from Parquet, local[2]": "`gpu_match`, `local[2]` from Parquet",
    }
    rows = [[words, *(_speed(speeds.get((query, way))) for query in _DRIVERS)] for way, words in ways.items()]
    return f"{pages.table([['way', *_DRIVERS], *rows], figures=len(_DRIVERS))}\n\n{_source(DRIVERS)}"


def row_patterns() -> str:
    """Return SQL's row patterns: the worst of few and many partitions, the worst multiple of copying the columns first."""
    record = pages.read(ROW_PATTERNS)
    found: dict[str, list[dict[str, Any]]] = {}
    for each in record["questions"]:
        found.setdefault(each["question"], []).append(each)
    rows = [_row_pattern(name, asked) for name, asked in sorted(found.items(), key=lambda item: -max(map(_copies, item[1])))]
    head = ["question", "M rows/s", "M rows per CPU s", "× copying", "C++", "DuckDB"]
    return f"{pages.table([head, *rows], figures=len(head) - 1)}\n\n{_source(ROW_PATTERNS)} {record['threads']} threads."


def _row_pattern(name: str, asked: Sequence[dict[str, Any]]) -> list[str]:
    """Return the worst figures of a question, and its least multiples of others' processor time."""
    rates = (min(each["rows"] / each[seconds] for each in asked) / 1e6 for seconds in ("seconds", "cpu_seconds"))
    others = ([each[other] / each["cpu_seconds"] for each in asked if each[other] is not None] for other in ("loop", "duckdb"))
    return [
        name,
        *(f"{rate:.1f}" for rate in rates),
        f"{max(map(_copies, asked)):.1f}",
        *(f"{min(ratios):.2f}" if ratios else "—" for ratios in others),
    ]


def _copies(each: dict[str, Any]) -> float:
    return float(each["cpu_seconds"] / each["copying"])


def rivals_row_patterns() -> str:
    """Return how many times Flink SQL's time is the library's for row patterns, the least ratio first."""
    found = sorted(pages.read(RIVALS_ROW_PATTERNS)["comparisons"], key=_cpu_ratio)
    rows = [[each["question"], f"{each['events']:,}", f"{each['matches']:,}", _both_ratios(each)] for each in found]
    return f"{pages.table([['question', 'rows', 'matches', 'Flink SQL'], *rows], figures=3)}\n\n{_source(RIVALS_ROW_PATTERNS)}"


def spark_files(path: Path) -> str:
    """Return what other ways over Parquet under Spark take beside tasks that read the files, what SQL takes least first."""
    record = pages.read(path)
    asked = {each["kind"]: each["asked"] for each in pages.read(KINDS)["kinds"]}
    known = [(name, ways) for name, ways in record["questions"].items() if _FILES in ways]
    known.sort(key=lambda item: item[1].get("SQL", {"clock": inf})["clock"] / item[1][_FILES]["clock"])
    shown = {way: title for way, title in _BESIDE_FILES.items() if any(way in ways for _, ways in known)}
    rows = [[asked[name], f"{ways[_FILES]['clock']:.2f}", *(_beside_files(ways, way) for way in shown)] for name, ways in known]
    head = ["question", "seconds of these tasks", *shown.values()]
    return f"{pages.table([head, *rows], figures=len(head) - 1)}\n\n{record['events']:,} events, {_source(path)}"


def _beside_files(ways: dict[str, dict[str, float]], way: str) -> str:
    """Return a ratio by the clock, and by processor time."""
    if way not in ways:
        return "—"
    return " / ".join(f"{ways[way][measure] / ways[_FILES][measure]:.1f}" for measure in ("clock", "cores"))


def file_layouts() -> str:
    """Return layouts of event files, in multiples of the first one."""
    record = pages.read(LAYOUTS)
    shown = layouts.table([layouts.Layout(**each) for each in record["layouts"]])
    return f"{shown}\n\n{record['events']:,} events, {_source(LAYOUTS)}"


def streamed() -> str:
    """Return what pushes into a stream take, in milliseconds of processor time, by question and events in the window."""
    record = pages.read(PUSHES)
    shown = pushes.medians([pushes.Pushed(**each) for each in record["pushes"]])
    return f"{shown}\n\n{_source(PUSHES)} {record['threads']} thread."


def pushed_kinds(path: Path) -> str:
    """Return what pushes of kinds of questions take beside `match` over the same events."""
    record = pages.read(path)
    shown = push_kinds.table([push_kinds.PushedKind(**each) for each in record["pushes"]])
    return f"{shown}\n\n{_source(path)} {record['threads']} thread."


def streams_followed() -> str:
    """Return what ways to follow a stream take, beside gpu_match over a streaming DataFrame."""
    shown = followed.table([followed.Followed(**each) for each in pages.read(STREAMS)["ways"]])
    return f"{shown}\n\n{_source(STREAMS)}"


def micro_batches() -> str:
    """Return what micro-batches of few and of many rows take: milliseconds, and in multiples of the same rows shuffled and kept."""
    taken = {(each["way"], each["rows"]): each["whole"] for each in pages.read(MICRO_BATCHES)["ways"]}
    ways, sizes = (list(dict.fromkeys(asked)) for asked in zip(*taken, strict=True))
    rows = [[way, *(f"{taken[way, size]:,.0f} / {taken[way, size] / taken[ways[0], size]:.1f}" for size in sizes)] for way in ways]
    head = ["way", *(f"{size:,} rows" for size in sizes)]
    return f"{pages.table([head, *rows], figures=len(sizes))}\n\n{_source(MICRO_BATCHES)}"


BLOCKS: dict[str, Callable[[], str]] = {
    "rivals": rivals, "rivals kinds": rivals_kinds, "floor": floor, "kinds": kinds, "loops": loops, "spark": spark, "drivers": drivers,
    "row patterns": row_patterns, "rivals row patterns": rivals_row_patterns, "spark files": partial(spark_files, SPARK_FILES),
    "larger spark files": partial(spark_files, LARGER_SPARK_FILES),
    "layouts": file_layouts, "pushes": streamed, "streams": streams_followed,
    "push kinds": partial(pushed_kinds, PUSH_KINDS), "micro batches": micro_batches,
}  # fmt: skip


def filled(page: str) -> str:
    """Return the page with each of its blocks made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{BLOCKS[block[2]]()}\n\n{block[3]}", page)


@dataclass(frozen=True)
class BesideLoop:
    """A question over `events` events: the seconds of each way, for a count and for rows."""

    question: str
    events: int
    seconds: dict[str, tuple[float, float]]

    def speeds(self, way: str) -> list[float]:
        """Return million events per second."""
        return [self.events / each / 1e6 for each in self.seconds[way]]

    def shares(self, threads: int) -> list[float]:
        """Return the library's speed as multiples of the loop's."""
        ours = self.seconds["1 thread" if threads == 1 else "2 threads"]
        return [loop / each for loop, each in zip(self.seconds["C++"], ours, strict=True)]


def _beside_loops() -> list[BesideLoop]:
    return [*_workloads(), *_situations()]


def _workloads() -> Iterator[BesideLoop]:
    timings = [each for each in pages.read(SUITE)["timings"] if each["window_factor"] == 1]
    taken = {(each["workload"], each["output"], each["contestant"], each["threads"]): each["seconds"] for each in timings}
    ways = {"2 threads": ("gpu_cep", 2), "1 thread": ("gpu_cep", 1), "C++": ("c++", 1)}
    for name, question in _WORKLOADS.items():
        seconds = {way: (taken[name, "count", *who], taken[name, "rows", *who]) for way, who in ways.items()}
        yield BesideLoop(question, timings[0]["events"], seconds)


def _situations() -> Iterator[BesideLoop]:
    record = pages.read(DRIVERS)
    taken = {(each["query"], each["way"]): each["seconds"] for each in record["timings"]}
    ways = {"2 threads": "gpu_cep, {}, 2 threads", "1 thread": "gpu_cep, {}, 1 threads", "C++": "C++, {}, 1 thread"}
    for query, question in _DRIVERS.items():
        seconds = {way: (taken[query, words.format("count")], taken[query, words.format("matches")]) for way, words in ways.items()}
        yield BesideLoop(question, record["events"], seconds)


def _pair(numbers: Sequence[float], form: str) -> str:
    return " / ".join(f"{number:{form}}" for number in numbers)


def _ratio(ratio: float | None) -> str:
    return "—" if ratio is None else f"{ratio:.2f}"


def _least_ratio(rival: tuple[str, dict[str, dict[str, Any]]]) -> float:
    return min(_cpu_ratio(each) for each in rival[1].values())


def _cpu_ratio(comparison: dict[str, Any]) -> float:
    return float(comparison["cpu_seconds"] / comparison["our_cpu_seconds"])


def _clock_ratio(comparison: dict[str, Any]) -> float:
    return float(comparison["seconds"] / comparison["our_seconds"])


def _both_ratios(comparison: dict[str, Any] | None) -> str:
    """Return both ratios: by processor time, and by the clock."""
    if comparison is None:
        return "—"
    ratios = [_cpu_ratio(comparison), _clock_ratio(comparison)]
    return " / ".join(f"{ratio:,.1f}" if ratio < 10 else f"{ratio:,.0f}" for ratio in ratios)


def _speed(speed: float | None) -> str:
    return "—" if speed is None else f"{speed:.1f}"


def _source(path: Path) -> str:
    where = pages.read(path)["environment"]
    cores = where.get("processors", where.get("cores"))
    return f"{where['machine']}, {cores} cores, {where['day']}: `benchmarks/results/{path.stem}.md`."


def main(paths: Sequence[Path] = PAGES) -> None:
    for path in paths:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
