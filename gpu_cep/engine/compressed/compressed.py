"""Define the result of ``output="compressed"``: all matches as one table of nodes.

:class:`Compressed` enumerates and counts the matches of such a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_cep.engine.compressed.graph import NONE, Graph, moments
from gpu_cep.engine.compressed.path_graph import PathGraph
from gpu_cep.engine.compressed.path_samples import sample_paths
from gpu_cep.engine.compressed.paths import count_paths, each_path
from gpu_cep.engine.events.matches import Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.output.matched_events import MatchedEvents
from gpu_cep.engine.output.result_tables import result_schema
from gpu_cep.errors import EventError, PatternError
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.rules.tables import Ints

_NUMBERS = ("part", "node", "stream", "group", "position", "moment", "latest_start")


def node_table(plan: EventPlan, columns: EventColumns, ordered: OrderedEvents, carried: tuple[str, ...], graph: Graph) -> pa.Table:
    """Return the nodes of a graph as a table (see :class:`Compressed`); `carried` are the columns of an event."""
    number = len(graph.event)
    stream = np.searchsorted(ordered.offsets, graph.event, side="right") - 1
    rows = pa.array(ordered.rows[graph.event].astype(np.int64))
    names = pa.array([variable.name for variable in plan.query.positives], pa.string())
    fields = [pa.array(graph.range_first), pa.array(graph.range_last)]
    ranges = pa.StructArray.from_arrays(fields, names=["first", "last"])
    arrays = [
        *(columns.take(column, rows) for column in plan.query.partition_by),
        pa.array(np.zeros(number, np.int64)),
        pa.array(stream),
        pa.array(np.arange(number)),
        pa.array(graph.group),
        names.take(pa.array(graph.variable)),
        pa.array(graph.event),
        pa.array(moments(ordered, plan.query.ties == "strict")[graph.event]),
        pa.ListArray.from_arrays(pa.array(graph.range_offsets.astype(np.int32)), ranges),
        pa.array(graph.start),
        pa.array(graph.latest),
        pa.array(graph.earliest, mask=graph.earliest == NONE),
        columns.numbers_of(rows),
        MatchedEvents(columns, ordered.rows, _NO_MATCHES).structs(rows, carried),
    ]
    return pa.Table.from_arrays(arrays, schema=result_schema(plan, columns.schema))


def _held(value: pa.Scalar) -> Any:
    """Return a node's event or row number as Python holds it, or raise EventError if an event has a value that Python cannot hold."""
    try:
        return value.as_py()
    except (OverflowError, ValueError) as fault:
        raise EventError(f"an event has a value that Python cannot hold ({fault}); read row numbers by indices()") from fault


_NO_MATCHES = Matches(np.empty(0, np.int64), np.empty((0, 0), np.int32), np.empty(0, np.int64))


