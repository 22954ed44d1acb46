"""Make the stateful processor that Spark calls with the packed events of each bucket, and when the watermark has passed its timer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructType

from gpu_cep_spark.streaming.buckets import match_sent
from gpu_cep_spark.streaming.work import LiveWork
from gpu_cep_spark.tasks.handshake import as_bytes

# The state variables; a checkpoint has them under these names and with these schemas.
# Spark would parse schemas that are text in each task.
_ABOUT = "about", StructType().add("about", BinaryType())
_CHUNKS = "events", StructType().add("first", LongType()).add("chunk", BinaryType())
# Of row patterns alone: what the search knows of the rows.
_MARKS = "marks", StructType().add("marks", BinaryType())


def make_processor(work: LiveWork) -> StatefulProcessor:
    """Return the processor for a query; on executors it raises as the function of :func:`gpu_cep_spark.tasks.handshake.as_bytes`."""
    unpack, further = as_bytes(partial(match_sent, cloudpickle.dumps(work))), () if work.live.rows is None else (_MARKS,)

    # nested, so that it travels by value: the executor needs nothing of this module to load it
    class Matching(StatefulProcessor):
        """The processor: it hands each call over with the state variables of its bucket."""

        def init(self, handle: Any) -> None:
            marks = (handle.getValueState(*variable) for variable in further)
            self._state = handle.getValueState(*_ABOUT), handle.getListState(*_CHUNKS), handle, *marks
            self._match: Any = None

        def handleInputRows(self, key: Any, rows: Iterable[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            return self._call(key, [chunk for frame in rows for chunk in frame["events"]], timerValues)

        def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802, N803
            return self._call(key, None, timerValues)

        def _call(self, key: Any, arrived: Any, times: Any) -> Iterator[Any]:
            if self._match is None:
                self._match = unpack()
            yield from self._match(int(key[0]), self._state, arrived, times.getCurrentWatermarkInMs())

        def close(self) -> None:
            self._match = None

    return Matching()
