"""The page and the record of a run: a table of rates and ratios for each group of questions."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks.kinds.questions import KINDS
from benchmarks.record import pages
from benchmarks.record.machine import LIBRARY, environment, name_on, versions
from benchmarks.rivals.environments import REQUIREMENTS
from benchmarks.rivals.kinds import IN_SQL

MANY = 6  # questions of a rival, whose ratios are summed up


@dataclass(frozen=True, slots=True)
class Absent:
    """Why a rival does not answer a question."""

    rival: str
    question: str
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Median wall and processor seconds of a rival and of the library on the same events, with the same matches.

    `query` is the library's; `load` is the load average of the minute before.
    """

    rival: str
    question: str
    events: int
    matches: int
    threads: int
    seconds: float
    cpu_seconds: float
    our_seconds: float
    our_cpu_seconds: float
    load: float
    query: str

    @property
    def ratio(self) -> float:
        return self.seconds / self.our_seconds

    @property
    def cpu_ratio(self) -> float:
        return self.cpu_seconds / self.our_cpu_seconds


@dataclass(frozen=True, slots=True)
class Group:
    """What a page says of a group of questions.

    The record's name begins with `record`. `aims` are so many times the rate of the rivals whose name begins so. `unasked` says who is
    not asked what, and why.
    """

    record: str
    title: str
    aims: dict[str, int]
    notes: str
    changes: str
    unasked: tuple[Absent, ...]


def surroundings() -> dict[str, str]:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()[:1]
    return environment(LIBRARY) | {
        "python": platform.python_version(),
        "java": java[0] if java else "none",
        "rivals": "; ".join(" ".join(requirements) for requirements in REQUIREMENTS.values()),
    }


def write(folder: Path, group: Group, comparisons: Sequence[Comparison], absent: Sequence[Absent]) -> tuple[str, Path, Path]:
    """Write the page and the record into `folder`; return the page and where both are."""
    where = surroundings()
    page = markdown(group, comparisons, absent, where)
    record = {"environment": where, "comparisons": [asdict(each) for each in comparisons], "absent": [asdict(each) for each in absent]}
    return page, *pages.write(folder, name_on(where, group.record), page, record)


def markdown(group: Group, comparisons: Sequence[Comparison], absent: Sequence[Absent], where: dict[str, str]) -> str:
    sections = [
        f"# {group.title} on {where['machine']}, {where['cores']} cores, {where['day']}",
        f"Commit {where['commit']}; Python {where['python']}, {versions(where, LIBRARY)}; rivals: {where['rivals']}; {where['java']}. "
        "Written by `python -m benchmarks.rivals.run`.",
        *_summaries(group, comparisons),
        pages.table(_rows(group, comparisons), figures=11),
        group.notes,
        "## What is asked\n\n" + "\n".join(f"- **{name}**: `{query}`" for name, query in _asked(comparisons).items()),
        group.changes,
    ]
    if absent:
        sections.append("## Not measured\n\n" + "\n".join(f"- {each.rival}, {each.question}: {each.reason}." for each in absent))
    return "\n\n".join(sections) + "\n"


