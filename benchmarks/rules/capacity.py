"""Check the cost model of rule sets against what they take, and apply it to the events of a day.

``python -m benchmarks.rules.capacity [--events N] [--rules N …] [--repeats N] [--folder FOLDER]``
measures three costs over events in Parquet:

- of an event: to read the columns that rules read, and to look up their constants;
- of a rule: to plan it, and to give its result;
- of a row: to order and match an event that a rule may bind.

Then it prints what ``match_all`` takes of the processors beside what the model says. The costs are those of ten rules that share keys;
all other numbers and kinds of rules are predictions. Rows are counted by the engine (``Profile``), and no plan is remembered.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import gpu_cep as cep
from benchmarks.rules.run import least_cpu
from benchmarks.rules.workload import KINDS, made, same_keys

EVENTS, RULES, REPEATS, GROUP = 2_000_000, (1, 10, 100, 1_000), 2, 1 << 20
# So many rules tell what a row costs, and so many more what a rule does; events of a day for which costs are given.
CALIBRATED, PLANNED, A_DAY = 10, 100, 10_000_000_000


class Costs(NamedTuple):
    """Seconds of a processor: for each event, each rule, and each row that is ordered for a rule."""

    event: float
    rule: float
    row: float

    def of(self, events: int, rules: int, rows: int) -> float:
        """Return the seconds that a rule set takes."""
        return events * self.event + rules * self.rule + rows * self.row


_FRESH = count()


def fresh(rules: Mapping[str, str]) -> dict[str, str]:
    """Return the same rules with other texts, whose plans are not remembered."""
    return {name: f"{text} -- {next(_FRESH)}" for name, text in rules.items()}


def _match_fresh(events: Any, rules: Mapping[str, str]) -> pa.Table:
    """Return the matches of rules whose plans are not remembered."""
    return cep.match_all(events, fresh(rules))


def ordered_rows(events: Any, rules: Mapping[str, str]) -> int:
    """Return how many rows the engine orders, for all rules together."""
    profile = cep.Profile()
    cep.match_all(events, rules, profile=profile)
    return int(profile.counts["filtered"])


def measure_costs(events: str, size: int, repeats: int) -> Costs:
    """Return what an event, a rule and a row cost, by a few rules over `size` events."""
    nothing, few, more = pq.read_table(events).slice(0, 0), same_keys(CALIBRATED), same_keys(CALIBRATED + PLANNED)
    without, together = (least_cpu(partial(_match_fresh, nothing, rules), repeats) for rules in (few, more))
    rule = max(0.0, together - without) / PLANNED
    quiet = {"none": _NOTHING, "nothing": _NOTHING}
    event = max(0.0, least_cpu(partial(_match_fresh, events, quiet), repeats) - len(quiet) * rule) / size
    left = least_cpu(partial(_match_fresh, events, few), repeats) - size * event - len(few) * rule
    return Costs(event, rule, max(0.0, left) / max(1, ordered_rows(events, few)))


# It reads what the others read, and has no event.
_NOTHING = (
    "PARTITION BY user PATTERN SEQ(None a, Nothing b) WHERE a.amount < b.amount AND a.items < b.items AND a.country = b.country "
    "WITHIN 1 RETURN a.ts AS begun, b.amount AS amount"
)


def lines(events: str, size: int, counts: Sequence[int], repeats: int) -> Iterator[str]:
    """Yield a line for each kind and number of rules: rows, seconds measured and predicted, their ratio, and processors for a day."""
    costs = measure_costs(events, size, repeats)
    yield f"An event costs {1e9 * costs.event:.0f} ns, a rule {1e3 * costs.rule:.1f} ms, a row {1e9 * costs.row:.0f} ns.\n"
    yield "| rules | number | rows ordered | CPU s | model | ratio | processors |\n|---|---:|---:|---:|---:|---:|---:|"
    for kind, make in KINDS.items():
        rules = make(max(counts))
        for number in counts:
            some = dict(list(rules.items())[:number])
            rows = ordered_rows(events, some)
            taken = least_cpu(partial(_match_fresh, events, some), repeats)
            told = costs.of(size, number, rows)
            processors = costs.of(A_DAY, number, rows * A_DAY // size) / 86_400
            yield f"| {kind} | {number:,} | {rows:,} | {taken:.2f} | {told:.2f} | {taken / told:.2f} | {processors:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rules", type=int, nargs="+", default=RULES)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        path = str(Path(folder) / "events.parquet")
        pq.write_table(made(asked.events), path, row_group_size=GROUP)
        print(f"{asked.events:,} events in Parquet; processors: busy all day with {A_DAY:,} events\n")
        for line in lines(path, asked.events, asked.rules, asked.repeats):
            print(line, flush=True)


if __name__ == "__main__":
    main()