@dataclass(frozen=True)
class Compressed:
    """All matches of a query, as a graph of nodes that matches share.

    A node is an event bound to a variable. A match is a path. It leads from a node that ends a match
    back to a node that begins one, each time to one of the predecessors. Patterns with too many matches
    to list have few nodes: the number per event is bounded by the pattern alone.

    Get one from ``gpu_cep.match(…, output="compressed")``, or from a table of nodes.
    ``gpu_cep.gpu_match(…, output="compressed")`` gives such a table as a DataFrame. All of
    its parts, in any order, make one object again, and so do all rows of some streams.

    Parameters
    ----------
    table
        The nodes, a row each: the columns of `partition_by`, then

        ``part``, ``node``
            the Spark partition of the node (0 without Spark), and its number there;
        ``stream``
            the stream of its event, by number within the part;
        ``group``
            the variable and the state of the pattern that it stands for;
            −1 if every match is listed with nodes of its own;
        ``variable``
            the variable that its event is bound to;
        ``position``, ``moment``
            the number of its event, and the number of that event's time, in the order of events;
        ``predecessors``
            the nodes that may precede it, as ranges of numbers, both ends included;
        ``start``
            whether a match begins with it;
        ``latest_start``
            the latest position at which a path to it begins;
        ``earliest_start``
            the first position at which matches that end with it may begin; NULL if none ends with it;
        ``row``, ``event``
            the input row number (not under Spark), and the event.

    Notes
    -----
    After the shared versioned buffer of SASE+ (Agrawal et al., SIGMOD 2008)
    and the enumeration structure of CORE (Bucchi et al., VLDB 2022), whose
    union lists are ordered by the latest start as the ranges are here.
    """

    table: pa.Table

    @classmethod
    def from_table(cls, table: Any) -> Compressed:
        """Return the matches whose nodes `table` holds: an Arrow table, or anything with the Arrow C stream interface."""
        return cls(table if isinstance(table, pa.Table) else pa.table(table))

    def count(self) -> int:
        """Return the number of matches, without enumerating them."""
        return count_paths(self._graph)

    def matches(self) -> Iterator[dict[str, tuple[dict[str, Any], ...]]]:
        """Return each match once, when it is asked for: the events of each variable, as mappings of columns.

        The time between two matches depends on their lengths, not on the number of matches.
        """
        return self._bindings("event", each_path(self._graph))

    __iter__ = matches

    def indices(self) -> Iterator[dict[str, tuple[int, ...]]]:
        """Return the same as :meth:`matches`, with input row numbers instead of events.

        Raises
        ------
        EventError
            The table comes from Spark, where rows have no numbers.
        """
        self._check_rows()
        return self._bindings("row", each_path(self._graph))

    def sample(self, number: int, seed: int = 0) -> Iterator[dict[str, tuple[dict[str, Any], ...]]]:
        """Return so many different matches as :meth:`matches` does, drawn at random; all, if there are fewer.

        Every set of that size is as likely as another. Nothing else is enumerated, however many
        matches there are. The same `seed` gives the same matches.

        Raises
        ------
        PatternError
            `number` is not a whole number of at least 0.
        """
        return self._bindings("event", sample_paths(self._graph, _checked(number), seed))

    def sample_indices(self, number: int, seed: int = 0) -> Iterator[dict[str, tuple[int, ...]]]:
        """Return the same as :meth:`sample`, with input row numbers instead of events; raises as :meth:`indices`, too."""
        self._check_rows()
        return self._bindings("row", sample_paths(self._graph, _checked(number), seed))

    def __repr__(self) -> str:
        return f"Compressed({self.table.num_rows:,} nodes)"

    def _check_rows(self) -> None:
        if "row" not in self.table.column_names:
            raise EventError("the nodes have no row numbers, as under Spark; use matches() or sample()")

    def _bindings(self, column: str, paths: Iterable[list[int]]) -> Iterator[dict[str, tuple[Any, ...]]]:
        """Yield the match of each path, with the values of a column."""
        # convert values node by node: one match reads few nodes
        values, variables = self._nodes[column].combine_chunks(), self._nodes["variable"].combine_chunks().dictionary_encode()
        names, codes = variables.dictionary.to_pylist(), variables.indices.to_numpy()
        for path in paths:
            bound: dict[str, list[Any]] = {}
            for node in path:
                bound.setdefault(names[codes[node]], []).append(_held(values[node]))
            yield {variable: tuple(events) for variable, events in bound.items()}

    @cached_property
    def _nodes(self) -> pa.Table:
        """Return the table of nodes, sorted by part and node number."""
        part, node = (_numbers(self.table, name) for name in ("part", "node"))
        return self.table.take(pa.array(np.lexsort([node, part])))

    @cached_property
    def _graph(self) -> PathGraph:
        """Return the graph of the nodes of the table; raise EventError if some that others lead to are missing."""
        part, node, stream, group, position, moment, latest = (_numbers(self._nodes, name) for name in _NUMBERS)
        ranges = self._nodes["predecessors"].combine_chunks()
        sizes = ranges.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        owner = np.repeat(part, sizes)
        bounds = [ranges.flatten().field(name).to_numpy(zero_copy_only=False).astype(np.int64) for name in ("first", "last")]
        first, last = (_rows_of_nodes(part, node, owner, wanted) for wanted in bounds)
        if not np.array_equal(last - first, bounds[1] - bounds[0]):
            raise EventError("nodes are missing from the table of a compressed result: a stream's nodes belong together")
        ends = self._nodes["earliest_start"].fill_null(NONE).to_numpy().astype(np.int64)
        # nodes of trees have no group, and groups of two parts may have one number
        groups = np.where(group < 0, NONE, _ranks(part, group))
        return PathGraph(
            stream=_ranks(part, stream), group=groups, event=position, moment=moment,
            range_offsets=offsets(sizes), range_first=first, range_last=last,
            start=self._nodes["start"].to_numpy().astype(np.bool_), latest=latest, earliest=ends,
        )  # fmt: skip


def _checked(number: object) -> int:
    """Return a number of matches; raise PatternError if it is none."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise PatternError(f"a number of matches is a whole number of at least 0, not {number!r}")
    return number


def _numbers(table: pa.Table, name: str) -> Ints:
    return np.asarray(table[name].to_numpy(), np.int64)


def _rows_of_nodes(part: Ints, node: Ints, owner: Ints, wanted: Ints) -> Ints:
    """Return the table rows of the nodes `wanted`, where ``owner[i]`` is the part of ``wanted[i]``.

    `part` and `node` identify each row of the table, which is sorted by them.
    """
    distinct = np.unique(part)
    span = int(node.max(initial=0)) + 1
    keys, looked_for = np.searchsorted(distinct, part) * span + node, np.searchsorted(distinct, owner) * span + wanted
    places = np.minimum(np.searchsorted(keys, looked_for), max(len(keys) - 1, 0))
    if not np.array_equal(keys[places], looked_for):
        raise EventError("nodes are missing from the table of a compressed result: a stream's nodes belong together")
    return places.astype(np.int64)


def _ranks(*columns: Ints) -> Ints:
    """Return, for each row of the columns, the rank of its value among the distinct ones."""
    return np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)[1].ravel().astype(np.int64)
