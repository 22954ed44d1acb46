"""Spark's tasks on a card that the CPU plays, with a stand-in for cuDF."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
import pytest

from benchmarks.gpu.counting import CountingDevice
from gpu_cep_kernels.device import selection
from gpu_cep_spark.tasks.handshake import Stage, send
from gpu_cep_spark.tasks.worker import Work, match_partition
from tests.gpu import cudf_stand_in


def stage_on_card(work: Work) -> Stage:
    """The function that an executor runs on each Spark partition, where there are a card and cuDF."""
    return send(partial(match_on_card, work))


def match_on_card(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches of a partition; the worker, which other tasks use, is left without the card."""
    device = CountingDevice()
    modules = {"cudf": cudf_stand_in.module(), "pylibcudf": cudf_stand_in.pylibcudf_module(device, [])}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(selection, "_find_device", lambda: device)
        # one by one: `patch.dict` would also forget what numba imports meanwhile, which cannot be imported twice
        for name, module in modules.items():
            patched.setitem(sys.modules, name, module)
        yield from match_partition(work, batches)
