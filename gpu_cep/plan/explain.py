"""Write a plan in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from gpu_cep.analysis.bound import BoundPattern, BoundQuery, Branch, CountWindow, Negation, TimeWindow
from gpu_cep.analysis.operators import COMPARISONS
from gpu_cep.lang.ast import Query
from gpu_cep.lang.format import format_query
from gpu_cep.pictures.files import FORMATS, save_rendered
from gpu_cep.plan.algorithms import algorithm_named
from gpu_cep.plan.answers import answer_lines
from gpu_cep.plan.costs import BatchAnswer, groups_text
from gpu_cep.plan.drawing import plan_to_draw
from gpu_cep.plan.event_plan import CodeProperty, ComparisonProperty, EventPlan, Plan, PlannedBranch, ProgramProperty
from gpu_cep.plan.join_trees import MOST_COMPARED, demands_equality
from gpu_cep.plan.lengths import length_text
from gpu_cep.plan.mermaid import SUFFIX, mermaid
from gpu_cep.plan.programs import string_predicate_column
from gpu_cep.plan.properties import property_conjuncts
from gpu_cep.plan.states import decided_by_states
from gpu_cep.plan.vector import vector

_STEPS = {
    "filter": "drop events that satisfy no variable's properties",
    "reach": "where rare events are needed: drop those that no window around one of them reaches",
    "partition": "split streams by derived keys",
    "lift": "judge conditions between neighbours for all events, and read matches off where these decide them",
    "summary": "windows whose summary statistics rule a match out",
    "chain": "windows in which the earliest possible ends of the variables do not fit",
}
_CUT = "at the first completion: no run goes on whose matches would all be dropped for one that completed before"
_BY_STATES = "from the states of the pattern, in time linear in the events: no match is enumerated"
_TREES = "the cheapest of all trees"
_GROWN_TREE = "one variable after the other from the rarest on, at the least cost each time"
_BY_RUNS = "from the runs of nfab, where paths through them are the matches, else from the matches, one by one"
_BY_MATCHES = "from the matches, one by one"

# The suffixes of files that a plan can be drawn to.
DRAWN = (*FORMATS, SUFFIX)

_WRITTEN = {name: operator for operator, name in COMPARISONS.items()}
_WINDOW_STEPS = ("summary", "chain")
# Steps that phase 1 leaves out on a device.
_CPU_STEPS = ("reach",)


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a query will be answered; print it, show it in a notebook, or draw its automaton.

    `query`: the query. `plan`: its plan; None without a schema.
    `device`: what runs phase 1 on this machine (None: the CPU). `reason`: why. `phase_two`: what runs phase 2.
    `counts`, `answers`: the counts and answers of a run, if the query was run to be explained.
    `fitting`: the number of events of that run that satisfy all properties of each variable.
    `groups`: the numbers of row groups of Parquet that it read, and that there are (None: none could be left out).
    `source`: who reads the events under Spark, or how files are read in this process, and why.
    """

    query: Query
    plan: EventPlan | None
    device: str | None = None
    reason: str = ""
    counts: Mapping[str, int] | None = None
    answers: tuple[BatchAnswer, ...] = ()
    fitting: Mapping[str, int] | None = None
    groups: tuple[int, int] | None = None
    source: str = ""
    phase_two: str = "cpu"

    def __str__(self) -> str:
        lines = [format_query(self.query)]
        if self.plan is not None:
            lines += ["", *_plan_lines(self.plan, "cpu" if self.device is None else "gpu", self.phase_two), self._engine_line()]
        if self.plan is not None and self.counts is not None:
            lines += ["", *_run_lines(self.counts, self.fitting or {}, self.answers, len(self.plan.branches))]
            lines += [] if self.groups is None else [f"  {groups_text(self.groups)}"]
        lines += [f"source     {self.source}"] if self.source else []
        return "\n".join(lines)

    __repr__ = __str__

    def mermaid(self) -> str:
        """Return the automaton of each branch as a Mermaid flowchart.

        With more than 32 states it is the order of the variables instead.

        Raises
        ------
        PatternError
            There was no schema to bind to.
        """
        return mermaid(plan_to_draw(self.plan))

    def svg(self) -> str:
        """Return the same drawing as a picture that needs no Mermaid: the text of an SVG file; raises as :meth:`mermaid`."""
        return vector(plan_to_draw(self.plan)).svg

    def save(self, path: str | Path) -> None:
        """Write the same drawing to a file, as its suffix says: ``.png``, ``.svg``, ``.pdf``, or ``.mmd`` for Mermaid.

        Raises
        ------
        PatternError
            There was no schema to bind to.
        CepError
            The suffix is none of these, the drawing is larger than a ``.png`` can be, or the file cannot be written.
        EngineUnavailable
            There is no matplotlib (the extra ``plot``), which draws ``.png`` and ``.pdf``.
        """
        save_rendered(path, self.render, DRAWN)

    def render(self, suffix: str) -> bytes:
        """Return the bytes of a file that :meth:`save` writes with this suffix; raises as it does."""
        return self.mermaid().encode() if suffix == SUFFIX else vector(plan_to_draw(self.plan)).render(suffix)

    def _repr_html_(self) -> str:
        return f"{'' if self.plan is None else self.svg()}<pre>{escape(str(self))}</pre>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the forms that a notebook can choose from; those that know Mermaid draw it."""
        bundle = {"text/plain": str(self), "text/html": self._repr_html_()}
        return bundle if self.plan is None else {**bundle, "text/vnd.mermaid": self.mermaid()}

    def _engine_line(self) -> str:
        where = "cpu" if self.device is None else f"gpu for phase 1 ({self.device}), {self.phase_two} for phase 2"
        return f"engine     {where}: {self.reason}"


