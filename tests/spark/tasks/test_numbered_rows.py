"""Matches of slices are numbered through, however tasks come by their rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from gpu_cep_spark.tasks.numbered_rows import IS_ROWS, TO, NumberedRows, number_rows, pack_rows

HOW = NumberedRows(pa.schema({"slice": pa.int64(), "match_id": pa.int64(), "row": pa.int64()}), slices=0, matches=1, tasks=3)


@pytest.mark.parametrize("seed", range(4))
def test_numbers_have_no_gaps(seed: int) -> None:
    """Numbers of slices have gaps, and tasks have rows of the same matches, in any order if they were taken of several slices."""
    random = np.random.default_rng(seed)
    kept = np.unique(np.stack([random.integers(-3, 3, 90), random.integers(0, 40, 90)]), axis=1)
    slices, matches = np.repeat(kept, random.integers(1, 4, kept.shape[1]), axis=1)
    given = pa.table([slices, matches, np.arange(len(slices))], schema=HOW.rows)
    tasks = random.integers(0, 4, len(slices))
    parts = [given.filter(pa.array(tasks == task)) for task in range(4)]
    parts[0] = parts[0].take(pa.array(random.permutation(len(parts[0]))))
    sent = pa.concat_tables([packed for rows in parts for packed in pack_rows(HOW, [rows.slice(0, 5), rows.slice(5)])])
    found = []
    for task in range(HOW.tasks):
        own = sent.filter(pa.array(sent.column(TO).to_numpy() == task)).sort_by(IS_ROWS)
        found += [row for rows in number_rows(HOW, (1, 2), own.to_batches(max_chunksize=2)) for row in rows.to_pylist()]
    _, wanted = np.unique(np.stack([slices, matches]), axis=1, return_inverse=True)
    assert sorted((row["row"], row["match_id"]) for row in found) == list(enumerate(wanted.reshape(-1).tolist()))


def test_a_task_without_matches_sends_nothing() -> None:
    assert list(pack_rows(HOW, [])) == []
    assert not any(packed.column(IS_ROWS)[0].as_py() for packed in pack_rows(HOW, [HOW.rows.empty_table()]))
