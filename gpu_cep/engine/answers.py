"""Answer plans of either kind with tables.

This is how every run begins and ends: it opens the budget, reads the columns and dispatches by kind.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from gpu_cep.engine.accounting.match_budget import Footprint, Spent, open_budget
from gpu_cep.engine.accounting.profile import UNREAD
from gpu_cep.engine.accounting.resources import ALL_CORES, Resources
from gpu_cep.engine.adaptive.choice import AlgorithmChooser
from gpu_cep.engine.adaptive.large_kernels import large_kernels
from gpu_cep.engine.events.matches import Rows
from gpu_cep.engine.events.own_events import WHOLE, refuse_slices
from gpu_cep.engine.events.reported import EVERY_MATCH, Reported
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import AS_GIVEN, Origin
from gpu_cep.engine.input.picked_rows import PickedRows
from gpu_cep.engine.input.read_tables import to_host
from gpu_cep.engine.intervals.results import interval_schema
from gpu_cep.engine.intervals.run import OrderChooser, find_situations, result_of_situations
from gpu_cep.engine.intervals.situations import events_in_contact
from gpu_cep.engine.intervals.statistics import order_choice
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.output.footprint import result_footprint
from gpu_cep.engine.output.result_tables import result_schema
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.run import EventRun, IntervalRun
from gpu_cep.engine.run import match_events
from gpu_cep.engine.timeouts import find_timeouts, rows_of_open_runs
from gpu_cep.engine.trials import find_timed
from gpu_cep.errors import FEWER_EVENTS, EventError, ending_in
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import AnyPlan, IntervalPlan
from gpu_cep.plan.timeouts import TIMEOUT
from gpu_cep_kernels.compile.large import compile_beside
from gpu_cep_kernels.compile.launch import threads_of

_PREPARING = ending_in(EventError, "preparing the events", FEWER_EVENTS)


def _no_result() -> Footprint:
    """Return what a run takes that makes no table."""
    return Footprint(0, 0)


def answer(
    plan: AnyPlan,
    table: pa.Table | ResidentTable | PickedRows,
    *,
    origin: Origin = AS_GIVEN,
    shared: EventColumns | None = None,
    reported: Reported = EVERY_MATCH,
    resources: Resources = ALL_CORES,
    choose_order: OrderChooser = order_choice,
    algorithms: AlgorithmChooser | None = None,
) -> pa.Table:
    """Run a plan over the events of `table`.

    Parameters
    ----------
    origin
        The input of which the table is a part; its types and row numbers are those of the result.
    shared
        The columns of the same table that other plans read, too. What does not depend on the plan is converted there.
    reported
        Which matches are reported.
    resources
        What the run may use, and what receives its counts.
    choose_order
        Chooses the first order in which situations are joined.
    algorithms
        Chooses the algorithm of each batch, and remembers that for later runs of the same plan (None: for this run only).

    Raises
    ------
    EventError
        The events are at fault.
    EngineUnavailable
        The plan asks for the GPU, which cannot be used, or whose memory does not suffice.
    UnsupportedError
        What is reported of a slice would depend on earlier slices.
    MatchLimitExceeded
        More matches or steps than the settings, or matches than memory, allow.
    """
    if reported.own != WHOLE:
        refuse_slices(plan)
    profile, threads = resources.profile or UNREAD, threads_of(resources.threads)
    with _PREPARING:
        columns = event_columns(plan, to_host(table) if _reads_on_host(plan) else table, origin, shared, threads)
    profile.add("events", len(columns))
    spent = resources.spent or Spent()
    with open_budget(plan.settings, lambda: result_footprint(plan, columns), resources.concurrent, spent) as budget:
        if isinstance(plan, IntervalPlan):
            situations = IntervalRun(plan, columns, (), reported, budget, threads, profile)
            find = partial(find_situations, choose_order=choose_order)
            return result_of_situations(situations, find_timed(situations, find, find))
        run = EventRun(plan, columns, matcher_tables(plan, columns), reported, budget, threads, profile)
        if plan.settings.kind == TIMEOUT:
            return find_timeouts(run)
        compile_beside(large_kernels(plan, run.tables), threads)
        return match_events(run, algorithms or AlgorithmChooser(plan.contenders))


def _reads_on_host(plan: AnyPlan) -> bool:
    """Return whether events that lie on a card are copied to the host: the CPU finds timeouts, and situations if it is asked to."""
    return plan.settings.kind == TIMEOUT if isinstance(plan, EventPlan) else plan.settings.engine == "cpu"


def open_run_rows(plan: EventPlan, table: pa.Table, threads: int | None) -> Rows | None:
    """Return the rows of `table` that runs without a match bind; raises as :func:`answer`.

    `plan` asks for them (:func:`gpu_cep.plan.timeouts.of_open_runs`).
    The rows ascend. None if an event which begins a match is among them.
    """
    used = threads_of(threads)
    columns = event_columns(plan, table, threads=used)
    with open_budget(plan.settings, _no_result, 1, Spent()) as budget:
        tables = matcher_tables(plan, columns)
        return rows_of_open_runs(EventRun(plan, columns, tables, EVERY_MATCH, budget, used, UNREAD))


def rows_in_contact(plan: IntervalPlan, table: pa.Table, contacts: int, threads: int | None) -> Rows:
    """Return the rows of `table` that are of open situations, or of others in contact with these; raises as :func:`answer`."""
    used = threads_of(threads)
    columns = event_columns(plan, table, threads=used)
    with open_budget(plan.settings, _no_result, 1, Spent()) as budget:
        return events_in_contact(plan, IntervalRun(plan, columns, (), EVERY_MATCH, budget, used, UNREAD), contacts)


def answer_schema(plan: AnyPlan, schema: pa.Schema) -> pa.Schema:
    """Return the schema of a plan's result over events of `schema`.

    Raises as :func:`gpu_cep.engine.output.result_tables.result_schema`.
    """
    return interval_schema(plan, schema) if isinstance(plan, IntervalPlan) else result_schema(plan, schema)


def has_matches(plan: AnyPlan, found: pa.Table) -> bool:
    """Return whether `found`, the result of a plan, holds a match."""
    # only a count without stream keys has a row for no matches
    return found.num_rows > 0 and (plan.settings.output != "count" or found.column("count")[0].as_py() > 0)
