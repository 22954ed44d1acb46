"""Timings of one kind of question: its C++ loop, and the library in all forms, in turns in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from benchmarks.baselines.measure import Disagreement
from benchmarks.kinds.agreement import check_rows
from benchmarks.kinds.events import make, plain_types, streams_of
from benchmarks.kinds.forms import BASE, FORMS, PLAIN_TYPES, TABLES, Form, forms_of
from benchmarks.kinds.loops import Loop, loop_of
from benchmarks.kinds.questions import Kind

LOOP, LOOP_OF_TEXT = "C++", "C++, plain types"


@dataclass(frozen=True, slots=True)
class Seconds:
    """The shortest time of some runs, on the clock and on the processors."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one kind took, by the forms of the library and by the loops; `chunks` are those of the table of the base form."""

    kind: str
    asked: str
    query: str
    options: dict[str, str]
    events: int
    streams: int
    chunks: int
    matches: int
    seconds: dict[str, Seconds]

    def ratio(self, form: str, clock: str = "wall") -> float | None:
        """The time of the loop in multiples of the library's, None where the form does not suit the kind."""
        if form not in self.seconds:
            return None
        loop = LOOP_OF_TEXT if form == PLAIN_TYPES else LOOP
        return float(getattr(self.seconds[loop], clock) / getattr(self.seconds[form], clock))


@dataclass(frozen=True, slots=True)
class Contestant:
    """A call that is timed, and what is done with its answer afterwards, untimed."""

    run: Callable[[], object]
    drop: Callable[[object], None] = lambda answer: None


def measured(kind: Kind, events: int, repeats: int) -> Measured:
    """Check `kind` and time it over so many events."""
    whole = make(kind.workload, kind.shape, events)
    forms = forms_of(kind)
    tables = {name: TABLES[name](whole) for name in {form.table for form in forms.values()}}
    loops = {LOOP: loop_of(kind, whole)} | ({LOOP_OF_TEXT: loop_of(kind, plain_types(whole))} if kind.labels else {})
    matches = check(kind, tables, loops)
    contestants = {name: _of_loop(loop) for name, loop in loops.items()}
    contestants |= {name: _of_form(kind, form, tables[form.table]) for name, form in forms.items()}
    seconds = dict(zip(contestants, in_turns(list(contestants.values()), repeats), strict=True))
    streams, chunks = streams_of(kind.workload, events), tables[FORMS[BASE].table]["ts"].num_chunks
    return Measured(kind.name, kind.asked, kind.text(events), kind.options, events, streams, chunks, matches, seconds)


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


def in_turns(contestants: Sequence[Contestant], repeats: int) -> list[Seconds]:
    """The shortest times of each contestant; they take turns, so that what a machine does meanwhile befalls all of them."""
    taken: list[list[Seconds]] = [[] for _ in contestants]
    for _ in range(repeats):
        for own, contestant in zip(taken, contestants, strict=True):
            own.append(_timed(contestant))
    return [Seconds(min(each.wall for each in own), min(each.cpu for each in own)) for own in taken]


def _timed(contestant: Contestant) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = contestant.run()
    found = Seconds(time.perf_counter() - wall, time.process_time() - cpu)
    contestant.drop(answer)
    return found


def _of_loop(loop: Loop) -> Contestant:
    def free(found: object) -> None:
        if isinstance(found, int):
            loop.free(found)

    return Contestant(loop.run, free)


def _of_form(kind: Kind, form: Form, events: pa.Table) -> Contestant:
    return Contestant(lambda: form.answer(kind, events))
