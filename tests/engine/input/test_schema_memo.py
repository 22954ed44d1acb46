"""Tests of what is remembered by schemas."""

import pyarrow as pa

from gpu_cep.engine.input.schema_memo import SchemaMemo

SCHEMAS = [pa.schema([pa.field(name, kind)]) for name in "ab" for kind in (pa.int64(), pa.list_(pa.int8()))]
NAMED = pa.schema([SCHEMAS[0].field(0).with_metadata({"unit": "m"})])


def test_a_schema_has_what_was_made_of_an_equal_one():
    memo = SchemaMemo(metadata=False)
    made = [memo.of(schema, lambda own: [own]) for schema in SCHEMAS]
    assert len({*map(id, made)}) == len(SCHEMAS)
    assert all(memo.of(pa.schema(list(schema)), list) is one for schema, one in zip(SCHEMAS, made, strict=True))
    assert memo.of(NAMED, list) is made[0]


def test_metadata_of_fields_tell_schemas_apart_if_asked():
    memo = SchemaMemo(metadata=True)
    assert [memo.of(SCHEMAS[0], lambda _: 1), memo.of(NAMED, lambda _: 2)] == [1, 2]


def test_the_schemas_that_came_first_are_forgotten():
    memo = SchemaMemo(metadata=False)
    many = [pa.schema([pa.field(str(number), pa.int8())]) for number in range(100)]
    made = [memo.of(schema, lambda _: object()) for schema in many]
    assert memo.of(many[-1], list) is made[-1]
    assert memo.of(many[0], lambda _: None) is None
