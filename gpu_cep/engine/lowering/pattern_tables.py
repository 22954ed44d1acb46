"""Write the plan's branches as the tables that kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.lowering.chains import chain_of, with_negations
from gpu_cep.engine.lowering.column_programs import is_column_program
from gpu_cep.engine.lowering.judgements import judgements, negation_judgements
from gpu_cep.engine.lowering.jump_tables import jump_table
from gpu_cep.engine.lowering.lists import offsets
from gpu_cep.engine.lowering.neighbours import divide_lifted
from gpu_cep.engine.lowering.programs import assemble, tabulator
from gpu_cep.identity import while_alive
from gpu_cep.plan.event_plan import EventPlan, LiftedCondition, PlannedBranch, PlannedCondition, RunningAggregate, Spread
from gpu_cep.plan.programs import Instruction, Program
from gpu_cep_kernels.automaton.chain_judgements import Chain
from gpu_cep_kernels.automaton.jumps import JumpTable
from gpu_cep_kernels.automaton.single_runs import Judgements
from gpu_cep_kernels.phase_one.neighbour_conditions import NeighbourComparisons
from gpu_cep_kernels.rules.running import AGGREGATIONS
from gpu_cep_kernels.rules.scalars import COMPARISONS, UNBOUNDED
from gpu_cep_kernels.rules.tables import (
    BY_FLOATS,
    BY_INTS,
    BY_PROGRAM,
    CONSECUTIVELY,
    ONCE,
    PAIRWISE,
    SINGLY,
    AggregateTable,
    ConditionTable,
    Ints,
    PatternTable,
    ProgramTable,
    Strategy,
)

_SPREADS = {Spread.ONCE: ONCE, Spread.SINGLY: SINGLY, Spread.CONSECUTIVELY: CONSECUTIVELY, Spread.PAIRWISE: PAIRWISE}


@dataclass(frozen=True, slots=True)
class MatcherTables:
    """The tables of a branch that kernels read; variables are places in ``branch.variables``.

    `number` is that of the branch among those of its plan.
    `judgements` are the conditions as runs without a choice judge them; None if they cannot be so.
    `walked_chain` is what runs of a chain judge, with its negations if it has some; None if the branch is no chain, or
    if more than the ends of bindings decides its negations.
    `minimal` is the label mask of the variables that can begin a match. `fewest` is the least
    number of events in a match. `of_singles`: whether each variable binds one event in every match.
    `reads_directly`: whether the branch is of the kind whose matches labels alone can decide.
    `compared` are the lifted conditions that compare two columns (None: there are none), `judged` the other lifted ones.
    `by_columns`: whether each condition is judged by whole columns where it relates neighbours.
    """

    number: int
    branch: PlannedBranch
    pattern: PatternTable
    conditions: ConditionTable
    aggregates: AggregateTable
    programs: ProgramTable
    jumps: JumpTable
    judgements: Judgements | None
    walked_chain: Chain | None
    minimal: int
    fewest: int
    of_singles: bool
    reads_directly: bool
    compared: NeighbourComparisons | None
    judged: tuple[LiftedCondition, ...]
    by_columns: tuple[bool, ...]

    @property
    def chain(self) -> Chain | None:
        """Return what runs of a chain without negations judge; None if the branch is none."""
        return None if self.branch.negations else self.walked_chain

    @property
    def only_compares(self) -> bool:
        """Return whether runs of a chain are judged by comparisons of columns alone, and nothing is aggregated while they grow."""
        chain = self.walked_chain
        if chain is None or len(self.aggregates.step):
            return False
        # the groups of negations are behind those of the variables
        judged = chain.condition[: chain.first[2 * len(self.pattern.order)]]
        return bool((self.conditions.means[judged] != BY_PROGRAM).all())


def matcher_tables(plan: EventPlan, columns: EventColumns) -> tuple[MatcherTables, ...]:
    """Return the tables of each of the plan's branches."""
    return _tables_of(plan) or _build_tables(plan, columns)


def _depend_on_events(plan: EventPlan) -> bool:
    """Return whether the tables depend on the events: they hold what is true of their texts, or call functions."""
    programs = [condition.program for branch in plan.branches for condition in branch.conditions]
    texts = any(plan.query.column_type(column).kind is Kind.STRING for column in plan.layout.ints)
    return texts or any(program.lookups or program.calls for program in programs)


