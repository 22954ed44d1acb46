"""Whole queries on arrays that refuse what CuPy's would refuse: host and device never mix, and only what CuPy has is used."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

import gpu_cep
from tests.conformance.expectation import answered
from tests.drawn.queries import whole_language
from tests.effort import every_pair

SIZE = 240
EVENTS = pa.table(
    {
        "ts": [e * 7 % 80 for e in range(SIZE)],
        "type": ["A", "B", "C"] * (SIZE // 3),
        "k": [None if e % 50 == 0 else e % 4 for e in range(SIZE)],
        "s": pa.array([f"s{e // 5 % 2}" for e in range(SIZE)]).dictionary_encode(),
        "x": [None if e % 10 == 0 else e * 31 % 17 for e in range(SIZE)],
        "y": [float("nan") if e % 11 == 0 else e % 4 / 2 for e in range(SIZE)],
    }
)
QUERIES = {
    "labels": ("PATTERN SEQ(A a, B b+, C c) WITHIN 9", {}),
    "streams": ("PATTERN SEQ(A a, B b+) WITHIN 30", {"partition_by": ["k", "s"], "order_by": "x", "ties": "position"}),
    "conditions": ("PATTERN SEQ(A a, b{2,}) WHERE a.x < b.x AND a.y * b.y + 0.5 > 0 AND (b.x * 2 > 3 OR b.s = 's1') WITHIN 9", {}),
    "derived": ("PATTERN SEQ(a, b, c) WHERE [k] AND a.type = 'A' AND b.y > 0.4 AND c.x <> 3 WITHIN 40 EVENTS", {}),
    "any": ("PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match { a.x < b.x AND b.y <= c.y } WITHIN 9", {"partition_by": "k"}),
}


@every_pair(prune=[True, ["filter", "summary"], False], output=["indices", "count"], name=[*QUERIES])
def test_queries_never_mix_host_and_device(strict, name, output, prune):
    text, options = QUERIES[name]
    expected = gpu_cep.match(EVENTS, text, engine="cpu", output=output, prune=prune, **options)
    assert gpu_cep.match(EVENTS, text, engine="gpu", output=output, prune=prune, **options).equals(expected)
    assert len(expected)


def test_random_queries_never_mix_them_either(strict):
    @given(whole_language())
    def check(case):
        assert answered(case, engine="gpu", output="indices").equals(answered(case, engine="cpu", output="indices"))

    check()


REFUSED = {
    "operand": lambda xp, array, host: array + host,
    "operand first": lambda xp, array, host: host * array,
    "in place": lambda xp, array, host: array.__iadd__(host),
    "function": lambda xp, array, host: xp.concatenate([array, host]),
    "NumPy's function": lambda xp, array, host: np.cumsum(array, out=host),
    "method": lambda xp, array, host: array.searchsorted(host),
    "index": lambda xp, array, host: array[host],
    "value": lambda xp, array, host: array.__setitem__(slice(None), host),
    "conversion": lambda xp, array, host: np.asarray(array),
    "list": lambda xp, array, host: np.array([array, array]),
    "parameter": lambda xp, array, host: xp.cumsum(array, initial=0),
    "method's parameter": lambda xp, array, host: array.sum(where=array > 1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cupy_refuses_is_refused(strict, name):
    host = np.arange(3)
    with pytest.raises(TypeError):
        REFUSED[name](strict.xp, strict.upload(host), host)


@pytest.mark.parametrize("name", ["lexsorted", "frompyfunc", "matlib"])
def test_what_cupy_lacks_is_missing(strict, name):
    with pytest.raises(AttributeError):
        getattr(strict.xp, name)


def test_arrays_are_counted_once_while_they_are_held(strict):
    ledger = strict.xp.ledger
    array = strict.upload(np.zeros(1000))
    view = array[10:].reshape(-1, 2)
    assert ledger.live == ledger.peak == 8192
    del array
    assert ledger.live == 8192
    del view
    assert (ledger.live, ledger.peak) == (0, 8192)
    ledger.restart()
    assert ledger.peak == 0


def test_scratch_is_part_of_the_peak(strict):
    keys = strict.upload(np.arange(64))
    order = strict.xp.argsort(keys, kind="stable")
    assert strict.xp.ledger.live == 2 * 512
    assert strict.xp.ledger.peak == 2 * 512 + 64 * 24
    assert strict.xp.ledger.peak > strict.download(order).nbytes


def test_reductions_that_cupy_would_compile_are_refused(strict):
    array = strict.upload(np.arange(6, dtype=np.int32).reshape(2, 3))
    with pytest.raises(AttributeError, match="compiles 'any'"):
        (array == 1).any()
    for arguments, options in (((), {}), ((), {"dtype": np.int64}), ((1,), {}), ((), {"axis": 1})):
        with pytest.raises(TypeError, match="compiles this sum of int32"):
            array.sum(*arguments, **options)
    assert int(array.astype(np.int64).sum()) == 15


def test_arrays_compute_as_numpy_does(strict):
    host = np.array([3, 1, 2, 1])
    array = strict.upload(host)
    distinct, places = strict.xp.unique(array, return_inverse=True)
    assert strict.download(distinct[places] * 2 + np.int64(1)).tolist() == [7, 3, 5, 3]
    assert int(array.sum()) == 7
    assert bool((array[1:] == 1).view(np.uint8).max())
    array[1:3] = 0
    array += 1
    assert strict.download(array).tolist() == [4, 1, 1, 2]
    assert host.tolist() == [3, 1, 2, 1]
