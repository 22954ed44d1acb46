"""Write the conditions that read the match as the arrays that a search reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from gpu_cep.analysis.bound_expressions import Bound, Field
from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.input.machine_values import Array
from gpu_cep.engine.lowering.programs import assemble, evaluate_program, tabulator
from gpu_cep.engine.row_patterns.columns import classifier_codes, ordered_bank
from gpu_cep.engine.row_patterns.operands import Operands
from gpu_cep.engine.row_patterns.run import RowRun
from gpu_cep.plan.programs import is_float, leaves
from gpu_cep.plan.properties import compile_over_event
from gpu_cep.plan.row_patterns.places import Total
from gpu_cep.plan.row_patterns.row_plan import MatchConditions
from gpu_cep_kernels.row_patterns.conditions import COUNT_DISTINCT, FAILED, MISSING, PRESENT, Arguments, MatchConditionTable
from gpu_cep_kernels.rules.running import AGGREGATIONS
from gpu_cep_kernels.rules.tables import ProgramTable


class ConditionTables(NamedTuple):
    """Hold the conditions, their programs, and the arguments of their totals.

    `codes`: how many different values a total counts at most.
    """

    table: MatchConditionTable
    programs: ProgramTable
    arguments: Arguments
    codes: int


class _Argument(NamedTuple):
    """What totals aggregate: an expression over one row (None: rows), whether by codes, and the variable if that matters."""

    expression: Bound | None
    coded: bool
    variable: int | None


def condition_tables(run: RowRun, search: MatchConditions) -> ConditionTables:
    """Return the tables of the conditions that read the match."""
    plan, columns = run.plan, run.columns
    programs, spans = assemble([each.program for each in search.conditions], tabulator(columns))
    reads = [list(_places_read(each.program.code)) for each in search.conditions]
    sets = list(dict.fromkeys(place.members for place in search.places if place.members is not None))
    owners = [each.variable for each in search.conditions]
    operands = Operands()
    compared = np.array([operands.compared(each.program) for each in search.conditions], np.int64).reshape(-1, 6)
    means, comparison, left, right, left_column, right_column = compared.T.copy()
    rows, arguments, codes = _arguments(run, search.totals)
    classifier = plan.columns.classifier
    table = MatchConditionTable(
        condition_first=np.searchsorted(owners, np.arange(plan.variables + 1)),
        code_first=np.array([first for first, _ in spans], np.int64),
        code_last=np.array([last for _, last in spans], np.int64),
        result=np.array([each.program.result for each in search.conditions], np.int64),
        means=means,
        comparison=comparison,
        left=left,
        right=right,
        left_column=left_column,
        right_column=right_column,
        operands=operands.table(),
        place_first=np.array([0, *accumulate(map(len, reads))], np.int64),
        place=np.array([place for read in reads for place in read], np.int64),
        place_set=np.array([-1 if place.members is None else sets.index(place.members) for place in search.places], np.int64),
        from_first=np.array([place.from_first for place in search.places], np.bool_),
        offset=np.array([place.offset for place in search.places], np.int64),
        distance=np.array([place.distance for place in search.places], np.int64),
        inside=np.array([place.inside for place in search.places], np.bool_),
        in_set=np.array([[v in members for v in range(plan.variables)] for members in sets], np.bool_).reshape(-1, plan.variables),
        step=np.array([_step(total) for total in search.totals], np.int64),
        argument=rows,
        stand_in=np.array([_stand_in(total, columns) for total in search.totals], np.int64),
        classifier=search.layout.ints.index(classifier) if classifier in search.layout.ints else -1,
        spelling=classifier_codes(plan, columns).astype(np.int64),
    )
    return ConditionTables(table, programs, arguments, codes)


def _places_read(code: Sequence[tuple[str, int, int, int]]) -> Iterator[int]:
    yield from dict.fromkeys(role for name, _, _, role in code if name in ("load_int", "load_float"))


def _step(total: Total) -> int:
    if total.argument is None:
        return AGGREGATIONS["count_events"]
    if total.function == "count_distinct":
        return COUNT_DISTINCT
    return AGGREGATIONS[f"{total.function}_{'floats' if is_float(total.argument.type) else 'ints'}"]


def _stand_in(total: Total, columns: EventColumns) -> int:
    """Return the integer that stands for NULL: the code of NULL for text, else 0."""
    argument = total.argument
    if isinstance(argument, Field) and argument.type.kind is Kind.STRING:
        return len(columns.texts.values(argument.column))
    return 0


def covers(total: Total, variable: int) -> bool:
    """Return whether a total covers the rows of a variable."""
    return total.members is None or variable in total.members


def _arguments(run: RowRun, totals: Sequence[Total]) -> tuple[Array, Arguments, int]:
    """Return for each total and variable the row of arguments that it reads, the arguments, and how many codes one has at most."""
    plan, length = run.plan, len(run.ordered)
    rows = np.full((len(totals), plan.variables), -1, np.int64)
    # an argument that reads CLASSIFIER() is another one for each variable, and of values that are counted apart there are codes
    known: dict[_Argument, int] = {}
    for t, total in enumerate(totals):
        by_variable = total.argument is not None and any(leaf.column == plan.columns.classifier for leaf in leaves(total.argument))
        for variable in range(plan.variables):
            if covers(total, variable):
                argument = _Argument(total.argument, _is_coded(total), variable if by_variable else None)
                rows[t, variable] = known.setdefault(argument, len(known))
    only = _plain_column(next(iter(known))) if len(known) == 1 else None
    if only is not None:
        return rows, _column(run, only), 0
    ints, floats = np.zeros((len(known), length), np.int64), np.zeros((len(known), length), np.float64)
    arguments = Arguments(ints, floats, np.zeros((len(known), length), np.uint8))
    for (expression, _, each), row in known.items():
        if expression is not None:
            _compute(run, expression, each, row, arguments)
    codes = 0
    for coded in dict.fromkeys(each.expression for each in known if each.coded):
        codes = max(codes, _encode(coded, [row for each, row in known.items() if each.coded and each.expression == coded], arguments))
    return rows, arguments, codes


def _plain_column(argument: _Argument) -> Field | None:
    """Return the column that an argument is as it stands; None if it is none."""
    expression = argument.expression
    return expression if isinstance(expression, Field) and argument.variable is None and not argument.coded else None


def _column(run: RowRun, field: Field) -> Arguments:
    """Return a column as the only argument; nothing is copied if its rows are in order."""
    columns, ordered, length = run.columns, run.ordered, len(run.ordered)
    nulls = columns.null_mask(field.column)
    values = ordered.take(columns.values(field.column))
    states = np.zeros((1, length), np.uint8) if nulls is None else ordered.take(nulls).view(np.uint8).reshape(1, length)
    ints, floats = np.empty((1, 0), np.int64), np.empty((1, 0), np.float64)
    if is_float(field.type):
        floats = values.astype(np.float64, copy=False).reshape(1, length)
    else:
        ints = values.astype(np.int64, copy=False).reshape(1, length)
    return Arguments(ints, floats, states)


def _is_coded(total: Total) -> bool:
    return total.function == "count_distinct"


def _encode(argument: Bound | None, rows: list[int], arguments: Arguments) -> int:
    """Replace values by numbers from 0 on, and return how many there are.

    Equal values have one number: each NaN is the same, and −0.0 is 0.0.
    """
    assert argument is not None, "different values are counted, not rows"
    values = (arguments.floats if is_float(argument.type) else arguments.ints)[rows]
    different, codes = np.unique(values, return_inverse=True)
    arguments.ints[rows] = codes.reshape(values.shape)
    return len(different)


def _compute(run: RowRun, argument: Bound, variable: int | None, row: int, arguments: Arguments) -> None:
    """Write the values of an expression over one row, at all rows, as if each were mapped to `variable`."""
    plan, columns, ordered = run.plan, run.columns, run.ordered
    if isinstance(argument, Field) and variable is None:
        nulls = columns.null_mask(argument.column)
        (arguments.floats if is_float(argument.type) else arguments.ints)[row] = ordered.take(columns.values(argument.column))
        arguments.states[row] = PRESENT if nulls is None else ordered.take(nulls)
        return
    program, layout = compile_over_event(argument)
    table, _ = assemble([program], tabulator(columns))
    bank = ordered_bank(run, layout)
    if variable is not None:
        bank.ints[layout.ints.index(plan.columns.classifier), :-1] = classifier_codes(plan, columns)[variable]
    results = evaluate_program(program, table, bank)
    (arguments.floats if program.is_float else arguments.ints)[row] = (results.floats if program.is_float else results.ints)[:-1]
    arguments.states[row] = np.where(results.failed[:-1], FAILED, np.where(results.nulls[:-1], MISSING, PRESENT))