# Over few events the tables take a tenth of the time.
@while_alive
def _tables_of(plan: EventPlan) -> tuple[MatcherTables, ...]:
    """Return the tables; none if they depend on the events."""
    return () if _depend_on_events(plan) else _build_tables(plan, None)


def _build_tables(plan: EventPlan, columns: EventColumns | None) -> tuple[MatcherTables, ...]:
    """Return the tables; `columns` may be None if no condition reads text."""
    return tuple(_branch_tables(plan, number, columns) for number in range(len(plan.branches)))


def _branch_tables(plan: EventPlan, number: int, columns: EventColumns | None) -> MatcherTables:
    """Return the tables of the branch of this number."""
    branch = plan.branches[number]
    programs, spans = assemble([condition.program for condition in branch.conditions], tabulator(columns))
    conditions = _condition_table(branch, spans, _are_single(plan, branch))
    pattern = _pattern_table(plan, branch)
    runs = judgements(branch, pattern, conditions)
    compared, judged = divide_lifted(branch, conditions)
    return MatcherTables(
        number=number,
        branch=branch,
        pattern=pattern,
        conditions=conditions,
        aggregates=_aggregate_table(plan, branch, columns),
        programs=programs,
        jumps=jump_table(branch, conditions.final),
        judgements=runs,
        walked_chain=_walked_chain(branch, pattern, runs, conditions),
        minimal=sum(1 << v for v, mask in zip(branch.positives, branch.before, strict=True) if mask == 0),
        fewest=int(pattern.minimum.sum()),
        of_singles=of_singles(plan, branch),
        reads_directly=_reads_directly(plan, branch),
        compared=compared,
        judged=judged,
        by_columns=tuple(is_column_program(condition.program) for condition in branch.conditions),
    )


