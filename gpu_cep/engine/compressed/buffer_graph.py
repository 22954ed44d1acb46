"""Turn the buffer of an NFA^b pass into a graph of all matches.

It serves patterns whose conditions relate events, so that labels alone do not decide matches.
The graph is built only if every path through the buffer that ends a match is a match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_cep.engine.compressed.graph import NONE, Graph, graph_windows, join_graphs
from gpu_cep.engine.events.batches import Batch
from gpu_cep.engine.events.matches import Indices
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.matchers.nfab.buffer_counts import every_path_matches
from gpu_cep.engine.matchers.nfab.nfab import BatchBuffer, BufferTooLarge, build_buffer
from gpu_cep.engine.matchers.search import Search
from gpu_cep.engine.windows.candidates import match_windows
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.nfab.match_buffer import MatchBuffer, mark_used_nodes
from gpu_cep_kernels.rules.scalars import UNBOUNDED

# A buffer with more nodes is abandoned. If runs share nothing, it holds all partial matches, which a tree of matches does not.
_NODES_PER_EVENT, _NODES_AT_ALL = 64, 1 << 20


def may_share_buffer(plan: EventPlan) -> bool:
    """Return whether NFA^b follows the plan's strategy and no two branches find the same match."""
    return plan.strategy != "robust_skip_till_next_match" and plan.finds_once


def buffer_graph(searches: tuple[Search, ...], batch: Batch) -> Graph | None:
    """Return the graph of all matches that start in the batch, or None.

    It is None if some path through the buffer is no match, or if the buffer grows too large.
    """
    if not all(every_path_matches(search) for search in searches):
        return None
    most = max(_NODES_PER_EVENT * (batch.high - batch.low), _NODES_AT_ALL)
    windows = match_windows(searches[0].plan, searches[0].ordered, batch, searches[0].profile)
    try:
        grown = [build_buffer(search, batch, windows, most) for search in searches]
    except BufferTooLarge:
        return None
    # a match that ends with its window may go on in a later window, so the node alone does not tell whether a match ends
    if any((each.ends.last_start != UNBOUNDED).any() for each in grown):
        return None
    return join_graphs([_graph(search, batch, buffer) for search, buffer in zip(searches, grown, strict=True)])


def unite_batches(plan: EventPlan, ordered: OrderedEvents, parts: Sequence[Graph | None]) -> Graph | None:
    """Return one graph of all batches; None if some batch has no graph, or if there is no batch."""
    graphs = [part for part in parts if part is not None]
    if not graphs or len(graphs) < len(parts):
        return None
    graph = join_graphs(graphs)
    earliest = graph_windows(plan, ordered, WHOLE).earliest[graph.event]
    return replace(graph, earliest=np.where(graph.earliest == NONE, NONE, earliest))


def _graph(search: Search, batch: Batch, grown: BatchBuffer) -> Graph:
    """Return the graph of the buffer's nodes from which some match ends can be reached.

    Each run is a group of nodes. A link leads to all nodes that a run had when the link was made.
    """
    buffer = grown.buffer
    nodes = len(buffer.event)
    used, run_used = np.zeros(nodes, np.bool_), np.zeros(nodes, np.bool_)
    used[grown.ends.node] = True
    mark_used_nodes(buffer, used, run_used)
    run = _first_nodes(buffer)
    order = np.lexsort([np.arange(nodes), run])
    order = order[used[order]]
    number = np.full(nodes, NONE)
    number[order] = np.arange(len(order))
    firsts, group = np.unique(run[order], return_inverse=True)
    base = np.searchsorted(group, np.arange(len(firsts)))
    owner, head = _links(buffer, order)
    group_of = np.full(nodes, NONE)
    group_of[order] = group
    earliest = np.full(nodes, NONE)
    earliest[grown.ends.node] = batch.low
    return Graph(
        event=buffer.event[order] + batch.low,
        variable=np.array(search.tables.branch.positives, np.int64)[buffer.bound_to[order]],
        group=group.astype(np.int64),
        range_offsets=offsets(np.bincount(owner, minlength=len(order))),
        range_first=base[group_of[head]],
        range_last=number[head],
        start=buffer.start[order],
        latest=buffer.latest[order] + batch.low,
        earliest=earliest[order],
    )


def _first_nodes(buffer: MatchBuffer) -> Indices:
    """Return for each node the first node of its run."""
    first = np.where(buffer.sibling < 0, np.arange(len(buffer.sibling)), buffer.sibling)
    while not np.array_equal(first, first[first]):
        first = first[first]
    return first


def _links(buffer: MatchBuffer, nodes: Indices) -> tuple[Indices, Indices]:
    """Return the links of the `nodes`, sorted by owner, as two arrays.

    They are the place of each link's owner among `nodes`, and the node that the link leads to.
    """
    places, link = np.arange(len(nodes)), buffer.link[nodes]
    owners, heads = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while len(places):
        places, link = places[link >= 0], link[link >= 0]
        owners.append(places)
        heads.append(buffer.node[link])
        link = buffer.next_link[link]
    owner, head = np.concatenate(owners), np.concatenate(heads)
    order = np.argsort(owner, kind="stable")
    return owner[order], head[order]
