"""What Spark's own metrics say of the road to the workers, once an action has finished: rows that scans gave, and rows shuffled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

# The nodes of a plan that read, and the metrics that count their rows and those of shuffles.
_SCANS = ("Scan", "BatchScan", "InMemoryTableScan", "LocalTableScan", "Range")
_GIVEN, _SHUFFLED = "number of output rows", "shuffle records written"
# Seconds that the metrics of an action that has ended may take to be put together, and those between two looks.
_PATIENCE, _GLANCE = 10.0, 0.05


def rows_on_the_road(session: SparkSession, observed: str) -> dict[str, int]:
    """Rows ``read`` and ``shuffled`` below what is observed under a name, in the last action on it.

    Empty if that has not come to its end in the time that listeners usually
    take, or is so long ago that Spark has forgotten it.
    """
    store = session._jsparkSession.sharedState().statusStore()
    end = time.monotonic() + _PATIENCE
    execution = _execution(store, observed)
    while execution is not None and not execution.completionTime().isDefined() and time.monotonic() < end:
        time.sleep(_GLANCE)
        execution = _execution(store, observed)
    if execution is None or not execution.completionTime().isDefined():
        return {}
    number = execution.executionId()
    graph, metrics = store.planGraph(number), store.executionMetrics(number)
    below = list(_below(graph, observed))
    read = [_counted(node, _GIVEN, metrics) for node in below if node.name().startswith(_SCANS)]
    return {"read": sum(read), "shuffled": sum(_counted(node, _SHUFFLED, metrics) for node in below if node.name() == "Exchange")}


def _execution(store: Any, observed: str) -> Any:
    """The last query in whose plan something is observed under the name, if Spark remembers one."""
    known = store.executionsList()
    latest = (known.apply(place) for place in reversed(range(known.size())))
    return next((execution for execution in latest if observed in execution.physicalPlanDescription()), None)


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


def _counted(node: Any, name: str, metrics: Any) -> int:
    """What a node's metric of that name counted; Spark tells it as text with commas."""
    found = (metrics.get(metric.accumulatorId()) for metric in _items(node.metrics()) if metric.name() == name)
    return sum(int(value.get().replace(",", "")) for value in found if value.isDefined())


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))
