"""The page and the record of a run over kinds of questions: one table, the worst ratio first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.baselines.environment import Environment
from benchmarks.kinds.forms import BASE, FORMS, WHOLE_EVENTS
from benchmarks.kinds.measure import LOOP, TAKEN, KindTimes
from benchmarks.record import pages
from benchmarks.record.machine import LIBRARY, slug

PACKAGES = ("gpu-cep", *LIBRARY)
CPU, SECOND_CORE = "base, CPU time", "second core"
_SHOWN_STAGES = 4


def write(where: Environment, found: Sequence[KindTimes], repeats: int, folder: Path) -> tuple[Path, Path]:
    """Write the record as ``.json`` and the page as ``.md`` into `folder`."""
    record = {"environment": asdict(where), "repeats": repeats, "kinds": [_recorded(each) for each in found]}
    return pages.write(folder, f"kinds-{slug(where.machine)}-{where.day}", markdown(where, found, repeats), record)


def _recorded(each: KindTimes) -> dict[str, Any]:
    return asdict(each) | {"ratios": ratios(each), "second_core": each.second_core}


def ratios(each: KindTimes) -> dict[str, float]:
    """Return the ratio of each form that suits the kind, on the clock; and that of the base form's times on the processors."""
    given = {BASE: each.ratio(BASE), CPU: each.ratio(BASE, "cpu"), **{form: each.ratio(form) for form in FORMS if form != BASE}}
    return {name: ratio for name, ratio in given.items() if ratio is not None}


def markdown(where: Environment, found: Sequence[KindTimes], repeats: int) -> str:
    worst_first = sorted(found, key=lambda each: ratios(each)[BASE])
    return "\n".join(
        [
            f"# Kinds of questions beside C++ loops, {where.machine}, {where.processors} cores, {where.day}",
            "",
            f"Commit {where.commit}; {', '.join(f'{name} {number}' for name, number in where.packages.items())}; {where.compiler}. "
            f"Load average {where.load} before the run. Best of {repeats} runs in turns. Written by `python -m benchmarks.kinds.run`.",
            "",
            "A ratio is the time of a C++ loop for the one query, on one thread, over the library's: from 1 on the library is as fast. The",
            "loop delivers the row numbers of all matches in every form. It reads one chunk, and knows that keys are numbered from 0.",
            "The last column is how much two of the loops at once do in the time of one. Where that is far below 2, the second core had",
            "other work, and two threads could not gain more.",
            "",
            *_summary(worst_first),
            "",
            pages.table(_rows(worst_first), figures=len(_columns()) + 4),
            "",
            "## Where the time goes",
            "",
            "Milliseconds of the base form on one thread. To copy is to copy the columns that the query reads, and the rows that come of",
            "it: the floor of all that reads and answers. What a call takes beside its stages is the choice of an algorithm, and to give",
            "back memory. Rows taken is Arrow's `take` of the same rows from all columns, each in one chunk: about what whole events must",
            "take beside the base form.",
            "",
            pages.table(_stages(worst_first), figures=6),
            "",
            "## Forms",
            "",
            *(f"- **{name}**: {form.words}." for name, form in FORMS.items()),
            "",
            "## Queries in the base form",
            "",
            *(f"- {each.kind}: `{each.query}`{_keywords(each)}" for each in worst_first),
            "",
        ]
    )


def _columns() -> list[str]:
    return [BASE, CPU, *(form for form in FORMS if form != BASE)]


def _summary(found: Sequence[KindTimes]) -> list[str]:
    """Return median and worst of the base form, and the worst of all forms."""
    ratio, form, kind = min((ratio, form, each.kind) for each in found for form, ratio in ratios(each).items() if form != CPU)
    base = [ratios(each)[BASE] for each in found]
    return [
        f"**{len(found)} kinds in the base form: median {median(base):.2f}, worst {min(base):.2f} ({found[0].kind}).** "
        f"Worst of all forms: {ratio:.2f} ({kind}, {form})."
    ]


def _rows(found: Sequence[KindTimes]) -> list[list[str]]:
    rows = [["kind", "question", "events", "matches", "C++, ns per event", *_columns(), SECOND_CORE]]
    for each in found:
        own = ratios(each)
        nanoseconds = 1e9 * each.seconds[LOOP].wall / each.events
        cells = [*(f"{own[name]:.2f}" if name in own else "" for name in _columns()), f"{each.second_core:.2f}"]
        rows.append([each.kind, each.asked, f"{each.events:,}", f"{each.matches:,}", f"{nanoseconds:.1f}", *cells])
    for name, summary in (("median", median), ("worst", min)):
        known = [[ratios(each)[column] for each in found if column in ratios(each)] for column in _columns()]
        known.append([each.second_core for each in found])
        rows.append([f"**{name}**", "", "", "", "", *(f"**{summary(column):.2f}**" if column else "" for column in known)])
    return rows


def _stages(found: Sequence[KindTimes]) -> list[list[str]]:
    rows = [["kind", "to copy", "C++", "all", WHOLE_EVENTS, TAKEN, "longest stages"]]
    for each in found:
        longest = sorted(each.stages.items(), key=lambda stage: -stage[1])[:_SHOWN_STAGES]
        named = ", ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in longest)
        clocks = (each.floor, *(each.seconds[name].wall for name in (LOOP, BASE, WHOLE_EVENTS, TAKEN)))
        rows.append([each.kind, *(f"{1e3 * seconds:.0f}" for seconds in clocks), named])
    return rows


def _keywords(each: KindTimes) -> str:
    return "".join(f", `{name}={value!r}`" for name, value in each.options.items())
