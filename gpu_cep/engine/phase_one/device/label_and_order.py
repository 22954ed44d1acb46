"""Label events on a device, and put those that are kept in order of stream and time; what it has no room for goes to the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_cep.engine.events.label_words import Words
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.stream_keys import encode_keys
from gpu_cep.engine.input.device.uploads import load
from gpu_cep.engine.input.times import load_pieces_of_times, refuse_missing
from gpu_cep.engine.phase_one.device.card_memory import DeviceMemory, bytes_of_branches
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.device.device_run import DeviceRun
from gpu_cep.engine.phase_one.device.event_sources import EventSource, ResidentEvents, SpilledEvents
from gpu_cep.engine.phase_one.device.kept_events import KeptEvents, concatenate_kept, count_kept
from gpu_cep.engine.phase_one.device.label_engine import plan_labelling
from gpu_cep.engine.phase_one.device.label_events import label_chunks
from gpu_cep.engine.phase_one.device.order_events import DeviceEvents, order_on_device
from gpu_cep.engine.phase_one.device.stream_codes import encode_streams
from gpu_cep.engine.phase_one.label_events import LabelledRows
from gpu_cep.engine.phase_one.order_events import order_events
from gpu_cep.plan.event_plan import Plan
from gpu_cep_kernels.compile.launch import blocks
from gpu_cep_kernels.device.interface import Device
from gpu_cep_kernels.device.primitives import sum_as
from gpu_cep_kernels.rules.tables import Places


def label_and_order(run: DeviceRun, memory: DeviceMemory) -> EventSource:
    """Return the labelled events in order.

    They are on the device if all that are kept fit there, else on the host. If none are kept, the
    result is on the host, too.
    """
    plan, columns, device, profile = run.plan, run.columns, run.device, run.profile
    device_columns = DeviceColumns(columns, device)
    with profile.stage("labels"):
        labelling = plan_labelling(plan, device_columns)
        tables = labelling.takes.tables + bytes_of_branches(run.tables)
        chunk_rows = memory.chunk_rows(replace(labelling.takes, tables=tables))
    with profile.stage("timestamps"):
        _refuse_null_times(plan, device_columns, chunk_rows)
    kept: list[KeptEvents] = []
    spilled: list[tuple[Places, Words]] = []
    with profile.stage("labels"):
        for part in label_chunks(plan, device_columns, labelling.steps, chunk_rows):
            kept.append(part)
            if spilled or count_kept(kept) > memory.kept_events:
                spilled += _download_kept(device, kept)
                kept.clear()
        if not count_kept(kept):
            spilled += _download_kept(device, kept)
    if spilled:
        return SpilledEvents(plan, columns, _order_on_host(run, spilled), device, run.threads)
    return ResidentEvents(plan, columns, _order_on_device(run, kept, memory), device, memory.bound_events, run.threads)


def _order_on_device(run: DeviceRun, kept: list[KeptEvents], memory: DeviceMemory) -> DeviceEvents:
    """Return the events of all parts in order, on the device; `kept` is emptied."""
    plan, columns, device, profile = run.plan, run.columns, run.device, run.profile
    with profile.stage("keys"):
        all_kept = concatenate_kept(device.xp, kept)
        kept.clear()
        streams = encode_streams(plan, columns, all_kept, device, memory.ranked_values)
    with profile.stage("order"):
        return order_on_device(plan, columns, all_kept, streams, device)


def _download_kept(device: Device, parts: Sequence[KeptEvents]) -> list[tuple[Places, Words]]:
    """Return rows and labels of the parts on the host."""
    return [(device.download(part.rows), device.download(part.labels)) for part in parts]


def _refuse_null_times(plan: Plan, columns: DeviceColumns, chunk_rows: int) -> None:
    """Raise EventError if a timestamp is NULL."""
    column = plan.query.timestamp
    present = columns.present(column)
    if present is not None:
        chunks = blocks(0, len(columns.columns), chunk_rows)
        known = (flags for chunk in chunks for flags in load(columns.device, [present], *chunk))
        refuse_missing(columns.columns, column, "NULL", sum(int(sum_as(np.int64, flags == 0)) for flags in known))


def _order_on_host(run: DeviceRun, spilled: list[tuple[Places, Words]]) -> OrderedEvents:
    """Return the labelled events in order, by the same steps as on the CPU."""
    plan, columns, profile = run.plan, run.columns, run.profile
    with profile.stage("keys"):
        keys = encode_keys(columns, plan.stream_keys)
    with profile.stage("order"):
        times = load_pieces_of_times(columns, plan.query.timestamp)
        return order_events(plan, columns, times, LabelledRows.of(spilled), keys, run.threads)
