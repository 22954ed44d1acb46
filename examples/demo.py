"""Three questions over real events, answered in the process and under Spark; ``make demo`` runs it.

Every answer is computed twice, by gpu_cep.match() and by gpu_cep.gpu_match() on a
local Spark session; the exit code is 1 if the two disagree anywhere.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent, indent

import pyarrow as pa
from chemo import chemo
from display import matches_text, waterfall_text
from flights import Flights, flights
from pyspark.sql import SparkSession

import gpu_cep

SHOWN = 5

GROWING_DELAYS = """
    PATTERN SEQ(late{3,}, recovered)
    WHERE late.dep_delay >= 15 AND late[i].dep_delay > late[i-1].dep_delay
      AND late[i].leg = late[i-1].leg + 1 AND recovered.dep_delay <= 0
    WITHIN 1 day
    RETURN first(late.carrier) AS carrier, count(late) AS flights, first(late.dep_delay) AS from_delay,
           last(late.dep_delay) AS to_delay, recovered.dep_delay AS then
"""

THREE_AIRPORTS = """
    PATTERN SEQ(AND(detroit, raleigh, cleveland), late)
    WHERE detroit.dest = 'DTW' AND raleigh.dest = 'RDU' AND cleveland.dest = 'CLE' AND late.dep_delay >= 60
    WITHIN 2 days
    RETURN detroit.flight AS detroit, raleigh.flight AS raleigh, cleveland.flight AS cleveland,
           late.dest AS late_to, late.dep_delay AS delay
"""

TREATMENT = """
    PATTERN SEQ(AND(C c, P p+, D d), B b)
    WHERE [PID] AND prev(p.V) < p.V
    WITHIN 15 days
    RETURN c.PID AS patient, c.V AS dose_c, count(p) AS doses_p, last(p.V) AS highest_p, d.V AS dose_d, b.V AS blood_count
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A pattern and the events it is asked of; `options` are match()'s keywords."""

    title: str
    pattern: str
    events: pa.Table
    options: dict[str, str]


def questions(departures: Flights) -> list[Question]:
    """Return the demo's questions."""
    per_aircraft = {"timestamp": "departure", "partition_by": "tailnum"}
    return [
        Question(
            "Three or more departures in a row, each later than the one before; then one on time, within a day",
            GROWING_DELAYS,
            departures.events,
            per_aircraft,
        ),
        Question(
            "One aircraft to Detroit, Raleigh and Cleveland in any order, then an hour late, within two days",
            THREE_AIRPORTS,
            departures.events,
            per_aircraft,
        ),
        Question(
            "The SES thesis: doses of C, D and growing P in any order, then a blood count, within 15 days",
            TREATMENT,
            chemo(),
            {"timestamp": "T", "type_column": "L"},
        ),
    ]


def answer(question: Question, session: SparkSession) -> bool:
    """Ask `question` both ways, show what was found, and say whether the two answers agree."""
    print(f"\n{question.title}\n\n{indent(dedent(question.pattern).strip(), '    ')}\n")
    _, first_seconds = timed(lambda: gpu_cep.match(question.events, question.pattern, **question.options))
    profile = gpu_cep.Profile()
    matches, local_seconds = timed(lambda: gpu_cep.match(question.events, question.pattern, profile=profile, **question.options))

    from_spark, spark_seconds = timed(
        lambda: gpu_cep.gpu_match(session.createDataFrame(question.events), question.pattern, **question.options).toArrow()
    )

    print(matches_text(matches, SHOWN))
    agreed = as_set(matches) == as_set(from_spark)
    verdict = "the same matches" if agreed else f"DISAGREEMENT: {from_spark.num_rows:,} matches under Spark"
    print(f"\n  {matches.num_rows:,} matches; match() {local_seconds:.2f} s, gpu_match() {spark_seconds:.2f} s: {verdict}")
    print(f"  (match() warm, after a first call of {first_seconds:.2f} s; gpu_match() cold: workers start, and load or compile kernels)")
    print(f"\n{waterfall_text(profile.counts, profile.seconds)}")
    return agreed


def timed(call: Callable[[], pa.Table]) -> tuple[pa.Table, float]:
    """Return what `call` gives, and the seconds it took."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def as_set(matches: pa.Table) -> list[str]:
    """Return the rows in an order that does not depend on where they were found."""
    return sorted(repr(sorted(row.items())) for row in matches.to_pylist())


def local_session() -> SparkSession:
    """Return a Spark session on this machine's processors."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("gpu_cep demo")
    settings = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",  # a timestamp without zone stays one
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> int:
    """Run the demo; 0 if both engines agree on every question."""
    departures = flights()
    print(
        f"{departures.total:,} flights left New York City in 2013; {departures.dropped:,} are dropped:\n"
        f"{departures.without_departure:,} have no departure, {departures.without_tailnum:,} no tail number.\n"
        f"The other {departures.events.num_rows:,} are events, one stream per aircraft.\n"
        "Kernels are compiled when a machine first needs them: then the first answer takes a minute or two.",
        flush=True,
    )
    session = local_session()
    try:
        agreed = [answer(question, session) for question in questions(departures)]
    finally:
        session.stop()
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
