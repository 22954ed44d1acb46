"""Run phase 1 on the CPU: columns → labels → streams in order of time."""

from __future__ import annotations

from gpu_cep.engine.events.stream_keys import encode_keys_of_rows
from gpu_cep.engine.input.times import load_pieces_of_times
from gpu_cep.engine.phase_one.label_events import label_events, prepare_columns
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.engine.phase_one.rare_events import label_near_rare
from gpu_cep.engine.phase_one.run import PhaseOne, Run
from gpu_cep_kernels.compile.launch import threads_for


def order_on_cpu(run: Run) -> PhaseOne:
    """Return all labelled events in order; matchers judge their windows later, batch by batch.

    Raises
    ------
    EventError
        The events are at fault.
    """
    plan, columns, profile = run.plan, run.columns, run.profile
    threads = threads_for(len(columns), run.threads)
    profile.count_run("cpu")
    prepare_columns(run, (), (plan.query.timestamp, *plan.layout.columns), plan.stream_keys)
    with profile.stage("timestamps"):
        times = load_pieces_of_times(columns, plan.query.timestamp)
    with profile.stage("labels"):
        labelled = label_near_rare(plan, columns, run.tables, times, threads) or label_events(plan, columns, threads)
    with profile.stage("keys"):
        keys = encode_keys_of_rows(columns, plan.stream_keys, labelled.rows)
    with profile.stage("order"):
        ordered = order_events(plan, columns, times, labelled, keys, threads)
    profile.add("filtered", len(ordered.rows))
    return PhaseOne(ordered)