def _asked(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """Return the query of each question, that over the most events."""
    return {each.question: each.query for each in sorted(comparisons, key=lambda each: each.events)}


def _summaries(group: Group, comparisons: Sequence[Comparison]) -> list[str]:
    """Say of each rival that is asked many questions how many ratios reach the aim, with the median and the least."""
    lines = []
    for rival, aim in group.aims.items():
        found = [each for each in comparisons if each.rival.startswith(rival)]
        if len(found) < MANY:
            continue
        ratios = {"Processor time": [each.cpu_ratio for each in found], "Wall time": [each.ratio for each in found]}
        lines += [
            f"**{clock}: {sum(ratio >= aim for ratio in own)} of {len(own)} questions at {aim} × or more; "
            f"median {median(own):.1f} ×, least {min(own):.1f} ×.**"
            for clock, own in ratios.items()
        ]
    return lines


def _rows(group: Group, comparisons: Sequence[Comparison]) -> list[list[str]]:
    head = ["question", "rival", "events", "matches", "threads", "rival", "gpu_cep", "ratio"]
    return [
        [*head, "rival, CPU", "gpu_cep, CPU", "ratio of CPU", "aim", "load"],
        *(
            [
                each.question,
                each.rival,
                f"{each.events:,}",
                f"{each.matches:,}",
                str(each.threads),
                *(_rate(each.events / seconds) for seconds in (each.seconds, each.our_seconds)),
                f"{each.ratio:,.1f} ×",
                *(_rate(each.events / seconds) for seconds in (each.cpu_seconds, each.our_cpu_seconds)),
                f"{each.cpu_ratio:,.1f} ×",
                _aim(group, each),
                f"{each.load:.1f}",
            ]
            for each in comparisons
        ),
    ]


def _aim(group: Group, comparison: Comparison) -> str:
    """Return what ratio was aimed at, and whether that of wall time reaches it."""
    for rival, aim in group.aims.items():
        if comparison.rival.startswith(rival):
            return f"{aim} ×, {'met' if comparison.ratio >= aim else 'missed'}"
    return ""


def _rate(events_per_second: float) -> str:
    return f"{events_per_second / 1e6:,.3g} M/s"


_NOTES = """\
Rates are events per second of the median warm run, of wall time and of processor time of all threads; the load average is
that of the minute before. Where it is above the threads in use, the machine had other work: then the ratio of processor
time is the better one. Every rival has the events in memory in the form that it likes best (types as codes of 8 bits, in DuckDB's ENUM
as in the library's dictionaries), and found the library's matches, compared row by row, before it was timed. All produce the
rows of all matches: the library, DuckDB and pandas as a table, Spark and Flink into a sink that discards them. The library
returns all row numbers of every binding; the rivals the time of its first event and its length. The rivals plan in every
run, and Flink's local cluster starts a job; the library remembers the plan of a query's text, and chooses among algorithms
in every run."""

_CHANGES = """\
## What was changed so that the matches are the same

- Times are unique in a stream, so neither strict order nor SQL's order of ties matters.
- DuckDB and Spark have no row patterns. Gaps and islands answer `contiguous`, running window frames `set`, and joins over slices of time
  `selective`; plain inequality joins are far slower. The same SQL text goes to both, and the
  last one to Flink.
- `MATCH_RECOGNIZE` has `AFTER MATCH SKIP TO NEXT ROW`, so that every first event gets its match. Each event fits one variable at most,
  so greed does not matter.
- The window is a condition on the last event (`<=`). Flink also gets `WITHIN` one tick longer, so that it forgets old partial matches.
- Flink has no AND in patterns, and no alternatives or PERMUTE: for `set`, the relevant events are taken one by one up to the first B
  that has a C, a P and a D before it. pandas-match-recognize gets the same pattern; as it reads no subqueries, pandas picks the relevant
  events, in the time that is measured.
- Flink CEP's `followedByAny` with no skipping is skip_till_any_match. It sees the three event types only. There is no stream key, so
  one thread does it.
- Flink's events are objects on the heap of the JVM of its local cluster, its stream keys are numbers; no Python is in their way.
  Row patterns run in its streaming mode, which is as fast as its batch mode here."""

_KINDS_NOTES = """\
Rates are events per second of the median warm run, of wall time and of processor time of all threads; the load average is
that of the minute before. Where it is above the threads in use, the machine had other work: then the ratio of processor
time is the better one. DuckDB has the events in a table of its own in memory, keys as integers and types as an ENUM. The library gets
them as users have them: in the chunks of a Parquet file, keys and types in dictionaries, the key in the query's text. All matches were
compared, by their first and last events and by what else the SQL has at hand, before anything was timed. Both produce a table
of all matches: the library the row numbers of all events of every match, DuckDB the first and the last event only. DuckDB plans in
every run; the library remembers the plan of a query's text, and chooses among algorithms in every run."""

_KINDS_CHANGES = """\
## How SQL asks it

The texts are in `benchmarks/rivals/sql`, each the fastest of those that were tried.

- Only the event types that matter are read, before anything is sorted.
- Neighbours: lag and lead, then islands between the rows at which something changes.
- The next event of a type: first_value with IGNORE NULLS over a frame of rows, several times faster than min over the same frame, or an
  ASOF join. Where events of a key may have the same time, events of an equal time are sorted so that the frame has only later ones.
- Conditions between distant events: hash joins on key and slice of time, the first match by min; joins on inequalities alone are
  far slower.
- `rise_fall` has no overlaps: a rise of one step that begins where the match before ends is left out. So the matches of a row of such
  rises alternate from the last rise of which it is known, and their distance to it decides."""

_ROWS_NOTES = """\
Rates are events per second of the median warm run, of wall time and of processor time of all threads; the load average is
that of the minute before. Flink has the events as objects on the heap of the JVM of its local cluster, in the order of time, and
discards the rows of the matches, which were compared with the library's before. The library has them in columns, must put them in
order by partition and time, and returns a table. Flink plans in every run, and its cluster starts a job; the library
remembers the plan of a query's text."""

_ROWS_CHANGES = """\
## What was changed so that the matches are the same

- The clause is the same for both, word for word, but for the name of the time and for the length of the window: the end of Flink's
  window is outside of it, so it is a millisecond longer there.
- Flink reads rows before the current one by `LAST` alone, and has no PREV. It ends no pattern with a greedy quantifier, and
  does not take a row back that such a quantifier has. So each pattern ends with one row, and no row leaves a choice.
- Where a match that begins later may end before, Flink takes that one first. There, each first row has a match
  (`SKIP TO NEXT ROW`), and a window bounds what Flink tries.
- Times are unique, and Flink has numbers for partitions and types as text. It runs in its streaming mode, which is as fast as its
  batch mode here."""

_NOT_AT_HAND = "DuckDB's release on PyPI has none, and Trino is a server that no index of packages has"
_RECURSION = "whether a match begins depends on where the one before it ended, which only a recursive query finds"
_ONE_PER_ROW = "a row pattern gives one match per first row, skip_till_any_match all"
THREE, KINDS_GROUP, ROWS = "three", "kinds", "rows"
GROUPS = {
    THREE: Group(
        "rivals",
        "Rivals",
        {"DuckDB": 3, "Flink": 50},
        _NOTES,
        _CHANGES,
        tuple(Absent(rival, "selective", _ONE_PER_ROW) for rival in ("pandas-match-recognize", "Flink SQL, MATCH_RECOGNIZE")),
    ),
    KINDS_GROUP: Group(
        "rivals-kinds",
        "DuckDB on kinds of questions",
        {"DuckDB": 4},
        _KINDS_NOTES,
        _KINDS_CHANGES,
        tuple(Absent("DuckDB", name, _RECURSION) for name in KINDS if name not in IN_SQL),
    ),
    ROWS: Group(
        "rivals-row-patterns",
        "Row patterns beside Flink's SQL",
        {"Flink": 100},
        _ROWS_NOTES,
        _ROWS_CHANGES,
        (
            Absent("Flink SQL", "permutations, alternatives, groups, anchors and exclusion", "its patterns have none of these"),
            Absent("Flink SQL", "ALL ROWS PER MATCH", "it has ONE ROW PER MATCH alone"),
            Absent("DuckDB, Trino", "MATCH_RECOGNIZE", _NOT_AT_HAND),
        ),
    ),
}
