"""What Spark's own metrics say of the road to the workers, once an action has finished: rows that scans gave, and rows shuffled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from pyspark.sql import SparkSession

# The nodes of a plan that read, and the metrics that count their rows and those of shuffles.
_SCANS = ("Scan", "BatchScan", "InMemoryTableScan", "LocalTableScan", "Range")
_GIVEN, _SHUFFLED = "number of output rows", "shuffle records written"
# Seconds that the metrics of an action that has ended may take to be put together, and those between two looks.
_PATIENCE, _GLANCE = 10.0, 0.05


def rows_on_the_road(session: SparkSession, observed: str, since: float) -> dict[str, int]:
    """Rows ``read`` and ``shuffled`` below what is observed under a name, in the first action on it that began at `since` or later.

    Empty if that has not come to its end in the time that listeners usually
    take, or is so long ago that Spark has forgotten it.
    """
    store = session._jsparkSession.sharedState().statusStore()
    end = time.monotonic() + _PATIENCE
    execution = first_execution(store, observed, since)
    while execution is not None and not execution.completionTime().isDefined() and time.monotonic() < end:
        time.sleep(_GLANCE)
        execution = first_execution(store, observed, since)
    if execution is None or not execution.completionTime().isDefined():
        return {}
    number = execution.executionId()
    graph, metrics = store.planGraph(number), store.executionMetrics(number)
    below = list(_below(graph, observed))
    read = [_metric(node, _GIVEN, metrics) for node in below if node.name().startswith(_SCANS)]
    return {"read": sum(read), "shuffled": sum(_metric(node, _SHUFFLED, metrics) for node in below if node.name() == "Exchange")}


def first_execution(store: Any, observed: str, since: float) -> Any:
    """The first query begun at `since` (seconds of the epoch) or later in whose plan something is observed under the name, if any."""
    known = store.executionsList()
    latest = (known.apply(place) for place in reversed(range(known.size())))
    # a session may have run a thousand before
    recent = takewhile(lambda execution: execution.submissionTime() >= 1000 * since, latest)
    found = [execution for execution in recent if observed in execution.physicalPlanDescription()]
    return found[-1] if found else None


def _below(graph: Any, observed: str) -> Iterator[Any]:
    """The nodes of a plan from which rows come to the one that observes them."""
    nodes = {node.id(): node for node in _items(graph.allNodes())}
    sources: dict[int, list[int]] = {}
    for edge in _items(graph.edges()):
        sources.setdefault(edge.toId(), []).append(edge.fromId())
    waiting = [number for number, node in nodes.items() if node.name() == "CollectMetrics" and observed in node.desc()]
    while waiting:
        for number in sources.get(waiting.pop(), ()):
            yield nodes[number]
            waiting.append(number)


def _metric(node: Any, name: str, metrics: Any) -> int:
    """What a node's metric of that name counted; Spark tells it as text with commas."""
    found = (metrics.get(metric.accumulatorId()) for metric in _items(node.metrics()) if metric.name() == name)
    return sum(int(value.get().replace(",", "")) for value in found if value.isDefined())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))
