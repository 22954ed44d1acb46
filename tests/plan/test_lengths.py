"""Lengths of time as explanations tell them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.analysis.types import Attribute
from gpu_cep.engine.input.read_tables import schema_of
from gpu_cep.plan.lengths import length_text


def timestamp(kind: pa.DataType) -> Attribute:
    return schema_of(pa.schema([("when", kind)])).attributes[0]


@pytest.mark.parametrize(
    ("length", "kind", "text"),
    [
        (6 * 3_600_000_000, pa.timestamp("us"), "6 hours"),
        (90 * 60_000, pa.timestamp("ms", "UTC"), "90 minutes"),
        (60_000_000_000, pa.timestamp("ns"), "1 minute"),
        (1_500, pa.timestamp("us"), "1,500 us"),
        (1, pa.timestamp("s"), "1 second"),
        (0, pa.timestamp("s"), "0 seconds"),
        (10, pa.date32(), "10 days"),
        (1_000, pa.int64(), "1,000 ticks of when"),
        (0.5, pa.float64(), "0.5 ticks of when"),
    ],
)
def test_ticks_with_a_length_are_told_in_units(length: float, kind: pa.DataType, text: str) -> None:
    assert length_text(length, timestamp(kind)) == text


def test_explanations_tell_windows_and_durations_so() -> None:
    events = pa.table({"ts": pa.array([], pa.timestamp("us")), "type": pa.array([], pa.string()), "x": pa.array([], pa.int64())})
    assert "window 90 minutes," in str(cep.explain(events, "PATTERN SEQ(A a, B b) WITHIN 1.5 hours"))
    text = "DEFINE A AS x > 1 AT LEAST 30 seconds, B AS x < 0 PATTERN A before B WITHIN 2 days"
    explained = str(cep.explain(events, text, gap="1 minute"))
    assert "lasting at least 30 seconds" in explained
    assert "window     2 days" in explained
    assert "a situation ends 1 minute after its last event" in explained
