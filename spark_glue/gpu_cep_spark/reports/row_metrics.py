"""Read from Spark's own metrics how many rows a finished action scanned and shuffled."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from pyspark.sql import SparkSession

from gpu_cep_spark.jvm import items

# The nodes of a Spark plan that read data, the metric that counts their rows, and the metric of shuffled rows.
_SCANS = ("Scan", "BatchScan", "InMemoryTableScan", "LocalTableScan", "Range")
_GIVEN, _SHUFFLED = "number of output rows", "shuffle records written"
_SUBQUERIES = ("Subquery", "ReusedSubquery")
# The most seconds to wait for the metrics of an action that has ended, and the seconds between two looks.
_PATIENCE, _GLANCE = 10.0, 0.05


def rows_read_and_shuffled(session: SparkSession, observed: str, since: float) -> dict[str, int]:
    """Return the numbers of rows ``read`` and ``shuffled`` by an action.

    It is the action that :func:`first_execution` finds. Only nodes of its plan below the
    observation count. The result is empty if Spark no longer keeps the action's metrics. It is also
    empty if they are not complete after :data:`_PATIENCE` seconds.
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
    """Return the first execution whose plan has the observation `observed`, None if there is none.

    It began at `since` (seconds of the epoch) or later.
    """
    known = store.executionsList()
    latest = (known.apply(place) for place in reversed(range(known.size())))
    # latest first, since a session may have run a thousand others before
    recent = takewhile(lambda execution: execution.submissionTime() >= 1000 * since, latest)
    found = [execution for execution in recent if observed in execution.physicalPlanDescription()]
    return found[-1] if found else None


def _below(graph: Any, observed: str) -> Iterator[Any]:
    """Yield the nodes of a plan whose rows reach the observation `observed`."""
    nodes = {node.id(): node for node in items(graph.allNodes())}
    sources: dict[int, list[int]] = {}
    for edge in items(graph.edges()):
        sources.setdefault(edge.toId(), []).append(edge.fromId())
    waiting = [number for number, node in nodes.items() if node.name() == "CollectMetrics" and observed in node.desc()]
    while waiting:
        # of a subquery a value is read, and its rows end there
        for number in (each for each in sources.get(waiting.pop(), ()) if not nodes[each].name().startswith(_SUBQUERIES)):
            yield nodes[number]
            waiting.append(number)


def _metric(node: Any, name: str, metrics: Any) -> int:
    """Return the value of a node's metric, 0 if there is none of that name."""
    found = (metrics.get(metric.accumulatorId()) for metric in items(node.metrics()) if metric.name() == name)
    return sum(int(value.get().replace(",", "")) for value in found if value.isDefined())
