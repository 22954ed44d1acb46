"""Text of more bytes than an Arrow array with offsets of 32 bits holds; a smaller bound stands in for 2 GiB."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.engine.input import chunks, event_columns
from gpu_cep.errors import MatchLimitExceeded

ROWS = 60
QUERY = "PARTITION BY key PATTERN SEQ(A a, B b) WHERE a.note = b.note"


def events() -> pa.Table:
    chunk = pa.table({"type": list("AB") * 10, "key": [f"key {n // 4}" for n in range(20)], "note": [f"note {n // 2}" for n in range(20)]})
    return pa.concat_tables([chunk] * (ROWS // 20)).append_column("ts", [range(ROWS)])


@pytest.mark.parametrize("output", ["matches", "events", "count"])
def test_the_same_matches_in_the_same_types(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cep.match(events(), QUERY, output=output)
    monkeypatch.setattr(chunks, "MOST_TEXT", 100)
    assert cep.match(events(), QUERY, output=output).equals(expected)
    assert expected.num_rows


def test_text_that_the_result_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def overflowing(self: event_columns.EventColumns, column: int) -> pa.Array:
        return Overflowing() if self.name(column) == "note" else arrow(self, column)

    class Overflowing:
        type = pa.string()

        def take(self, rows: pa.Array) -> pa.Array:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")

    arrow = event_columns.EventColumns.arrow
    monkeypatch.setattr(event_columns.EventColumns, "arrow", overflowing)
    with pytest.raises(MatchLimitExceeded, match=r"column 'note' of 30 matched events: .* capacity; use output='count'"):
        cep.match(events(), "PARTITION BY key PATTERN A a WITHIN 1 RETURN a.note AS note")
