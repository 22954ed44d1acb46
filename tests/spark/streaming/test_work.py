"""A worker that is called again and again has what it is sent ready."""

from __future__ import annotations

from unittest.mock import patch

from pyspark import cloudpickle

from gpu_cep_spark.streaming import buckets
from tests.spark.streaming.test_buckets import EVENTS, PAIRS, asked


def test_a_worker_unpickles_the_work_once() -> None:
    sent = cloudpickle.dumps(asked(PAIRS, EVENTS)[1])
    with patch.object(buckets, "match_bucket") as called:
        for _ in range(2):
            buckets.match_sent(bytes(bytearray(sent)), 0, (), None, 0)
    first, second = (call.args[0] for call in called.call_args_list)
    assert first is second
    assert first.groups[0].first.digest == asked(PAIRS, EVENTS)[1].groups[0].first.digest
