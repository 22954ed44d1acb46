"""OpenCEP: one tree for all patterns over a stream of events in this process; the matches come out of another stream.

Its sources lie in the job's checkout, and are imported from there.
"""

from __future__ import annotations

import collections
import os
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from contestant import Job, plain_columns, serve

BEGIN = datetime(2000, 1, 1)
NAMES = ("a", "b", "c")


class OpenCep:
    process = os.getpid()

    def __init__(self, job: Job) -> None:
        sys.path.insert(0, job.checkout)
        # it imports this name from where it was before Python 3.10
        collections.Callable = Callable  # type: ignore[attr-defined]
        self.job = job
        # a part of the text names the rules of one job of Flink's; here they are one
        parts = (part.partition(":")[2] for part in job.text.split("|"))
        self.rules = [tuple(rule.split()) for part in parts for rule in part.split(";")]
        self.events = pa.table(plain_columns(pq.read_table(job.events))).to_pylist()

    def matches(self) -> pa.Table:
        rows = [(rule, *times) for rule, times in self._answer()]
        return pa.table(dict(zip(("pattern", *NAMES), zip(*rows, strict=True), strict=True)))

    def run(self) -> None:
        for _ in self._answer():
            pass

    def _answer(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the number of the rule and the times of each match."""
        from CEP import CEP
        from stream.Stream import OutputStream

        found = OutputStream()
        CEP([self._pattern(types) for types in self.rules]).run(_input(self.events), found, _formatter())
        for match in found:
            # a single pattern has no number; those of several count from 1
            for number in match.pattern_ids or [1]:
                yield number - 1, [event.payload["ts"] for event in match.events]

    def _pattern(self, types: tuple[str, ...]) -> Any:
        """Return the pattern of three rising events of one key."""
        from base.Pattern import Pattern
        from base.PatternStructure import PrimitiveEventStructure, SeqOperator
        from condition.BaseRelationCondition import EqCondition, SmallerThanCondition
        from condition.CompositeCondition import AndCondition
        from condition.Condition import Variable

        keys = [Variable(name, self._key) for name in NAMES]
        values = [Variable(name, self._value) for name in NAMES]
        together = [EqCondition(*pair) for pair in zip(keys, keys[1:], strict=False)]
        rising = [SmallerThanCondition(*pair) for pair in zip(values, values[1:], strict=False)]
        sequence = SeqOperator(*(PrimitiveEventStructure(kind, name) for kind, name in zip(types, NAMES, strict=True)))
        return Pattern(sequence, AndCondition(*together, *rising), timedelta(milliseconds=self.job.window))

    def _key(self, payload: dict[str, Any]) -> Any:
        return payload[self.job.key]

    def _value(self, payload: dict[str, Any]) -> Any:
        return payload[self.job.value]


def _input(events: list[dict[str, Any]]) -> Any:
    """Return the events as a stream that ends."""
    from stream.Stream import InputStream

    class Rows(InputStream):
        def __init__(self) -> None:
            super().__init__()
            for event in events:
                self._stream.put(event)
            self.close()

    return Rows()


def _formatter() -> Any:
    """Return what reads the type and the time of an event."""
    from base.DataFormatter import DataFormatter, EventTypeClassifier

    class ByType(EventTypeClassifier):
        def get_event_type(self, event_payload: dict[str, Any]) -> str:
            return event_payload["type"]

    class Formatter(DataFormatter):
        def parse_event(self, raw_data: dict[str, Any]) -> dict[str, Any]:
            # it writes a number into what it gets
            return dict(raw_data)

        def get_event_timestamp(self, event_payload: dict[str, Any]) -> datetime:
            return BEGIN + timedelta(milliseconds=event_payload["ts"])

    return Formatter(ByType())


if __name__ == "__main__":
    serve(OpenCep)
