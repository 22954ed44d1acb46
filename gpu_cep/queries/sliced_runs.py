"""Run a query over files slice by slice, and put the results together: the next slice is read while one is matched."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer, answer_schema, has_matches
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.events.reported import Reported
from gpu_cep.engine.events.settling import Borders
from gpu_cep.engine.input.absent_values import absent_values, asked_columns
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.input_events import Origin
from gpu_cep.engine.input.parquet_files import PartOfFiles
from gpu_cep.engine.input.time_cut import FileSlice
from gpu_cep.engine.output.readers import reader_of
from gpu_cep.engine.slices.assembly import SliceResult, drop_added, results_of_slices, whole_result
from gpu_cep.engine.slices.carried_events import events_behind, last_of_streams, nothing_of
from gpu_cep.engine.slices.disjoint import borders_of
from gpu_cep.engine.slices.loading import events_near, join_parts, load_ahead
from gpu_cep.engine.slices.sliced_plan import SlicedRun, add_columns
from gpu_cep.engine.slices.untimed import refuse_missing_of
from gpu_cep.errors import AbsentValueWarning, warn_caller


def run_slices(run: SlicedRun) -> pa.Table:
    """Return the result of a run over slices: that of a run over all events at once."""
    return whole_result(run.sliced, _results(run))


def read_slices(run: SlicedRun) -> pa.RecordBatchReader:
    """Return a reader of the result, of which each slice's rows are found when they are read."""
    schema = answer_schema(run.sliced.whole, run.files.schema)
    return reader_of(schema, (drop_added(run.sliced, table) for table in _results(run)))


def _results(run: SlicedRun) -> Iterator[pa.Table]:
    """Yield the results as slices decide them; warn at the end if there is none, and the query asks for a text that no event has."""
    some = False
    try:
        for table in results_of_slices(run.sliced, _found_in_slices(run), run.profile):
            some = some or has_matches(run.sliced.whole, table)
            yield table
    finally:
        run.files.close()
    for sentence in () if some else _absent_in_files(run):
        warn_caller(sentence, AbsentValueWarning)


def _found_in_slices(run: SlicedRun) -> Iterator[SliceResult]:
    """Yield what is found in each slice, in the order of time, with the end of the slice.

    Raises
    ------
    EventError
        The files cannot be read, or the events are at fault.
    CepError
        Any other error that :func:`gpu_cep.engine.answers.answer` raises.
    """
    slices, spent = run.cut.slices, Spent()
    if run.profile is not None:
        run.profile.add_slices(len(slices), run.cut.rows_read, int(run.given.all.rows.sum()))
        if run.files.counts is not None:
            run.profile.add_groups(run.files.counts.read, run.files.counts.all)
        run.profile.source = run.files.told or run.profile.source
    yield from (_situations if run.sliced.carries else _sequences)(run, spent)


def _sequences(run: SlicedRun, spent: Spent) -> Iterator[SliceResult]:
    """Yield what each slice has of matches of events."""
    for own, part in _slices_on_card(run) if run.files.reader.on_card else _slices_in_memory(run):
        table, origin = add_columns(run.sliced, part)
        columns = _columns_of(run, table)
        borders = borders_of(own) if run.sliced.takes else None
        found = _matched(run, own, columns, origin, spent, borders)
        # not held while the next one is awaited
        del part, table, columns, borders
        yield found, own.end


def _situations(run: SlicedRun, spent: Spent) -> Iterator[SliceResult]:
    """Yield what each slice has of matches of situations, of which some began before and some are seen to end far behind it."""
    carried = nothing_of(run.files)
    last = _last_of_all(run) if run.sliced.needs_later_events else carried
    for own, part in _slices_in_memory(run):
        all_there = join_parts(part.table.schema, carried, part, events_behind(run.sliced.whole, last, own))
        table, origin = add_columns(run.sliced, all_there)
        columns = _columns_of(run, table)
        found = _matched(run, own, columns, origin, spent)
        carried = last_of_streams(run.sliced.whole, columns, all_there, own.end)
        # not held while the next one is awaited
        del part, all_there, table, columns
        yield found, own.end


def _last_of_all(run: SlicedRun) -> PartOfFiles:
    """Return the last event of each stream in all files."""
    last = nothing_of(run.files)
    for _, part in _slices_in_memory(run):
        both = join_parts(part.table.schema, last, part)
        last = last_of_streams(run.sliced.whole, _columns_of(run, both.table), both, None)
    return last


def _slices_in_memory(run: SlicedRun) -> Iterator[tuple[FileSlice, PartOfFiles]]:
    """Yield each slice with the events that bear on its matches; the next slice is read meanwhile."""
    loads = load_ahead(run.files, (own.groups for own in run.cut.slices))
    for own in run.cut.slices:
        loaded = next(loads)
        refuse_missing_of(run.sliced.whole, run.given, loaded.part.table)
        yield own, events_near(run.sliced.whole, loaded.part, own)
        # not held while the next one is awaited
        del loaded


def _slices_on_card(run: SlicedRun) -> Iterator[tuple[FileSlice, PartOfFiles]]:
    """Yield each slice with the events of its row groups, which lie on the card, one slice at a time.

    Others than those that bear on its matches change nothing.
    """
    for own in run.cut.slices:
        part = run.files.read(own.groups, run.sliced.plan.settings.gpu_memory)
        refuse_missing_of(run.sliced.whole, run.given, part.table)
        yield own, part
        # not held while the next one is read
        del part


def _columns_of(run: SlicedRun, table: pa.Table) -> EventColumns:
    """Return the columns of events that a slice reads."""
    return EventColumns(table, run.sliced.plan.query, run.sliced.plan.dictionaries, threads=run.threads)


def _matched(
    run: SlicedRun, own: FileSlice, columns: EventColumns, origin: Origin, spent: Spent, borders: Borders | None = None
) -> pa.Table:  # fmt: skip
    """Return the matches that start in a slice, with the columns that are added."""
    reported = Reported(TimeSlice(own.begin, own.end), borders=borders)
    resources = Resources(run.threads, run.profile, spent=spent)
    return answer(run.sliced.plan, columns.table, origin=origin, shared=columns, reported=reported, resources=resources)


def _absent_in_files(run: SlicedRun) -> list[str]:
    """Return a sentence for each text that the query asks for and no event of the files has, as :func:`absent_values`."""
    query = run.sliced.whole.query
    asked = asked_columns(query)
    if not asked or not int(run.given.all.rows.sum()):
        return []
    distinct: dict[str, list[pa.Array]] = {name: [] for name in asked}
    for table in run.given.parts(run.given.all, asked):
        for name, held in distinct.items():
            held.append(_texts(table.column(name)))
    present = {name: pc.unique(pa.chunked_array(held)) for name, held in distinct.items()}
    rows = max(1, *(len(values) for values in present.values()))
    # columns of one length, of which NULLs count for nothing
    padded = {name: pa.concat_arrays([values, pa.nulls(rows - len(values), values.type)]) for name, values in present.items()}
    columns = [padded.get(name, pa.nulls(rows)) for name in run.files.schema.names]
    return absent_values(query, pa.table(columns, run.files.schema.names))


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """Return the distinct texts of a column."""
    distinct = pc.unique(column)
    return (distinct.dictionary_decode() if pa.types.is_dictionary(distinct.type) else distinct).cast(pa.large_string())
