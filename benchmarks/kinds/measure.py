"""Timings of one kind of question: its C++ loop, and the library in all forms, in turns in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.baselines.measure import Disagreement
from benchmarks.kinds.agreement import check_rows
from benchmarks.kinds.events import make, plain_types, streams_of
from benchmarks.kinds.forms import BASE, FORMS, PLAIN_TYPES, TABLES, Form, forms_of
from benchmarks.kinds.loops import Loop, loop_of
from benchmarks.kinds.questions import Asking, Kind
from gpu_cep.keywords import make_options
from gpu_cep.plan.columns_read import columns_read
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

LOOP, LOOP_OF_TEXT, TWO_LOOPS = "C++", "C++, plain types", "C++, two at once"
# So often in each turn is timed what takes two cores, of which one may be busy with other work.
_TRIES_OF_TWO = 3
# Arrow's copy of all columns of the events that matches bind.
TAKEN = "rows taken"


@dataclass(frozen=True, slots=True)
class ShortestTimes:
    """The shortest time of some runs, on the clock and on the processors."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class KindTimes:
    """What one kind took, by the forms of the library and by the loops; `chunks` are those of the table of the base form.

    `stages` are the seconds of each stage in the base form. `floor` are those of copying the columns that the query reads, and the rows
    that come of it.
    """

    kind: str
    asked: str
    query: str
    options: Asking
    events: int
    streams: int
    chunks: int
    matches: int
    seconds: dict[str, ShortestTimes]
    stages: dict[str, float]
    floor: float

    def ratio(self, form: str, clock: str = "wall") -> float | None:
        """Return the time of the loop in multiples of the library's, None where the form does not suit the kind."""
        if form not in self.seconds:
            return None
        loop = LOOP_OF_TEXT if form == PLAIN_TYPES else LOOP
        return float(getattr(self.seconds[loop], clock) / getattr(self.seconds[form], clock))

    @property
    def second_core(self) -> float:
        """Return how much two loops at once do in the time of one: what two threads may gain on this machine."""
        return 2 * self.seconds[LOOP].wall / self.seconds[TWO_LOOPS].wall


@dataclass(frozen=True, slots=True)
class Contestant:
    """A call that is timed `tries` times in each turn; its answer is handed to `drop` afterwards, untimed."""

    run: Callable[[], object]
    drop: Callable[[object], None] = lambda answer: None
    tries: int = 1


def measured(kind: Kind, events: int, repeats: int) -> KindTimes:
    """Check `kind` and time it over so many events."""
    whole = make(kind.workload, kind.shape, events)
    forms = forms_of(kind)
    tables = {name: TABLES[name](whole) for name in {form.table for form in forms.values()}}
    loops = {LOOP: loop_of(kind, whole)} | ({LOOP_OF_TEXT: loop_of(kind, plain_types(whole))} if kind.labels else {})
    matches = check(kind, tables, loops)
    contestants = {name: _of_loop(loop) for name, loop in loops.items()}
    contestants |= {name: _of_form(kind, form, tables[form.table]) for name, form in forms.items()}
    contestants[TAKEN] = _of_rows(kind, tables[FORMS[BASE].table])
    seconds = dict(zip(contestants, in_turns(list(contestants.values()), repeats), strict=True))
    # last: memory that other threads gave back is new again to what follows
    seconds[TWO_LOOPS] = in_turns([_of_two(loops[LOOP])], repeats)[0]
    base = tables[FORMS[BASE].table]
    streams, chunks = streams_of(kind.workload, events), base["ts"].num_chunks
    where = stages_of(kind, base, repeats), floor_of(kind, base, repeats)
    return KindTimes(kind.name, kind.asked, kind.text(events), kind.options, events, streams, chunks, matches, seconds, *where)


