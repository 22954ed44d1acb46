"""The experiments of the papers, in their shapes, on events drawn at random.

``python -m benchmarks.papers.run [--only FIGURE …] [--rounds N] [--patience SECONDS]`` measures each figure's ways in one process,
turn by turn, on one thread, checks that they find the same number of matches, prints the page and writes it with its record and plots
to ``results/``; those of a part under a name that says which.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec

from benchmarks.papers import lazy, sase, thesis, tpstream
from benchmarks.papers.figures import Figure
from benchmarks.papers.pages import Results, markdown, results_of
from benchmarks.papers.runs import Measurement, Refusal, measure
from benchmarks.record import pages
from benchmarks.record.folders import RESULTS
from benchmarks.record.machine import LIBRARY, environment, name_on, slug, versions

FIGURES = (*thesis.FIGURES, *sase.FIGURES, *lazy.FIGURES, *tpstream.FIGURES)


def heading(where: dict[str, str], seconds: float) -> str:
    return "\n\n".join(
        (
            f"# The papers' figures on {where['machine']}, {where['day']}",
            f"Commit {where['commit']}; {versions(where, LIBRARY)}; "
            f"one thread of {where['cores']} cores; load average {where['load']}, this benchmark "
            f"included; {seconds / 60:.0f} minutes. Written by `python -m benchmarks.papers.run`.",
            "Events are drawn at random (`workloads/paper_events.py`): neither the papers' data nor their machines and programs are at "
            "hand, so curves are to be compared, not figures. Sizes and parameters stand in `thesis.py`, `sase.py`, `lazy.py` and "
            "`tpstream.py`. All ways of a row find the same number of matches. Seconds are CPU seconds, the least of "
            "some warm calls that plan the query and return row numbers; what such a call takes at least, a millisecond or "
            "two, is part of each. A ratio divides the measure shown by that of the first way.",
        )
    )


def chosen(names: Sequence[str] | None) -> list[Figure]:
    """Return the figures that are asked for: by name, or by the beginning of one."""
    return [figure for figure in FIGURES if not names or figure.name.startswith(tuple(names))]


def run(figures: Sequence[Figure], rounds: int, patience: float) -> Iterator[Measurement | Refusal]:
    """Yield what the figures' experiments measure; each runs once."""
    for experiment in {figure.experiment.name: figure.experiment for figure in figures}.values():
        begin = time.perf_counter()
        yield from measure(experiment, rounds, patience)
        print(f"{experiment.name}: {time.perf_counter() - begin:.0f} s", file=sys.stderr)


def drawn(figures: Sequence[Figure], results: Results, name: str) -> dict[str, str]:
    """Return the plots' paths as the page names them; none without matplotlib."""
    if find_spec("matplotlib") is None:
        print("no plots: matplotlib is not installed (the extra 'plot')", file=sys.stderr)
        return {}
    from benchmarks.papers.plots import draw

    return {figure: f"{name}/{file}" for figure, file in draw(figures, results, RESULTS / name).items()}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure what the figures of the papers show.")
    parser.add_argument("--only", nargs="+", metavar="FIGURE", help=f"of {', '.join(figure.name for figure in FIGURES)}, or beginnings")
    parser.add_argument("--rounds", type=int, default=2, help="so many timed runs at least")
    parser.add_argument("--patience", type=float, default=0.2, help="seconds of timed runs at least, per point")
    options = parser.parse_args(argv)
    figures = chosen(options.only)
    if not figures:
        parser.error("no such figure")
    begin = time.perf_counter()
    results = results_of(run(figures, options.rounds, options.patience))
    where = environment(LIBRARY)
    name = "-".join([name_on(where, "papers"), *map(slug, options.only or ())])
    head = heading(where, time.perf_counter() - begin)
    page = markdown(figures, results, head, drawn(figures, results, name))
    record = {
        "environment": where,
        "measurements": [asdict(each) for each in results.measured.values()],
        "refusals": [asdict(each) for each in results.refused],
    }
    pages.publish(page, RESULTS, name, record)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
