"""Write the plan of a query over situations in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gpu_cep.analysis.bound_intervals import Duration
from gpu_cep.analysis.types import Attribute
from gpu_cep.errors import UnsupportedError
from gpu_cep.lang.ast_intervals import IntervalQuery
from gpu_cep.lang.format import format_query
from gpu_cep.pictures.files import check_suffix
from gpu_cep.plan.drawing import ALIKE, plan_to_draw
from gpu_cep.plan.explain import return_lines, untimed_text
from gpu_cep.plan.interval_algorithms import interval_algorithm
from gpu_cep.plan.interval_order import assume_statistics, evaluation_order, selectivity
from gpu_cep.plan.interval_plan import IntervalPlan
from gpu_cep.plan.lengths import length_text
from gpu_cep.plan.mermaid import SUFFIX
from gpu_cep.plan.vector import vector
from gpu_cep.whole_files import save_whole

_DETECTED = {
    False: "when the last of its situations has ended",
    True: "at the first event at which its situations are known and all constraints decided",
}


@dataclass(frozen=True, slots=True)
class JoinedChunks:
    """The chunks that were joined in one order of the names.

    `order`: that order. `chunks`: the number of chunks. `rows`: the sum of their rows after each join.
    """

    order: tuple[int, ...]
    chunks: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IntervalExplanation:
    """How a query over situations will be answered; print it, or show it in a notebook.

    `query`: the query. `plan`: its plan; None without a schema.
    `counts`, `joined`: the counts and joins of a run, if the query was run to be explained.
    `source`: who reads the events under Spark, or how files are read in this process, and why.
    `device`: what finds situations and their matches on this machine (None: the CPU). `reason`: why.
    """

    query: IntervalQuery
    plan: IntervalPlan | None
    counts: Mapping[str, int] | None = None
    joined: tuple[JoinedChunks, ...] = ()
    source: str = ""
    device: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        lines = [format_query(self.query)]
        if self.plan is not None:
            lines += ["", *_plan_lines(self.plan, "cpu" if self.device is None else "gpu"), *self._engine_lines()]
        if self.plan is not None and self.counts is not None:
            lines += ["", f"ran        {' → '.join(f'{name} {count:,}' for name, count in self.counts.items())}"]
            lines += [f"  {_joined_line(self.plan, each)}" for each in self.joined]
        lines += [f"source     {self.source}"] if self.source else []
        return "\n".join(lines)

    __repr__ = __str__

    def _engine_lines(self) -> list[str]:
        """Return the engine and the reason for it, if there is one."""
        return [f"engine     {'cpu' if self.device is None else f'gpu ({self.device})'}: {self.reason}"] if self.reason else []

    def mermaid(self) -> str:
        """Refuse: situations have no automaton.

        Raises
        ------
        UnsupportedError
            Always; what is supported is the drawing of event patterns.
        """
        raise UnsupportedError("a query over situations has no automaton to draw; supported: event patterns, and plot() for matches")

    def svg(self) -> str:
        """Return the situations and their constraints, in the expected order of joins, as the text of an SVG file.

        Raises
        ------
        PatternError
            There was no schema to bind to.
        """
        return vector(plan_to_draw(self.plan)).svg

    def save(self, path: str | Path) -> None:
        """Write the same drawing to a file, as its suffix says: ``.png``, ``.svg`` or ``.pdf``; raises as :meth:`Explanation.save`."""
        suffix = Path(path).suffix.lower()
        drawn = self.render(suffix if suffix == SUFFIX else check_suffix(path))
        save_whole(path, lambda target: target.write(drawn))

    def render(self, suffix: str) -> bytes:
        """Return the bytes of a file that :meth:`save` writes with this suffix; raises as it does."""
        return self.mermaid().encode() if suffix == SUFFIX else vector(plan_to_draw(self.plan)).render(suffix)

    def _repr_html_(self) -> str:
        return f"{'' if self.plan is None else self.svg()}<pre>{escape(str(self))}</pre>"


def _plan_lines(plan: IntervalPlan, engine: str) -> Iterator[str]:
    """Yield the lines of the plan, from the streams to RETURN; `engine` derives and joins the situations."""
    query = plan.query
    names = [variable.name for variable in query.variables]
    keys = ", ".join(query.column_name(column) for column in query.partition_by)
    timestamp = query.schema.attributes[query.timestamp]
    window = "none" if query.window is None else length_text(query.window.length, timestamp)
    yield f"streams    {keys or 'one'}{untimed_text(query)}"
    yield f"situations (phase 1, in bulk, {engine}): the longest runs of events of a stream that satisfy"
    for name, condition, duration in zip(names, query.conditions, query.durations, strict=True):
        yield f"  {name}: {condition.text}{_duration_text(duration, timestamp)}"
    if query.gap is not None:
        gap = length_text(query.gap, timestamp)
        yield f"gap        a situation ends {gap} after its last event, where the next of its stream comes later"
    yield f"window     {window}"
    yield "constraints"
    for constraint in query.constraints:
        yield f"  {constraint.text} (expected of {selectivity(constraint):.2%} of all pairs, table 3)"
    yield f"detected   {_DETECTED[query.early]}"
    yield f"algorithm  {plan.algorithm} ({interval_algorithm(plan.algorithm).does}), phase 2, {engine}"
    order = evaluation_order(assume_statistics(query.constraints, [ALIKE] * len(names)), query.constraints)
    chosen = "if there are equally many of each; chosen by their numbers, and anew between chunks"
    yield f"order      {' → '.join(names[v] for v in order)}, {chosen}"
    yield from return_lines(plan)


def _duration_text(duration: Duration, timestamp: Attribute) -> str:
    bounds = ((duration.shortest, "at least"), (duration.longest, "at most"))
    limits = [f"{what} {length_text(bound, timestamp)}" for bound, what in bounds if bound is not None]
    return f", lasting {' and '.join(limits)}" if limits else ""


def _joined_line(plan: IntervalPlan, joined: JoinedChunks) -> str:
    steps = " → ".join(f"{plan.query.variables[v].name} {rows:,}" for v, rows in zip(joined.order, joined.rows, strict=True))
    chunks = "one chunk" if joined.chunks == 1 else f"{joined.chunks:,} chunks"
    return f"joined in {chunks}, configurations after each step: {steps}"