def stages_of(kind: Kind, events: pa.Table, repeats: int) -> dict[str, float]:
    """Return the seconds of each stage in the base form, of the run that was the shortest in all."""
    runs = []
    for _ in range(repeats):
        profile = gpu_cep.Profile()
        FORMS[BASE].answer(kind, events, profile)
        runs.append(dict(profile.seconds))
    return min(runs, key=lambda seconds: sum(seconds.values()))


def floor_of(kind: Kind, events: pa.Table, repeats: int) -> float:
    """Return the seconds in which the columns that the query reads, and the rows of its matches, are copied."""
    answer = FORMS[BASE].answer(kind, events)
    plan = make_plan(kind.text(len(events)), events.schema, make_options(detect=kind.detect), Settings(output="indices"))
    read = [events.column(number) for number in columns_read(plan.query, plan.settings)]
    held = [np.frombuffer(buffer, np.uint8) for column in (*read, *answer.columns) for buffer in _buffers(column)]
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for own in held:
            own.copy()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def _buffers(column: pa.ChunkedArray) -> Iterator[pa.Buffer]:
    """Yield the values of a column, as far as they are numbers or codes."""
    for chunk in column.chunks:
        values = chunk.indices if pa.types.is_dictionary(chunk.type) else chunk
        yield from (buffer for buffer in values.buffers() if buffer is not None and buffer.size)


def check(kind: Kind, tables: Mapping[str, pa.Table], loops: Mapping[str, Loop]) -> int:
    """Raise Disagreement unless the loop finds the rows of the base form and all find as many matches; return how many."""
    matches = loops[LOOP].count()
    base = FORMS[BASE]
    check_rows(kind, base.answer(kind, tables[base.table]), loops[LOOP].rows())
    counts = {name: loop.count() for name, loop in loops.items()}
    counts |= {name: form.count(form.answer(kind, tables[form.table])) for name, form in forms_of(kind).items()}
    if set(counts.values()) != {matches}:
        raise Disagreement(f"{kind.name}: {counts}")
    return matches


def in_turns(contestants: Sequence[Contestant], repeats: int) -> list[ShortestTimes]:
    """Return the shortest times of each contestant; they take turns, so that other work of the machine slows all of them alike."""
    taken: list[list[ShortestTimes]] = [[] for _ in contestants]
    for _ in range(repeats):
        for own, contestant in zip(taken, contestants, strict=True):
            own.extend(_timed(contestant) for _ in range(contestant.tries))
    return [ShortestTimes(min(each.wall for each in own), min(each.cpu for each in own)) for own in taken]


def _timed(contestant: Contestant) -> ShortestTimes:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = contestant.run()
    found = ShortestTimes(time.perf_counter() - wall, time.process_time() - cpu)
    contestant.drop(answer)
    return found


def _of_loop(loop: Loop) -> Contestant:
    def free(found: object) -> None:
        if isinstance(found, int):
            loop.free(found)

    return Contestant(loop.run, free)


def _of_two(loop: Loop) -> Contestant:
    """Return the loop in two threads, each over all events."""
    pool = ThreadPoolExecutor(2)

    def run() -> list[int]:
        return list(pool.map(lambda _: loop.run(), range(2)))

    def free(found: object) -> None:
        if isinstance(found, list):
            for own in found:
                loop.free(own)

    return Contestant(run, free, _TRIES_OF_TWO)


def _of_rows(kind: Kind, events: pa.Table) -> Contestant:
    """Return Arrow's take of the rows of all matches, from each column in one chunk, which is made before."""
    answer = FORMS[BASE].answer(kind, events).combine_chunks()
    bound = [each.flatten() if pa.types.is_list(each.type) else each for column in answer.columns for each in column.chunks]
    rows = [own.drop_null() for own in bound]
    columns = [column.chunk(0) for column in events.unify_dictionaries().combine_chunks().columns]
    return Contestant(lambda: [column.take(own) for own in rows for column in columns])


def _of_form(kind: Kind, form: Form, events: pa.Table) -> Contestant:
    return Contestant(lambda: form.answer(kind, events), tries=1 if form.threads == 1 else _TRIES_OF_TWO)
