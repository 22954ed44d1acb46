"""Plan queries over files that are matched slice of time by slice of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from gpu_cep.analysis.options import Options
from gpu_cep.engine.answers import answer_schema
from gpu_cep.engine.input.device.gpu_files import READ_THE_PATH
from gpu_cep.engine.input.device.resident import ResidentTable
from gpu_cep.engine.input.event_filter import wanted_events
from gpu_cep.engine.input.grouped_files import GroupedFiles
from gpu_cep.engine.input.sources import Source
from gpu_cep.engine.input.times import lacks_times
from gpu_cep.engine.slices.budget import AT_ONCE, FileReading, bring_into_slices, bytes_of, choose_cut, mebibytes
from gpu_cep.engine.slices.sliced_plan import SlicedPlan, SlicedRun, added_fields, reason_against, slice_settings, sliced_plan
from gpu_cep.engine.slices.untimed import refuse_known_missing
from gpu_cep.errors import Diagnostic, UnsupportedError
from gpu_cep.plan.columns_read import columns_read, narrow_settings
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan
from gpu_cep.queries.runs import MatchCall

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern

LONG_WINDOW = "the window is long, or row groups are large"


@dataclass(frozen=True, slots=True, eq=False)
class DecidedReading:
    """How a query reads `files`, once it is known to fit into memory.

    `whole`: the query's plan over the source. `settings`: those of a plan over the columns that are read.
    `choice`: whether they are read in slices; None if the query cannot be answered so, for the `reason`.
    """

    whole: AnyPlan
    settings: Settings
    files: GroupedFiles
    choice: FileReading | None
    reason: str | None = None

    @property
    def told(self) -> str:
        """Return how the files are read, in words, and by whom if others than Arrow read."""
        return "; ".join(filter(None, (self._how, self.files.told)))

    @property
    def _how(self) -> str:
        if self.choice is None:
            return f"files are read at once: the query cannot be answered by slices of time {self.reason}"
        return self.choice.told

    @property
    def is_cut(self) -> bool:
        """Return whether the files are read in slices."""
        return self.choice is not None and (self.choice.cut is not None or self.choice.rewrite is not None)


def plan_slices(call: MatchCall, source: Source) -> SlicedRun | None:
    """Return how a call's query is run over files slice by slice; None if the events are read at once.

    Raises
    ------
    UnsupportedError
        The call allows so little `memory` that the query cannot be answered.
    CepError
        Any error of the query, and EventError if the files cannot be read.
    """
    decided = decide_reading(call, source)
    return None if decided is None or not decided.is_cut else make_run(call, decided)


def decide_reading(call: MatchCall, source: Source) -> DecidedReading | None:
    """Return how a call's query reads files; None for other sources, and for few events, which are read at once.

    Raises as :func:`plan_slices`.
    """
    options, settings, memory = call.options, call.settings, call.memory
    if lacks_times(source.schema, options) or (memory is None and not source.is_large(settings.gpu_memory)):
        return None
    whole = make_plan(call.pattern, source.schema, options, settings)
    read = [source.schema.names[column] for column in columns_read(whole.query, settings)]
    files = source.group(read, source.schema.names[whole.query.timestamp], wanted_events(whole, source.schema))
    if files is None:
        return None
    narrow, against = narrow_settings(whole.settings, read), reason_against(whole, on_card=source.reader.on_card)
    if against is not None:
        refuse_beyond(memory, AT_ONCE * bytes_of(files.groups), f"it cannot be answered by slices of time {against}")
        return DecidedReading(whole, narrow, files, None, against)
    refuse_known_missing(whole, files)
    choice = choose_cut(files, whole, source.reader.most_bytes(memory, settings.gpu_memory))
    if source.reader.on_card and choice.rewrite is not None:
        message = (
            "gpu_files: the events do not fit the card's memory, or gpu_memory, and row groups are large or in no order of time, in "
            "which slices could be read"
        )
        raise UnsupportedError([Diagnostic(message, hint=READ_THE_PATH)])
    refuse_beyond(memory, choice.needed, LONG_WINDOW)
    return DecidedReading(whole, narrow, files, choice)


def make_run(call: MatchCall, decided: DecidedReading) -> SlicedRun:
    """Return the run over the slices that were decided on; raises as :func:`plan_slices`."""
    assert decided.choice is not None, "the files are cut"
    given = decided.files
    choice = bring_into_slices(decided.choice, decided.whole)
    refuse_beyond(call.memory, choice.needed, LONG_WINDOW)
    assert choice.cut is not None, "they are cut by now"
    plan = plan_over_slices(call.pattern, given.schema, call.options, decided.settings)
    return SlicedRun(plan, choice.files.compact(), choice.cut, given, threads=call.threads, profile=call.profile)


def refuse_large(table: pa.Table | ResidentTable, memory: int | None) -> None:
    """Raise UnsupportedError if events that were read at once take more memory than the caller allows."""
    if isinstance(table, pa.Table):
        refuse_beyond(memory, AT_ONCE * table.nbytes, "only Parquet files are read in slices of time")


def refuse_beyond(memory: int | None, needed: int, reason: str) -> None:
    """Raise UnsupportedError if a run needs more memory than the caller allows."""
    if memory is not None and needed > memory:
        message = f"the query needs about {mebibytes(needed)} for the events, more than memory={memory:,} bytes: {reason}"
        raise UnsupportedError([Diagnostic(message, hint=f"give memory='{mebibytes(needed)}', or files with smaller row groups")])


def plan_over_slices(pattern: Pattern, schema: pa.Schema, options: Options, settings: Settings) -> SlicedPlan:
    """Return the plan for slices of events of `schema`; raises any error of the query."""
    whole = make_plan(pattern, schema, options, settings)
    added = added_fields(whole, schema, {*schema.names, *answer_schema(whole, schema).names})
    plan = make_plan(pattern, pa.schema([*schema, *added]), options, slice_settings(settings, tuple(schema.names)))
    return sliced_plan(whole, plan, tuple(field.name for field in added))
