"""Write events as Parquet files, draw queries that statistics of files bear on, and gather what matching tells."""

from __future__ import annotations

import datetime as dt
import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import dataset, parquet

import gpu_cep as cep
from tests.conformance.test_untimed_events import holes
from tests.drawn.patterns import ALL_OPERATORS, ALPHABETS, patterns, variables
from tests.drawn.queries import AFTER_MATCH, Case
from tests.drawn.tables import CLOCKS, scattered_table

# Conditions on one event, of which statistics tell something, and a few of which they tell nothing.
SIFTING = (
    *("{v}.x > 1", "{v}.x = 2", "NOT {v}.x = 1", "{v}.x <> 1", "{v}.x IN (0, 3)", "{v}.x BETWEEN 0 AND 1", "2 <= {v}.x", "{v}.x IS NULL"),
    *("{v}.s = 'y'", "{v}.s <> 'x'", "{v}.s < 'x'", "{v}.s IN ('y', 'xy')", "{v}.s IS NOT NULL", "{v}.f", "NOT {v}.f", "{v}.k = 2"),
    *("{v}.y > 0.1", "{v}.y <= 0.1", "{v}.y = 0", "{v}.y <> 1", "NOT {v}.y < 1", "{v}.y >= 0.5", "{v}.m > 0.25", "{v}.m <= 0"),
    *("{v}.d > DATE '2024-01-01'", "{v}.t >= TIMESTAMP '2024-01-01 00:00:01'", "({v}.x = 0 OR {v}.s = 'y')", "NOT ({v}.x = 1 AND {v}.f)"),
    *("{v}.x + 1 > 2", "{v}.s LIKE 'x%'", "upper({v}.s) = 'Y'", "{v}.y * 2 > 1"),
)
SIFTED_CLOCKS = tuple(clock for clock in CLOCKS if not pa.types.is_floating(clock.type))


@st.composite
def sifted_cases(draw: st.DrawFn) -> Case:
    """Queries that say something of the events of each variable, under strategies that pass over other events."""
    clock, alphabet = draw(st.sampled_from(SIFTED_CLOCKS)), draw(st.sampled_from(ALPHABETS))
    declared = draw(variables(alphabet, 3, operators=ALL_OPERATORS))
    conjuncts = [draw(st.sampled_from(SIFTING)).format(v=each.name) for each in declared for _ in range(draw(st.sampled_from((1, 1, 2))))]
    conjuncts += draw(st.sampled_from(((), (), ("[k]",))))
    pattern, window = draw(patterns(declared, ALL_OPERATORS)), draw(st.sampled_from(clock.windows))
    text = f"PATTERN {pattern} WHERE {' AND '.join(conjuncts)} WITHIN {window.format(n=draw(st.sampled_from((1, 4, 8, 20))))}"
    options = {
        "strategy": draw(st.sampled_from(("skip_till_next_match", "skip_till_any_match", "robust_skip_till_next_match"))),
        "ties": draw(st.sampled_from(("strict", "position"))),
        "partition_by": draw(st.sampled_from((None, None, "k", "s"))),
        "order_by": draw(st.sampled_from((None, None, "x", "s"))),
        "time_unit": clock.time_unit,
        "after_match": draw(st.sampled_from(AFTER_MATCH)),
        "nulls": draw(st.sampled_from(("error", "error", "drop"))),
    }
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from((8, 12, 16)))
    events = scattered_table(seed, clock, alphabet, size, tied=draw(st.booleans()))
    if options["nulls"] == "drop":
        events, _ = draw(holes(events, "ts"))
    by = draw(st.sampled_from((None, "x", "s", "y", "type")))
    return Case(text, events if by is None else events.sort_by(by), {name: value for name, value in options.items() if value is not None})


@contextmanager
def files_of(events: pa.Table, group: int, cut: int, form: str, dictionaries: bool = True) -> Iterator[tuple[Any, pa.Table]]:
    """The events as Parquet with so many rows in a row group, in two files unless it is one; and as a table with its types."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [events] if form == "file" else [events[:cut], events[cut:]]
        for number, part in enumerate(parts):
            parquet.write_table(part, Path(folder, f"{number}.parquet"), row_group_size=group, use_dictionary=dictionaries)
        given = {"file": f"{folder}/0.parquet", "folder": folder, "glob": f"{folder}/*.parquet"}
        whole = dataset.dataset(folder)
        yield given.get(form, whole), whole.to_table()


def told(events: Any, case: Case, **options: Any) -> tuple[object, ...]:
    """What match() returns, with its types, raises and warns; NaN equals NaN."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        try:
            found = cep.match(events, case.text, **case.options, **options)
        except cep.CepError as error:
            return type(error), str(error)
    table = found.table if isinstance(found, cep.Compressed) else found
    return table.schema, repr(table.to_pylist()), [str(each.message) for each in given]


LEVELS = pa.table(
    {
        "ts": pa.array(range(20)),
        "type": ["A", "B", "N", "N", "N"] * 4,
        "x": pa.array([number // 5 for number in range(20)], pa.int16()),
        "y": pa.array([number / 4 for number in range(19)] + [math.nan], pa.float32()),
        "s": [f"{number:02}" for number in range(20)],
        "big": pa.array([2**62] * 5 + [1] * 15),
        "wide": pa.array([2**64 - 1] * 5 + [1] * 15, pa.uint64()),
        "day": [dt.date(2026, 1, 1) + dt.timedelta(number) for number in range(20)],
        "at": pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(number) for number in range(20)], pa.timestamp("ns", "UTC")),
        "hole": pa.array([None] * 5 + [1] * 15),
    }
)
