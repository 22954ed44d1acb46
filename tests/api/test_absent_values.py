"""A query without matches is told which of its texts no event has."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import gpu_cep as cep

EVENTS = pa.table({"ts": [1, 2, 3], "type": ["view", "buy", None], "place": ["Bonn", "Bern", "Rome"]})
MEANT = "no event has type 'View'; did you mean 'view'?"


def warned(query: str, events: Any = EVENTS, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        cep.match(events, query, **options)
    assert all(each.category is cep.AbsentValueWarning and each.filename == __file__ for each in given)
    return [str(each.message) for each in given]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("PATTERN SEQ(View a, buy b)", [MEANT]),
        ("PATTERN SEQ(View a, Buy b)", [MEANT, "no event has type 'Buy'; did you mean 'buy'?"]),
        ("PATTERN SEQ(View a, View b+)", [MEANT]),
        ("PATTERN a WHERE 'refund' = a.type AND a.ts > 0", ["no event has type 'refund'; there are 'view', 'buy'"]),
        ("PATTERN a WHERE a.place IN ('rome', 'bonn')", ["no event has place 'rome' or 'bonn'; did you mean 'Rome'?"]),
        ("DEFINE A AS type = 'View', B AS ts > 0 PATTERN A before B", [MEANT]),
        # no match, but each text is there
        ("PATTERN SEQ(buy a, view b)", []),
        ("PATTERN a WHERE a.place IN ('Rome', 'bonn') AND a.ts > 9", []),
        ("PATTERN a WHERE a.place = 'rome' OR a.ts > 9", []),
        ("PATTERN SEQ(buy a, NOT(View c), view b)", []),
        # a match, though one text is absent
        ("PATTERN SEQ(view a, NOT(Buy c), buy b)", []),
        ("PATTERN OR(View a, view b)", []),
    ],
)  # fmt: skip
def test_absent_texts_of_a_query_without_matches(query: str, told: list[str]) -> None:
    assert warned(query) == told


@pytest.mark.parametrize("options", [{"output": output} for output in ("events", "indices", "count", "compressed")] + [
    {"output": "count", "partition_by": "place"}, {"algorithm": "brute_force"},
])  # fmt: skip
def test_every_output_is_told(options: dict[str, Any]) -> None:
    assert warned("PATTERN SEQ(View a, buy b)", **options) == [MEANT]
    assert warned("PATTERN view a", **options) == []


@pytest.mark.parametrize("encoded", [pa.DictionaryArray.dictionary_encode, lambda column: column.cast(pa.large_string())])
def test_texts_of_any_encoding(encoded: Callable[[pa.Array], pa.Array]) -> None:
    # the dictionary knows a text that no row has
    types = encoded(pa.array(["View", "view", "buy", "buy"])).slice(1)
    assert warned("PATTERN SEQ(View a, buy b)", EVENTS.set_column(1, "type", types)) == [MEANT]


def test_no_events_are_no_reason_to_warn() -> None:
    assert warned("PATTERN View a", EVENTS.slice(0, 0)) == []


def test_a_column_of_nulls() -> None:
    events = EVENTS.set_column(1, "type", pa.nulls(3, pa.string()))
    assert warned("PATTERN View a", events) == ["no event has type 'View'; all are NULL"]
