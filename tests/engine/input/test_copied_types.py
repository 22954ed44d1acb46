"""Which columns can be in a result: those whose rows Arrow can gather."""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpu_cep.engine.input.encodings import is_copied

PLAIN = (
    pa.int8(), pa.bool_(), pa.null(), pa.string(), pa.binary(4), pa.decimal128(5, 2), pa.float16(), pa.duration("s"), pa.string_view(),
    pa.month_day_nano_interval(), pa.map_(pa.string(), pa.int64()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 3),
    pa.run_end_encoded(pa.int32(), pa.int8()), pa.dictionary(pa.int8(), pa.string()), pa.sparse_union([pa.field("a", pa.int8())]),
    pa.list_view(pa.int8()),
)  # fmt: skip


def is_gathered(kind):
    try:
        pa.nulls(1, kind).take(pa.array([0]))
    except pa.ArrowNotImplementedError:
        return False
    return True


@pytest.mark.parametrize("plain", PLAIN, ids=str)
def test_nested_types_are_copied_where_their_parts_are(plain):
    own = pa.struct([("a", plain), ("b", pa.int8())])
    for kind in (plain, own, pa.list_(plain), pa.list_(own), pa.struct([("a", pa.list_(plain))]), pa.list_(plain, 2)):
        assert is_copied(kind) == is_gathered(kind), kind