def _reads_directly(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether a branch is of the kind whose matches labels alone can decide.

    It has no conditions between variables. Each variable binds one event, or one or more. With
    negations each one binds one.
    """
    most = (1,) if branch.negations else (1, None)
    bound = (plan.query.variables[v] for v in branch.positives)
    return (
        plan.strategy == "skip_till_next_match"
        and "chain" in plan.pruning
        and not branch.conditions
        and all(variable.minimum == 1 and variable.maximum in most for variable in bound)
    )


def is_chain(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether a branch is a chain, or one with negations, as its tables will say.

    The tables may depend on events.
    """
    conditions, pattern = _tables_without_texts(plan, branch)
    return _walked_chain(branch, pattern, judgements(branch, pattern, conditions), conditions) is not None


def is_judged_as_it_grows(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether judgements decide all of a branch when its variables bind events: none is left to the end of a match."""
    conditions, pattern = _tables_without_texts(plan, branch)
    return not branch.negations and not conditions.final.size and judgements(branch, pattern, conditions) is not None


def _tables_without_texts(plan: EventPlan, branch: PlannedBranch) -> tuple[ConditionTable, PatternTable]:
    """Return the tables of a branch that do not depend on events."""
    _, spans = assemble([condition.program for condition in branch.conditions], lambda _: np.empty(0, np.uint8))
    return _condition_table(branch, spans, _are_single(plan, branch)), _pattern_table(plan, branch)


def of_singles(plan: EventPlan, branch: PlannedBranch) -> bool:
    """Return whether each positive variable of a branch binds one event in every match."""
    return all(plan.query.variables[v].minimum == plan.query.variables[v].maximum == 1 for v in branch.positives)


def _are_single(plan: EventPlan, branch: PlannedBranch) -> list[bool]:
    """Return whether each variable of a branch binds one event at most."""
    return [plan.query.variables[v].maximum == 1 for v in branch.variables]


def _pattern_table(plan: EventPlan, branch: PlannedBranch) -> PatternTable:
    """Return the order of a branch's variables, and their quantifiers."""
    variables = [plan.query.variables[v] for v in branch.positives]
    precedes = _relation(branch.before)
    # what precedes v, but nothing else that does
    direct = precedes & ~(precedes.astype(np.float32) @ precedes.astype(np.float32) > 0)
    return PatternTable(
        order=np.argsort(precedes.sum(axis=0), kind="stable").astype(np.int64),
        precedes=precedes,
        direct_first=offsets(direct.sum(axis=0)),
        direct=np.nonzero(direct.T)[1].astype(np.uint16),
        following_first=offsets(direct.sum(axis=1)),
        following=np.nonzero(direct)[1].astype(np.uint16),
        minimum=np.array([variable.minimum for variable in variables], np.int64),
        maximum=np.array([UNBOUNDED if variable.maximum is None else variable.maximum for variable in variables], np.int64),
    )


def _walked_chain(
    branch: PlannedBranch, pattern: PatternTable, judged: Judgements | None, conditions: ConditionTable
) -> Chain | None:  # fmt: skip
    """Return what a walk over a chain and its negations judges; group 2 V + n has negation n's judgements.

    None if its positive variables are no chain that is walked, if negations read more than the ends
    of bindings, or if a variable that may bind several events stands on neither side of a negation:
    some of them might then lie in a scope.
    """
    chain = None if judged is None else chain_of(pattern, judged, conditions, _codes(branch))
    if chain is None or not branch.negations:
        return chain
    single = {v for v, most in enumerate(pattern.maximum) if most == 1}
    sided = all(single.union(negation.after, negation.before) >= set(range(len(branch.before))) for negation in branch.negations)
    negated = negation_judgements(branch, pattern, conditions) if sided else None
    return None if negated is None else with_negations(chain, negated, conditions, _codes(branch))


def _codes(branch: PlannedBranch) -> list[tuple[Instruction, ...]]:
    """Return the instructions of each condition."""
    return [condition.program.code for condition in branch.conditions]


def _relation(before: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return bool [u, v]: whether the bit mask ``before[v]`` has the bit of u."""
    size = -(-len(before) // 8)
    masks = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in before), np.uint8).reshape(-1, size)
    bits = np.unpackbits(masks, axis=1, count=len(before), bitorder="little")
    return np.ascontiguousarray(bits.T).astype(np.bool_)


def _condition_table(branch: PlannedBranch, spans: Sequence[tuple[int, int]], single: Sequence[bool]) -> ConditionTable:
    """Return the table of a branch's conditions."""
    conditions = branch.conditions
    listed = _deciding_conditions(branch)
    parts = [part for condition in conditions for part in condition.parts]
    compared = [single_comparison(condition.program) for condition in conditions]
    columns = np.array([comparison or (BY_PROGRAM, 0, 0, 0, 0, 0) for comparison in compared], np.int64).reshape(-1, 6)
    pairs = [_single_pair(condition, comparison, single) for condition, comparison in zip(conditions, compared, strict=True)]
    related = np.array(pairs, np.int64).reshape(-1, 2)
    return ConditionTable(
        first=offsets([len(own) for own in listed]),
        listed=_numbers(c for own in listed for c in own),
        alone=np.array([any(conditions[c].variables == {v} for c in own) for v, own in enumerate(listed)], np.bool_),
        closing_first=offsets([len(condition.closing) for condition in conditions]),
        closing=_numbers(v for condition in conditions for v in condition.closing),
        final=_numbers(c for c, condition in enumerate(conditions) if _is_final(condition, branch)),
        part_first=offsets([len(condition.parts) for condition in conditions]),
        variable=_numbers(part.variable for part in parts),
        each=_numbers(part.each for part in parts),
        previous=_numbers(part.previous for part in parts),
        start=_numbers(part.first for part in parts),
        end=_numbers(part.last for part in parts),
        spread=_numbers(_SPREADS[part.spread] for part in parts),
        means=columns[:, 0].copy(),
        comparison=columns[:, 1].copy(),
        left_column=columns[:, 2].copy(),
        left_role=columns[:, 3].copy(),
        right_column=columns[:, 4].copy(),
        right_role=columns[:, 5].copy(),
        left_variable=related[:, 0].copy(),
        right_variable=related[:, 1].copy(),
        code_first=_numbers(first for first, _ in spans),
        code_last=_numbers(last for _, last in spans),
        result=_numbers(condition.program.result for condition in conditions),
        roles=max((condition.roles for condition in conditions), default=1),
    )


def _deciding_conditions(branch: PlannedBranch) -> list[list[int]]:
    """Return, for each variable, the numbers of the conditions that its events decide.

    A condition on a negated variable is decided by the events of that variable only.
    """
    positives = len(branch.before)
    listed: list[list[int]] = [[] for _ in branch.variables]
    for c, condition in enumerate(branch.conditions):
        negated = [v for v in condition.variables if v >= positives]
        if negated:
            listed[negated[0]].append(c)
        elif not _is_final(condition, branch):
            for v in sorted(_deciding_variables(condition, branch)):
                listed[v].append(c)
    return listed


def _deciding_variables(condition: PlannedCondition, branch: PlannedBranch) -> frozenset[int]:
    """Return the variables whose events may decide a condition.

    They are the variables that it reads. If it waits for the last event of one of them, the
    variables that follow that one decide in its place.
    """
    closers = frozenset(v for v, mask in enumerate(branch.before) for u in condition.closing if mask >> u & 1)
    return (condition.variables - frozenset(condition.closing)) | closers


def _is_final(condition: PlannedCondition, branch: PlannedBranch) -> bool:
    """Return whether only the end of a match decides a condition.

    That is so if it waits for the last event of a variable that no other variable follows.
    """
    followed = {u for u in condition.closing if any(mask >> u & 1 for mask in branch.before)}
    return max(condition.variables, default=0) < len(branch.before) and not followed.issuperset(condition.closing)


def _aggregate_table(plan: EventPlan, branch: PlannedBranch, columns: EventColumns | None) -> AggregateTable:
    """Return the table of a branch's running aggregates."""
    counts = np.bincount(np.array([each.variable for each in branch.aggregates], np.int64), minlength=len(branch.variables))
    return AggregateTable(
        first=offsets(counts),
        step=_numbers(AGGREGATIONS[each.step] for each in branch.aggregates),
        column=_numbers(each.column for each in branch.aggregates),
        missing=_numbers(_missing(plan, each, columns) for each in branch.aggregates),
    )


def _missing(plan: EventPlan, aggregate: RunningAggregate, columns: EventColumns | None) -> int:
    """Return the integer that stands for NULL in an aggregate: the code of NULL for text, else 0."""
    if columns is None or not aggregate.step.endswith("ints"):
        return 0
    column = plan.layout.ints[aggregate.column]
    return len(columns.texts.values(column)) if plan.query.column_type(column).kind is Kind.STRING else 0


def _numbers(numbers: Iterable[int]) -> Ints:
    return np.array(list(numbers), np.int64)


Comparison = tuple[int, int, int, int, int, int]


def single_comparison(program: Program) -> Comparison | None:
    """Return the fields of a condition whose program only compares two loaded columns; None for others.

    They are the kind of comparison, its code, the left column and role, and the right column and
    role.
    """
    code: tuple[Instruction, ...] = program.code
    if len(code) != 3:
        return None
    (load_left, left, left_column, left_role), (load_right, right, right_column, right_role), (name, _, first, second) = code
    comparison, _, suffix = name.partition("_")
    kinds = {("load_int", "load_int", "int"): BY_INTS, ("load_float", "load_float", "float"): BY_FLOATS}
    means = kinds.get((load_left, load_right, suffix))
    if means is None or comparison not in COMPARISONS or (first, second) != (left, right):
        return None
    return means, COMPARISONS[comparison], left_column, left_role, right_column, right_role


def _single_pair(condition: PlannedCondition, comparison: Comparison | None, single: Sequence[bool]) -> tuple[int, int]:
    """Return the two variables with one event each that a comparison compares; else −1 twice."""
    by_role = {part.each: part.variable for part in condition.parts if part.previous < 0 and single[part.variable]}
    if comparison is None or len(by_role) < 2:
        return -1, -1
    _, _, _, left_role, _, right_role = comparison
    return by_role[left_role], by_role[right_role]


# Plain integers: kernels would be compiled once more for members of the enumeration.
STRATEGY = {
    "skip_till_next_match": Strategy.NEXT.value,
    "skip_till_any_match": Strategy.ANY.value,
    "strict_contiguity": Strategy.CONTIGUOUS.value,
    "partition_contiguity": Strategy.CONTIGUOUS.value,
    "robust_skip_till_next_match": Strategy.ROBUST.value,
}
