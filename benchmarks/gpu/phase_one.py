"""Phase 1 alone on the device, over events in host memory or on the device, with its stages apart."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.baselines.measure import OUTPUTS, Case
from benchmarks.gpu.floors import PHASE_ONE_RATE, TRANSFER_SHARE, milliseconds, verdict
from benchmarks.workloads.questions import query_text
from gpu_cep.engine.accounting.match_budget import Budget, memory_for_results
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.events.reported import EVERY_MATCH
from gpu_cep.engine.input.device.foreign_arrays import open_array
from gpu_cep.engine.input.device.resident import AnyColumn, DeviceCodes, ResidentNumbers, ResidentTable, ResidentText
from gpu_cep.engine.lowering.pattern_tables import matcher_tables
from gpu_cep.engine.output.footprint import result_footprint
from gpu_cep.engine.phase_one.computed_columns import event_columns
from gpu_cep.engine.phase_one.device.on_device import phase_one_on_device
from gpu_cep.engine.phase_one.run import EventRun
from gpu_cep.keywords import make_options
from gpu_cep.plan.event_plan import EventPlan, Plan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.device.interface import Device

# Stages that are reported apart.
ORDERING = ("keys", "order")
BACK = ("matching", "candidates back")


@dataclass(frozen=True, slots=True)
class PhaseOneTime:
    """One run of phase 1; `transfer` is what its columns take to the device at the speed of pinned memory, 0 if they are there.

    `encoding` is what encoding plain text takes by itself, on one thread; targets are for text that is encoded.
    """

    workload: str
    source: str
    events: int
    seconds: float
    stages: dict[str, float]
    transfer: float
    encoding: float
    simulated: bool

    @property
    def ordering(self) -> float:
        return sum(self.stages.get(stage, 0.0) for stage in ORDERING)

    @property
    def back(self) -> float:
        """Return the seconds of reading matches off the windows, where labels decide them, and of fetching what is found."""
        return sum(self.stages.get(stage, 0.0) for stage in BACK)

    @property
    def alone(self) -> float:
        """Return the seconds without ordering, and without what comes back."""
        return self.seconds - self.ordering - self.back

    def cells(self) -> dict[str, str]:
        rate, share = self.events / self.alone, self.transfer / self.alone
        target = (share, TRANSFER_SHARE, ".0%") if self.transfer else (rate, PHASE_ONE_RATE, ".0e")
        return {
            "workload": self.workload,
            "events in": self.source,
            "events": f"{self.events:,}",
            "phase 1": milliseconds(self.alone),
            "events/s": f"{rate / 1e6:,.0f} M",
            "of transfer speed": f"{share:.0%}" if self.transfer else "",
            "target": verdict(*target, meaningful=not self.simulated and not self.encoding),
            "ordering": milliseconds(self.ordering),
            "matches and candidates back": milliseconds(self.back),
            "encoding of text": milliseconds(self.encoding) if self.encoding else "",
            "stages": ", ".join(f"{stage} {milliseconds(seconds)}" for stage, seconds in self.stages.items()),
        }


def plan_of(case: Case, schema: pa.Schema, output: str) -> EventPlan:
    """Return the plan of a case's query, for the GPU."""
    query = query_text(case.workload, case.streams, case.window_factor)
    options = make_options(partition_by=case.workload.key)
    plan = make_plan(query, schema, options, Settings(output=OUTPUTS[output], engine="gpu"))
    assert isinstance(plan, EventPlan), case.workload.name
    return plan


def time_phase_one(plan: EventPlan, table: pa.Table | ResidentTable, device: Device) -> tuple[float, dict[str, float]]:
    """Return seconds of phase 1 and of its stages, in one run."""
    columns = event_columns(plan, table)
    budget = Budget(None, None, lambda: result_footprint(plan, columns), lambda: memory_for_results(1))
    run = EventRun(plan, columns, matcher_tables(plan, columns), EVERY_MATCH, budget, available_threads(), Profile())
    begin = time.perf_counter()
    found = phase_one_on_device(run, device)
    device.synchronize()
    spent = time.perf_counter() - begin
    # its pages go back to the system, which is no part of phase 1
    del found
    return spent, run.profile.seconds


def transferred_bytes(plan: Plan, table: pa.Table) -> int:
    """Return bytes of the columns that phase 1 reads, text as codes."""
    names = [plan.query.schema.attributes[column].name for column in plan.bulk_columns]
    return sum(_row_bytes(table.schema.field(name).type) for name in names) * len(table)


def _row_bytes(kind: pa.DataType) -> int:
    stored = kind.index_type if pa.types.is_dictionary(kind) else kind
    return 4 if pa.types.is_string(stored) else int(stored.bit_width) // 8


def on_device(table: pa.Table, device: Device) -> ResidentTable:
    """Return the events on the device, text as dictionary codes; they have no NULLs."""
    return ResidentTable(device, {name: _column(device, name, table[name].chunk(0)) for name in table.column_names})


def _column(device: Device, name: str, array: pa.Array) -> AnyColumn:
    if pa.types.is_string(array.type):
        array = array.dictionary_encode()
    if not pa.types.is_dictionary(array.type):
        return ResidentNumbers(device, name, open_array(device, device.upload(array.to_numpy()), name))
    codes = DeviceCodes(device.upload(array.indices.to_numpy().astype(np.int32)), array.dictionary)
    return ResidentText(device, array.type, len(array), array.nbytes, lambda: codes, None)
