"""Plans of either kind → tables: what is asked of events, and what is asked of situations."""

from __future__ import annotations

import pyarrow as pa

from gpu_cep.engine.accounting.budget import Spent
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.intervals.results import interval_schema
from gpu_cep.engine.intervals.run import execute_intervals
from gpu_cep.engine.output.result_tables import result_schema
from gpu_cep.engine.run import execute
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep.plan.interval_plan import IntervalPlan

AnyPlan = EventPlan | IntervalPlan


def answer(
    plan: AnyPlan,
    table: pa.Table | ResidentTable,
    *,
    own: Own = WHOLE,
    threads: int | None = None,
    profile: Profile | None = None,
    concurrent: int = 1,
    spent: Spent | None = None,
) -> pa.Table:
    """Run a plan over the events of `table`; the keywords, and what is raised, are those of :func:`gpu_cep.engine.run.execute`."""
    if isinstance(plan, IntervalPlan):
        return execute_intervals(plan, table, own=own, threads=threads, profile=profile, concurrent=concurrent, spent=spent)
    return execute(plan, table, own=own, threads=threads, profile=profile, concurrent=concurrent, spent=spent)


def answer_schema(plan: AnyPlan, schema: pa.Schema) -> pa.Schema:
    """The schema of a plan's result over events of `schema`; raises as :func:`gpu_cep.engine.output.result_tables.result_schema`."""
    return interval_schema(plan, schema) if isinstance(plan, IntervalPlan) else result_schema(plan, schema)
