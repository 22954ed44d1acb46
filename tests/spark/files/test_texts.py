"""Tasks keep of files only the rows whose texts a query wants, and all of them where a time may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.input import parquet_files
from gpu_cep.engine.input.event_filter import wanted_events
from gpu_cep.keywords import read_keywords
from gpu_cep_spark.files.footers import fingerprint
from gpu_cep_spark.files.reading import READ_GROUPS, READ_ROWS, FilePart, Reading, Share, read_share
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery
from tests.effort import examples

SCHEMA = pa.schema([("ts", pa.int64()), ("type", pa.string()), ("x", pa.int64())])
# Queries with the texts of the events that they want, None among them for NULL; no texts: rows are not told apart by them.
QUERIES = {
    "PATTERN SEQ(A a, B b) WITHIN 5": {"A", "B"},
    "PATTERN SEQ(A a, NOT(N n), C c) WITHIN 5": {"A", "C", "N"},
    "PATTERN SEQ(A a, b) WHERE b.type IN ('C', 'ü') AND a.x > b.x WITHIN 5": {"A", "C", "ü"},
    "PATTERN SEQ(A a, b) WHERE b.type <> 'A' AND b.x >= 0 WITHIN 5": {"A", "B", "C", "N", "ü"},
    "PATTERN SEQ(A a, b) WHERE b.type IS NULL WITHIN 5": {"A", None},
    "PATTERN SEQ(A a, b) WHERE b.x > 3 WITHIN 5": set(),
    "PATTERN SEQ(A a, B b) WITHIN 5 EVENTS": set(),
}
EVENTS = st.lists(st.tuples(st.sampled_from(["A", "B", "C", "N", "ü", None]), st.integers(0, 9)), min_size=1, max_size=24)


@pytest.fixture(autouse=True)
def _few_rows_are_worth_it() -> Iterator[None]:
    """Let short files have dictionaries, too."""
    with patch.object(parquet_files, "_SOME_ROWS", 1):
        yield


def read(path: Path, query: str, profile: Profile) -> pa.Table:
    """What a task reads of all row groups of a file."""
    narrow = NarrowQuery.of(query, SCHEMA, *read_keywords({"output": "count"}))
    columns = tuple(narrow.events.names)
    wanted = wanted_events(narrow.plan, narrow.events)
    # all row groups are read, also those that are near none which a match needs
    every = None if wanted is None else wanted._replace(near=None)
    what = Reading(narrow.events, columns, columns.index("ts"), every, None, ())
    part = FilePart(str(path), fingerprint(str(path)), tuple(range(pq.read_metadata(path).num_row_groups)), {})
    share = Share(0, ((part,),), WHOLE, None, None, None, None)
    found = pa.concat_tables(read_share(what, share, profile, timed=False), promote_options="permissive")
    return found.rename_columns(columns).cast(narrow.events)


@settings(examples(200, 500), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EVENTS, st.sampled_from(sorted(QUERIES)), st.integers(1, 5), st.booleans())
def test_only_rows_with_texts_that_are_wanted_are_kept(tmp_path: Path, drawn, query, group, untimed):
    types, values = zip(*drawn, strict=True)
    times = [None if untimed and not place else place for place in range(len(drawn))]
    events, path = pa.table([times, types, values], schema=SCHEMA), tmp_path / "events.parquet"
    pq.write_table(events, path, row_group_size=group)
    profile = Profile()
    found = read(path, query, profile)
    wanted = QUERIES[query]
    kept = events.filter(pc.is_in(events["type"], pa.array(list(wanted), pa.string()))) if wanted and not untimed else events
    expected = kept.select(found.column_names).to_pylist()
    if wanted and not untimed:
        assert found.to_pylist() == expected
        assert profile.counts.get(READ_ROWS, 0) >= len(expected)
        assert profile.counts.get(READ_GROUPS, 0) <= -(-len(drawn) // group)
    else:
        # row groups without a wanted row may be left out
        assert all(row in expected for row in found.to_pylist())
        assert found.num_rows == profile.counts.get(READ_ROWS, 0)
