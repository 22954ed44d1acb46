"""The road through the engine: columns → labels → streams → matches → table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from gpu_cep.engine.batches import cut_batches
from gpu_cep.engine.budget import Budget, BudgetExceeded, memory_for_results
from gpu_cep.engine.by_frequency import ByFrequency
from gpu_cep.engine.columns import EventColumns
from gpu_cep.engine.footprint import result_footprint
from gpu_cep.engine.keys import encode_keys
from gpu_cep.engine.labels import label_events
from gpu_cep.engine.lazy_chain import LazyChain
from gpu_cep.engine.matches import Indices, concatenated
from gpu_cep.engine.order import in_result_order, matches_by_stream
from gpu_cep.engine.patterns import matcher_tables
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.programs import tabulator
from gpu_cep.engine.results import count_table, match_table
from gpu_cep.engine.search import ConditionOverflow, Matcher, Search
from gpu_cep.engine.slices import WHOLE, TimeSlice
from gpu_cep.engine.streams import OrderedEvents, load_times, order_events
from gpu_cep.engine.two_phase import TwoPhase
from gpu_cep.errors import EventError, MatchLimitExceeded
from gpu_cep.plan.plan import Plan
from gpu_cep_kernels.launch import available_threads, spread

# Sums of match counts are exact in int64 below this bound, whatever the rounding of the float sum that is compared with it.
_MOST_MATCHES = 2.0**62

_LESS_MEMORY = "use output='count' or a narrower pattern"

_MATCHERS: dict[str, Callable[[Search], Matcher]] = {"ses_automaton": TwoPhase, "lazy_chain": LazyChain, "by_frequency": ByFrequency}


def execute(
    plan: Plan,
    table: pa.Table,
    *,
    own: TimeSlice = WHOLE,
    threads: int | None = None,
    profile: Profile | None = None,
    concurrent: int = 1,
) -> pa.Table:
    """Run `plan` over the events of `table`.

    Parameters
    ----------
    own
        Report only the matches that start in this slice of time; what its
        successor needs, :func:`gpu_cep.engine.slices.events_to_keep` tells.
    threads
        Threads to use; None: all cores that the process may use.
    profile
        Receives the counts and seconds of each stage.
    concurrent
        How many such runs share this machine's memory (the tasks of a Spark executor's host).

    Raises
    ------
    EventError
        The events are at fault.
    MatchLimitExceeded
        More matches or steps than the settings, or matches than memory, allow.
    """
    profile = profile or Profile()
    threads = threads or available_threads()
    columns = EventColumns(table, plan.query, plan.dictionaries)
    profile.add("events", len(columns))
    ordered = _ordered(plan, columns, threads, profile)
    settings = plan.settings
    budget = Budget(settings.max_matches, settings.max_steps, result_footprint(plan, columns), memory_for_results(concurrent))
    search = Search(plan, matcher_tables(plan, tabulator(columns)), ordered, budget, profile, own)
    # only the two-phase strategy goes from start to start
    matcher = _MATCHERS[plan.algorithm](search) if own == WHOLE else TwoPhase(search)
    batches = cut_batches(plan, ordered)
    try:
        if settings.output == "count":
            return _counted(plan, columns, ordered, spread(matcher.count, batches, threads))
        found = concatenated(spread(matcher.find, batches, threads), len(plan.query.variables))
    except BudgetExceeded as exceeded:
        raise MatchLimitExceeded(f"{exceeded.reason}, in {_window_name(plan, columns, ordered, exceeded.start)}") from None
    except ConditionOverflow as overflow:
        condition = plan.conditions[overflow.condition].text
        raise EventError(f"integer overflow in {condition}, in {_window_name(plan, columns, ordered, overflow.start)}") from None
    except MemoryError:
        raise MatchLimitExceeded(f"out of memory while matching; {_LESS_MEMORY}") from None
    finally:
        budget.close()
    with profile.stage("results"):
        try:
            matches, streams = in_result_order(plan, columns, ordered, found)
            return match_table(plan, columns, ordered.rows, streams, matches)
        except MemoryError:
            number = f"{len(found):,} matches"
            raise MatchLimitExceeded(f"out of memory while building the result of {number}; {_LESS_MEMORY}") from None


def _ordered(plan: Plan, columns: EventColumns, threads: int, profile: Profile) -> OrderedEvents:
    with profile.stage("timestamps"):
        times = load_times(columns, plan.query.timestamp)
    with profile.stage("labels"):
        labelled = label_events(plan, columns, threads)
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.stream_keys)
    with profile.stage("order"):
        ordered = order_events(plan, columns, times, labelled, keys, threads)
    profile.add("filtered", len(ordered.rows))
    return ordered


def _counted(plan: Plan, columns: EventColumns, ordered: OrderedEvents, parts: list[tuple[Indices, Indices]]) -> pa.Table:
    """Matches per `partition_by` stream, of those that have any (of the one stream without keys, in any case)."""
    starts = np.concatenate([np.empty(0, np.int64), *(starts for starts, _ in parts)])
    totals = np.concatenate([np.empty(0, np.int64), *(totals for _, totals in parts)])
    if float(totals.sum(dtype=np.float64)) > _MOST_MATCHES:
        raise MatchLimitExceeded("the number of matches does not fit a 64-bit count")
    if plan.query.partition_by:
        return count_table(plan, columns, *matches_by_stream(plan, columns, ordered, starts, totals))
    return count_table(plan, columns, np.empty(0, np.int64), np.array([totals.sum()], np.int64))


def _window_name(plan: Plan, columns: EventColumns, ordered: OrderedEvents, start: int) -> str:
    """The stream and the window that start at an ordered event, for messages."""
    row = int(ordered.rows[start])
    keys = ", ".join(f"{columns.name(column)}={columns.arrow(column)[row].as_py()!r}" for column in plan.stream_keys)
    time = columns.arrow(plan.query.timestamp)[row].as_py()
    stream = f"stream {keys}" if keys else "the only stream"
    return f"the window that starts at {columns.name(plan.query.timestamp)}={time} (input row {row}) of {stream}"