def untimed_text(query: BoundQuery) -> str:
    """Return what the line of streams says of events without a timestamp: nothing if they are an error."""
    return ", events without a timestamp left out" if query.drops_untimed else ""


def _plan_lines(plan: EventPlan, bulk: str, phase_two: str) -> Iterator[str]:
    """Yield the lines of the plan, one for each step with where it runs; `bulk` is where phase 1 runs."""
    query = plan.query
    yield f"strategy   {query.strategy}, ties {query.ties}, window {_window(query)}, after_match {plan.settings.after_match}"
    if plan.settings.limit_per_start is not None:
        yield f"keeps      {_kept_text(plan)}"
    if plan.strategy != query.strategy:
        yield f"followed   {plan.strategy}: it finds the same matches of this query (thesis Thm. 6.3)"
    derived = f", derived keys {_columns(query, plan.derived)}" if plan.derived else ""
    yield f"streams    {_columns(query, query.partition_by) or 'one'}{derived}{untimed_text(query)}"
    yield f"properties (phase 1, in bulk, {bulk})"
    for planned in plan.properties:
        yield f"  {_property(query, planned)}"
    for number, (bound, planned_branch) in enumerate(zip(query.branches, plan.branches, strict=True), 1):
        yield "pattern" if len(plan.branches) == 1 else f"branch {number} of {len(plan.branches)}"
        yield from (f"  {line}" for line in _branch_lines(query, bound, planned_branch, plan.derived))
    yield f"pruning (phase 1, in bulk, {bulk})"
    for step in (step for step in plan.pruning if step in _STEPS and not (bulk == "gpu" and step in _CPU_STEPS)):
        elsewhere = bulk == "gpu" and step in _WINDOW_STEPS and not plan.windows_suffice and phase_two == "cpu"
        yield f"  {step:<10} {_STEPS[step]}{' (cpu)' if elsewhere else ''}"
    yield from _algorithm_lines(plan, phase_two)
    if "overlap" in plan.pruning:
        yield f"overlap    {_CUT} (ses_automaton, backtracking, nfab), phase 2, {phase_two}"
    if "join_tree" in plan.contenders:
        yield f"joins      {_joins(plan.branches[0])}"
    if plan.settings.output in ("count", "compressed"):
        yield f"{plan.settings.output:<10} {_source(plan)}"
    yield from return_lines(plan)


def return_lines(plan: Plan) -> Iterator[str]:
    """Yield a line which says that RETURN is passed over, if it is: only rows of matches have its items."""
    if plan.query.returns and plan.settings.output != "matches":
        yield f"RETURN     not computed with output={plan.settings.output!r}; output='matches' has its items"


def _kept_text(plan: EventPlan) -> str:
    """Return in words which matches of one first event are kept."""
    limit, ranking = plan.settings.limit_per_start, plan.query.ranking
    by = "in the order of results" if ranking is None else f"by {ranking.text}, {'descending' if ranking.descending else 'ascending'}"
    return f"of each first event, the first {'match' if limit == 1 else f'{limit:,} matches'} {by}"


def _source(plan: EventPlan) -> str:
    """Return in words what a count or a compressed result is computed from."""
    compressed = plan.settings.output == "compressed"
    if decided_by_states(plan) and (compressed or plan.algorithm != "nfab"):
        return _BY_STATES
    merged = plan.strategy != "robust_skip_till_next_match" if compressed else plan.algorithm == "nfab"
    return _BY_RUNS if merged and plan.settings.keeps_all else _BY_MATCHES


