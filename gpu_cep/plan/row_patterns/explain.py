"""Write the plan of a row pattern in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NoReturn

from gpu_cep.analysis.bound import CountWindow, TimeWindow
from gpu_cep.analysis.row_patterns.bound import BoundRowPattern, SortColumn
from gpu_cep.errors import UnsupportedError
from gpu_cep.lang.row_patterns.ast import RowPatternQuery
from gpu_cep.lang.row_patterns.format import format_row_pattern
from gpu_cep.plan.lengths import length_text
from gpu_cep.plan.row_patterns.on_card import left_to_cpu
from gpu_cep.plan.row_patterns.row_plan import Judged, JudgedCondition, RowPlan

_ROWS = {
    "one": "one for each match",
    "show empty": "all of each match, empty matches shown",
    "omit empty": "all of each match, empty matches left out",
    "with unmatched": "all of each match, and those of none",
}
_BY_LABELS = "ordered automaton over labels: backwards, from which states a match can end; then forwards, along the preferred moves"
_BY_SEARCH = "search in order of preference along the moves from which labels let a match end, with a memory of dead ends"
_BY_WALK = "walk: each row leaves one move at most; where dead ends may be met again, a search with a memory of them"
_ON_CARD = "gpu labels the rows and finds the matches"
_LABELLED = "gpu labels the rows, cpu finds the matches"
_LINEAR = "grows with the rows, whatever the pattern"
_SEVERAL = "steps grow with the rows, times the different rows and variables that conditions read at one row"
_PAIRS = "steps may grow with the rows, times the rows of the longest match that is tried"
_BOUNDS = "PARTITION BY and WITHIN shorten it"


@dataclass(frozen=True, slots=True)
class RowPatternExplanation:
    """How MATCH_RECOGNIZE will be answered; print it, or show it in a notebook.

    `query`: the clause. `plan`: its plan; None without a schema.
    `counts`: the counts of a run, if the query was run to be explained.
    `source`: who reads the rows under Spark, or how files are read in this process, and why.
    `refused`: why this process refuses to run the query: it has no card, and ``engine="gpu"`` asks for one.
    """

    query: RowPatternQuery
    plan: RowPlan | None
    counts: Mapping[str, int] | None = None
    source: str = ""
    refused: str = ""

    def __str__(self) -> str:
        lines = [format_row_pattern(self.query)]
        if self.plan is not None:
            lines += ["", *_plan_lines(self.plan)]
        lines += [f"refused    {self.refused}"] if self.refused else []
        if self.counts is not None:
            lines += ["", f"ran        {' → '.join(f'{name} {count:,}' for name, count in self.counts.items())}"]
        lines += [f"source     {self.source}"] if self.source else []
        return "\n".join(lines)

    __repr__ = __str__

    def mermaid(self) -> str:
        """Refuse: row patterns are not drawn.

        Raises
        ------
        UnsupportedError
            Always; what is supported is the drawing of event patterns.
        """
        _refuse()

    def svg(self) -> str:
        """Refuse, as :meth:`mermaid`."""
        _refuse()

    def save(self, path: str | Path) -> None:
        """Refuse, as :meth:`mermaid`."""
        _refuse()

    def render(self, suffix: str) -> bytes:
        """Refuse, as :meth:`mermaid`."""
        _refuse()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _refuse() -> NoReturn:
    raise UnsupportedError("the plan of MATCH_RECOGNIZE has no drawing; supported: event patterns, and print() for this one")


def _plan_lines(plan: RowPlan) -> Iterator[str]:
    bound = plan.bound
    yield f"partitions {_columns(bound, bound.partition_by) or 'one'}"
    yield f"order      {', '.join(_sorted(bound, key) for key in bound.order_by) or 'that of the rows'}"
    yield f"window     {_window(bound)}"
    of_row, beside, reading = ([each for each in plan.judged if each.how is how] for how in Judged)
    yield "labels (in bulk, for all rows)"
    yield from (f"  {_names(bound, each)}: {each.text}" for each in of_row)
    yield from (f"  {_names(bound, each)}: {each.text}, by rows at {_distances(each)}" for each in beside)
    yield from (f"  {bound.variables[variable]}: any row" for variable in _without_condition(plan))
    if reading:
        yield "conditions that read the match (row by row)"
        yield from (f"  {_names(bound, each)}: {each.text}" for each in reading)
    states = len(plan.automaton.variable)
    yield f"pattern    {_number(states, 'state')} of {_number(plan.variables, 'variable')}"
    yield f"algorithm  {_algorithm(plan)}"
    yield f"engine     {_engine(plan)}"
    yield f"cost       {_cost(plan)}"
    yield f"rows       {_ROWS[bound.query.rows]}"


def _engine(plan: RowPlan) -> str:
    """Return in words what a card does; where it leaves the matches to the CPU, why."""
    if plan.labels.settings.engine != "gpu":
        return "cpu"
    why = left_to_cpu(plan)
    return f"{_LABELLED}: {why}" if why else _ON_CARD


def _algorithm(plan: RowPlan) -> str:
    if plan.search is None:
        return _BY_LABELS
    return _BY_WALK if plan.automaton.leaves_no_choice else _BY_SEARCH


def _cost(plan: RowPlan) -> str:
    """Return in words with what the steps of matching grow."""
    if plan.search is None:
        return _LINEAR
    pairs = bool(plan.search.totals) or any(place.from_first for place in plan.search.places)
    return f"{_PAIRS if pairs else _SEVERAL}; {_BOUNDS}; max_steps= limits the steps"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _without_condition(plan: RowPlan) -> list[int]:
    judged = {each.variable for each in plan.judged}
    return [variable for variable in range(plan.variables) if variable not in judged]


def _names(bound: BoundRowPattern, judged: JudgedCondition) -> str:
    return bound.variables[judged.variable]


def _distances(judged: JudgedCondition) -> str:
    return ", ".join(f"{distance:+d}" if distance else "0" for distance in judged.distances)


def _columns(bound: BoundRowPattern, columns: tuple[int, ...]) -> str:
    return ", ".join(bound.schema.names[column] for column in columns)


def _sorted(bound: BoundRowPattern, key: SortColumn) -> str:
    direction, nulls = " DESC" if key.descending else "", " NULLS FIRST" if key.nulls_first else ""
    return f"{bound.schema.names[key.column]}{direction}{nulls}"


def _window(bound: BoundRowPattern) -> str:
    match bound.window:
        case TimeWindow(length=length):
            return length_text(length, bound.schema.attributes[bound.order_by[0].column])
        case CountWindow(events=rows):
            return f"{rows:,} rows"
    return "none"
