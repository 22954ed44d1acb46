"""The constants of the planner's cost model, fitted to measurements.

``python -m benchmarks.planner.costs [--only PART …] [--every N]`` runs the cases of ``choices.py`` by each algorithm,
fits what each kind of work costs in nanoseconds, so that relative errors are least, and prints it: ``gpu_cep/plan/costs.py``
holds such constants, rounded.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

import gpu_cep
from benchmarks.planner.choices import BOUNDS, NAMED, PARTS, Case
from gpu_cep.errors import CepError

Floats = npt.NDArray[np.float64]

_REPEATS = 3


def work_of(algorithm: str, profile: gpu_cep.Profile) -> dict[str, float]:
    """Return how much of each kind of work a run did."""
    answers, counts = profile.answers, profile.counts
    steps, matches, bound = (float(sum(getattr(answer, name) for answer in answers)) for name in ("steps", "matches", "bound"))
    work = {"batches": float(len(answers)), "events": float(counts["filtered"]), "matches": matches, "bound": bound}
    if algorithm == "nfab":
        # a step offers an event to a run, or reads one of a match back
        return work | {"offers": max(steps - bound, 0.0)}
    if algorithm == "lazy_chain":
        return work | {"pivots": float(counts["pivots"]), "steps": steps}
    if algorithm == "join_tree":
        return work | {"steps": steps}
    return work | {"candidates": float(counts.get("candidates", counts.get("windows", 0))), "steps": steps}


def measured(case: Case) -> Iterator[tuple[str, dict[str, float], float]]:
    """(algorithm, work, nanoseconds) of each query and algorithm, the least of some runs."""
    events = case.events()
    for query in case.queries:
        for algorithm in NAMED:
            runs = []
            for _ in range(_REPEATS):
                profile = gpu_cep.Profile()
                try:
                    options = {**case.options, "algorithm": algorithm, "threads": 1, **BOUNDS}
                    gpu_cep.match(events, query, profile=profile, **options)
                except CepError:
                    break
                runs.append((1e9 * sum(answer.seconds for answer in profile.answers), profile))
            if runs and runs[0][1].answers:
                nanoseconds, profile = min(runs, key=lambda run: run[0])
                yield algorithm, work_of(algorithm, profile), nanoseconds


def fitted(work: Floats, nanoseconds: Floats) -> Floats:
    """Return costs of each kind of work, none negative: those of least relative error, dropping the most negative one time after time."""
    relative, kept = work / nanoseconds[:, np.newaxis], list(range(work.shape[1]))
    costs = np.zeros(work.shape[1])
    while kept:
        found = np.linalg.lstsq(relative[:, kept], np.ones(len(work)), rcond=None)[0]
        if found.min() >= 0:
            costs[kept] = found
            break
        kept.pop(int(found.argmin()))
    return costs


def report(rows: Sequence[tuple[Mapping[str, float], float]]) -> str:
    """Return the costs that fit some runs of an algorithm, and how well."""
    kinds = list(rows[0][0])
    work = np.array([[own[kind] for kind in kinds] for own, _ in rows])
    nanoseconds = np.array([spent for _, spent in rows])
    costs = fitted(work, nanoseconds)
    errors = np.quantile(work @ costs / nanoseconds, [0.05, 0.25, 0.5, 0.75, 0.95])
    found = ", ".join(f"{kind} {cost:,.1f}" for kind, cost in zip(kinds, costs, strict=True))
    return f"{len(rows)} runs, ns: {found}\n    fitted / measured, 5 to 95 %: {' '.join(f'{error:.2f}' for error in errors)}"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Fit the constants of the planner's cost model.")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="measure each Nth case only")
    options = parser.parse_args(argv)
    cases = [case for part in options.only for case in PARTS[part]()]
    rows = defaultdict(list)
    for case in cases[:: options.every]:
        print(case.part, case.name, file=sys.stderr)
        for algorithm, work, nanoseconds in measured(case):
            rows[algorithm].append((work, nanoseconds))
    for algorithm, own in rows.items():
        print(f"{algorithm}: {report(own)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
