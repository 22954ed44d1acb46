"""Columns with a UUID within a struct or a list, of which Arrow makes no empty table: on every road, with matches and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gpu_cep as cep
from gpu_cep.cli.files import table_target
from gpu_cep.engine.input.empty_tables import no_rows

_UUIDS = pa.array([bytes([row]) * 16 for row in range(2)], pa.uuid())
_STRUCTS = pa.StructArray.from_arrays([_UUIDS], ["id"])
EVENTS = pa.table({
    "ts": [1, 2], "type": ["A", "B"], "id": _UUIDS, "s": _STRUCTS, "l": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), _STRUCTS),
})  # fmt: skip
FOUND, NOT_FOUND = "PATTERN SEQ(A a, B b+) WITHIN 9", "PATTERN SEQ(A a, A b+) WITHIN 9"
QUERIES = pytest.mark.parametrize("query", [FOUND, NOT_FOUND])


def test_a_table_without_rows_has_the_schema():
    assert no_rows(EVENTS.schema).schema == EVENTS.schema
    assert [chunk.type for column in no_rows(EVENTS.schema).columns for chunk in column.chunks] == EVENTS.schema.types


@QUERIES
@pytest.mark.parametrize("keywords", [{}, {"output": "events"}, {"timeouts": True}], ids=str)
def test_tables_and_files(query: str, keywords: dict[str, Any], tmp_path: Path):
    pq.write_table(EVENTS, tmp_path / "events.parquet")
    wanted = cep.match(EVENTS, query, **keywords)
    assert cep.match(tmp_path / "events.parquet", query, **keywords) == wanted
    if "timeouts" not in keywords:
        assert cep.match_all(EVENTS, {"one": query}, **keywords).drop_columns("pattern") == wanted


@QUERIES
@pytest.mark.parametrize("keywords", [{}, {"late": "rows"}, {"timeouts": True}, {"late": "rows", "timeouts": True}], ids=str)
def test_streams(query: str, keywords: dict[str, Any]):
    live = cep.stream(query, EVENTS.schema, lateness=0, **keywords)
    parts = [live.push(EVENTS.slice(0, 1)), live.push(EVENTS.slice(1)), live.push(EVENTS.slice(0, 1))]
    parts.append(cep.stream.load(live.save()).finish())
    found = pa.concat_tables(parts)
    kinds = found["kind"].to_pylist() if "kind" in found.column_names else ["match"] * found.num_rows
    assert kinds.count("match") == (query == FOUND)
    assert kinds.count("late") == (keywords.get("late") == "rows")
    together = cep.stream_all({"one": query}, EVENTS.schema, lateness=0, late=keywords.get("late", "drop"))
    assert together.push(EVENTS).num_rows + together.finish().num_rows == (query == FOUND)


@pytest.mark.parametrize("rows", ["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])
def test_row_patterns_without_matches(rows: str):
    clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES LAST(A.ts) AS last {rows} PATTERN (A) DEFINE A AS type = 'C')"
    assert cep.match(EVENTS, clause).num_rows == 0


@pytest.mark.parametrize("name", ["found.parquet", "found.arrow", "found.jsonl"])
def test_results_are_written(name: str, tmp_path: Path):
    target = table_target(str(tmp_path / name))
    target.write(cep.match(EVENTS, FOUND))
    assert (tmp_path / name).stat().st_size


@pytest.mark.parametrize(
    ("returned", "hint"),
    [
        ("a.id AS id", "leave the column out, or cast it to text before its events are matched; as it is, it fits .parquet, .pq"),
        ("a.s AS s", "RETURN single"),
    ],
)
def test_what_csv_cannot_hold_is_told_with_what_to_write(returned: str, hint: str, tmp_path: Path):
    with pytest.raises(cep.UnsupportedError) as caught:
        table_target(str(tmp_path / "found.csv")).write(cep.match(EVENTS, f"{FOUND} RETURN {returned}"))
    (told,) = caught.value.diagnostics
    assert hint in str(told.hint)
