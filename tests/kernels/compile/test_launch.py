"""Work is spread over threads, the calling one among them, in any number of layers."""

from __future__ import annotations

import threading
import time

import pytest

from gpu_cep_kernels.compile.launch import spread


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_stand_in_the_order_of_items(threads):
    assert spread(lambda item: item * item, range(50), threads) == [item * item for item in range(50)]
    assert spread(str, [], threads) == []


@pytest.mark.parametrize("threads", [2, 3])
def test_work_may_spread_its_own(threads):
    def inner(item):
        return sum(spread(lambda part: item * part, range(20), threads))

    def outer(item):
        return spread(inner, range(item, item + 10), threads)

    assert spread(outer, range(20), threads) == [[190 * item for item in range(first, first + 10)] for first in range(20)]


def test_all_threads_work_and_no_more():
    working, both = set(), threading.Barrier(2, timeout=300)

    def work(item):
        if threading.get_ident() not in working:
            working.add(threading.get_ident())
            # until the other one works: a third one would wait in vain
            both.wait()

    spread(work, range(20), 2)
    assert threading.get_ident() in working
    assert len(working) == 2


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_first_fault_is_raised_and_work_ends(threads):
    done = []

    def work(item):
        if item >= 5:
            raise ValueError(item)
        time.sleep(0.001)
        done.append(item)

    with pytest.raises(ValueError, match=r"^5$"):
        spread(work, range(1_000), threads)
    assert sorted(done) == [0, 1, 2, 3, 4]