def _algorithm_lines(plan: EventPlan, phase_two: str) -> Iterator[str]:
    does = {name: algorithm_named(name).does for name in plan.contenders}
    if len(does) == 1:
        yield f"algorithm  {plan.algorithm} ({does[plan.algorithm]}), phase 2, {phase_two}"
    else:
        yield f"algorithm  the one that is expected to cost least in each batch of events, phase 2, {phase_two}"
        yield from (f"  {name:<13} {what}" for name, what in does.items())


def _run_lines(counts: Mapping[str, int], fitting: Mapping[str, int], answers: Sequence[BatchAnswer], branches: int) -> Iterator[str]:
    """Yield the lines that say what a run did."""
    yield f"ran        {' → '.join(f'{name} {count:,}' for name, count in counts.items())}"
    if fitting:
        yield f"  events by properties alone: {', '.join(f'{name} {count:,}' for name, count in fitting.items())}"
    yield from (f"  {line}" for line in answer_lines(answers, branches))


def _branch_lines(query: BoundPattern, branch: Branch, planned: PlannedBranch, derived: tuple[int, ...]) -> Iterator[str]:
    yield f"order: {_order(query, branch)}"
    for negation in branch.negations:
        yield f"no {query.variables[negation.variable].name} {_scope(query, negation)}"
    yield from _condition_lines(query, planned)
    implied = dict.fromkeys(c.text for c in branch.conditions if c.key is not None and c.key in derived)
    if implied:
        yield f"implied by the derived keys: {', '.join(implied)}"


def _condition_lines(query: BoundPattern, branch: PlannedBranch) -> Iterator[str]:
    """Yield a line for each condition as it is written, with the earlier events of which FIRST asks the same."""
    readers: dict[str, list[frozenset[int]]] = {}
    for condition in branch.conditions:
        readers.setdefault(condition.text, []).append(condition.variables)
    for text, (written, *others) in readers.items():
        earlier = sorted(frozenset().union(*others) - written)
        names = ", ".join(query.variables[branch.variables[number]].name for number in earlier)
        yield f"condition: {text}{f', also for {names}' if names else ''}"


def _joins(branch: PlannedBranch) -> str:
    # a condition on a negated variable finds no partners
    joining = (condition for condition in branch.conditions if max(condition.variables) < len(branch.positives))
    equalities = ", ".join(condition.text for condition in joining if demands_equality(condition))
    partners = f"within order and window by a hash for {equalities}" if equalities else "within order and window"
    return f"{_TREES if len(branch.positives) <= MOST_COMPARED else _GROWN_TREE}; partners {partners}"


def _order(query: BoundPattern, branch: Branch) -> str:
    parts = []
    for v, mask in zip(branch.variables, branch.before, strict=True):
        name = query.variables[v].name
        parts.append(f"{name} after {{{_variables(query, mask)}}}" if mask else f"{name} first")
    return "; ".join(parts)


def _scope(query: BoundPattern, negation: Negation) -> str:
    after = f"after {{{_variables(query, negation.after)}}}" if negation.after else "from a window before the last event on"
    before = f"before {{{_variables(query, negation.before)}}}" if negation.before else "until a window after the first event"
    return f"{after}, {before}"


def _window(query: BoundPattern) -> str:
    match query.window:
        case TimeWindow(length=length):
            return length_text(length, query.schema.attributes[query.timestamp])
        case CountWindow(events=events):
            return f"{events:,} events"
    return "none"


def _columns(query: BoundPattern, columns: tuple[int, ...]) -> str:
    return ", ".join(query.column_name(column) for column in columns)


def _variables(query: BoundPattern, bits: int) -> str:
    return ", ".join(variable.name for v, variable in enumerate(query.variables) if bits >> v & 1)


def _tests_of_text(query: BoundPattern, column: int) -> Iterable[str]:
    """Return the properties, as written, that are decided for each distinct value of a text column."""
    return dict.fromkeys(condition.text for condition, test, _ in property_conjuncts(query) if string_predicate_column(test) == column)


def _property(query: BoundPattern, planned: CodeProperty | ComparisonProperty | ProgramProperty) -> str:
    match planned:
        case CodeProperty(column=column, bits=bits):
            return f"{_variables(query, bits)}: {'; '.join(_tests_of_text(query, column))}, once per distinct value"
        case ComparisonProperty(column=column, comparison=comparison, constant=constant, bits=bits):
            return f"{_variables(query, bits)}: {query.column_name(column)} {_WRITTEN[comparison]} {constant}"
        case ProgramProperty(text=text, bits=bits):
            return f"{_variables(query, bits)}: {text}, by a program"
