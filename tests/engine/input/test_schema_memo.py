"""Tests of what is remembered by schemas."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from gpu_cep.engine.input.schema_memo import SchemaMemo

SCHEMAS = [pa.schema([pa.field(name, kind)]) for name in "ab" for kind in (pa.int64(), pa.list_(pa.int8()))]
NAMED = pa.schema([SCHEMAS[0].field(0).with_metadata({"unit": "m"})])
MANY = [pa.schema([pa.field(str(number), pa.int8())]) for number in range(20)]


class Forgotten(Exception):
    """Something would be made anew."""


def again(schema):
    raise Forgotten


def test_a_schema_has_what_was_made_of_an_equal_one():
    memo = SchemaMemo(100, metadata=False)
    made = [memo.of("key", schema, lambda own: [own]) for schema in SCHEMAS]
    assert len({*map(id, made)}) == len(SCHEMAS)
    assert all(memo.of("key", pa.schema(list(schema)), again) is one for schema, one in zip(SCHEMAS, made, strict=True))
    assert memo.of("key", NAMED, again) is made[0]
    with pytest.raises(Forgotten):
        memo.of("other key", NAMED, again)


def test_metadata_of_fields_tell_schemas_apart_if_asked():
    memo = SchemaMemo(100, metadata=True)
    assert [memo.of("key", SCHEMAS[0], lambda _: 1), memo.of("key", NAMED, lambda _: 2)] == [1, 2]


@pytest.mark.parametrize("keys", [1, 3, 20])
def test_the_pairs_that_were_asked_for_last_are_kept(keys):
    memo = SchemaMemo(20, metadata=False)
    pairs = [(number % keys, schema) for number, schema in enumerate(MANY)]
    for _ in range(3):
        made = [memo.of(key, schema, lambda own: own) for key, schema in pairs]
    assert all(memo.of(key, schema, again) is one for (key, schema), one in zip(pairs, made, strict=True))
    memo.of(*pairs[0], again)
    memo.of("another", NAMED, lambda own: own)
    assert memo.of(*pairs[0], again) is made[0]
    forgotten = 0
    for key, schema in pairs:
        try:
            memo.of(key, schema, again)
        except Forgotten:
            forgotten += 1
    assert forgotten == 1


def test_what_fails_is_made_again():
    memo = SchemaMemo(2, metadata=False)
    with pytest.raises(Forgotten):
        memo.of("key", NAMED, again)
    assert memo.of("key", NAMED, lambda _: 7) == 7


def test_threads_share_a_memo():
    memo = SchemaMemo(5, metadata=False)

    def ask(number):
        key, schema = number % 3, MANY[number % 7]
        return memo.of(key, schema, lambda own: (key, own)) == (key, schema)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(5000)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked where the system can")
def test_a_process_that_is_forked_while_a_thread_changes_the_memo_goes_on():
    memo = SchemaMemo(5, metadata=False)
    with memo._changing:
        child = os.fork()
        if not child:
            status = 1
            try:
                memo.of("key", NAMED, lambda own: own)
                status = 0
            finally:
                os._exit(status)
    deadline = time.monotonic() + 60
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child waits for a lock that nobody will give up")
        time.sleep(0.01)
    assert ended == (child, 0)
