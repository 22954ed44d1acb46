"""What we use of cuDF and RMM is there in their own sources, with the parameters that we give."""

from __future__ import annotations

import inspect
import json
import re

import pytest

from tests.cudf_signatures import SOURCES, TOLD, Use, fault_of, uses_of
from tests.gpu import cudf_stand_in

SAID = json.loads(TOLD.read_text(encoding="utf-8"))["told"]


def test_cudf_has_what_is_used():
    used = {use for path in SOURCES for use in uses_of(path.read_text(encoding="utf-8"))}
    assert used >= {
        Use("Series", "factorize", 0),
        Use("Index", "to_arrow", 0),
        Use("DataFrame", "from_arrow", 1),
        Use("DataFrame", "to_arrow", 0, ("preserve_index",)),
        Use("CategoricalAccessor", "codes"),
        Use("Column", "offset", 0),
        Use("pylibcudf.io.parquet", "read_parquet", 1),
        Use("ParquetReaderOptions", "set_row_groups", 1),
        Use("PoolMemoryResource", "pool_size", 0),
    }
    assert [fault for use in used if (fault := fault_of(use, SAID))] == []


def test_the_stand_in_takes_what_cudf_takes():
    names = ("Series", "Index", "DataFrame", "Column", "ParquetReaderOptions", "ParquetReaderOptionsBuilder")
    own = {name: getattr(cudf_stand_in, name) for name in names}
    told = {(owner, name): parameters for owner in own for name, parameters in SAID[owner].items() if parameters is not None}
    found = {(owner, name): str(inspect.signature(getattr(own[owner], name))) for owner, name in told}
    assert {key: re.sub(r"=\w+|\bself\b(, )?|[()]", "", text) for key, text in found.items()} == {
        key: text.replace("=None", "") for key, text in told.items()
    }


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("series.factorise()", "Series has no factorise"),
        ("series.take(rows, axis=0, mode=1)", "Series.take: got an unexpected keyword argument 'mode'"),
        ("options.set_row_groups()", "ParquetReaderOptions.set_row_groups: missing a required argument: 'row_groups'"),
        ("series.cat.codes()", "CategoricalAccessor.codes is no function"),
        ("require_cudf().DataFrame.from_arrow()", "DataFrame.from_arrow: missing a required argument: 'table'"),
    ],
)
def test_faults_are_found(source, fault):
    assert [found for use in uses_of(source) if (found := fault_of(use, SAID))] == [fault]
