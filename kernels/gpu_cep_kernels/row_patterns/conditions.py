"""Judge conditions that read the match so far, while rows are mapped one after the other and taken back.

What was mapped is kept by place: the rows of a set of variables, and the value of each total after each of its rows.
So taking a row back undoes nothing but a count.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.row_patterns.operands import ALONE, Operand, OperandTable, float_side, int_side
from gpu_cep_kernels.rules.conditions import comparison_holds
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.running import SUM_OVERFLOWED, Aggregation
from gpu_cep_kernels.rules.scalars import add_ints, compare, mix_hash
from gpu_cep_kernels.rules.tables import BY_INTS, BY_PROGRAM, AggregateValues, ColumnBank, Flags, Floats, Ints, ProgramTable, Registers

COUNT_DISTINCT = -1
"""The step of a total that counts different values; its arguments are their codes."""

PRESENT, MISSING, FAILED = 0, 1, 2
"""What an argument of a total is in a row: a value, NULL, or not computable."""


class MatchConditionTable(NamedTuple):
    """Hold the conditions that read the match. In indexes v is a variable, c a condition, j a set of variables, t a total.

    - condition_first[v]: the first condition of a variable, all of which must hold, with the end.
    - code_first[c], code_last[c], result[c]: its program, and the register of its truth.
    - means[c]: how it is judged: by its program, or as one comparison of int64 or of float64 (BY_PROGRAM, BY_INTS, BY_FLOATS).
    - comparison[c], left[c], right[c]: this comparison, and the first operands of its sides.
    - left_column[c], right_column[c]: the columns that the sides are; −1 if one of them is none.
    - operands: these operands.
    - place, place_first: for each condition the places that it reads; a place is a role.
    - place_set[k], from_first[k], offset[k], distance[k], inside[k]: where place k leads; its set is −1 for any row.
    - in_set[j, v]: whether a set has a variable.
    - step[t]: what a row does to a total (Aggregation, or COUNT_DISTINCT).
    - argument[t, v]: the row of arguments that it reads at a row of v; −1 if it does not cover v.
    - stand_in[t]: the integer that stands for NULL.
    - classifier: the column of the bank that says to which variable a row is mapped; −1 if none is read.
    - spelling[v]: what it holds for a row of v.
    """

    condition_first: Ints
    code_first: Ints
    code_last: Ints
    result: Ints
    means: Ints
    comparison: Ints
    left: Ints
    right: Ints
    left_column: Ints
    right_column: Ints
    operands: OperandTable
    place_first: Ints
    place: Ints
    place_set: Ints
    from_first: Flags
    offset: Ints
    distance: Ints
    inside: Flags
    in_set: Flags
    step: Ints
    argument: Ints
    stand_in: Ints
    classifier: int
    spelling: Ints


class Arguments(NamedTuple):
    """Hold the arguments of totals at each row: ``ints[a, row]`` or ``floats[a, row]``, and what they are (PRESENT …)."""

    ints: Ints
    floats: Floats
    states: Any


class Here(NamedTuple):
    """Say where a search is: in the partition from `begin` to before `end`, in a match from row `start`, at the current `row`."""

    begin: int
    end: int
    start: int
    row: int


class Mapped(NamedTuple):
    """Hold what is mapped so far.

    - rows[j, i]: the i-th row of set j; ``counts[j]`` says how many there are.
    - totals: the value of total t after its i-th row, ``i = covered[t]``; place 0 is that of no row.
    - codes[t, i]: the code of the i-th value of a total that counts different ones; −1 for NULL.
    - places[t, code]: where a code was added last as a new one; it is there still if it stands there, before ``covered[t]``.
    - registers: where programs work.
    """

    rows: Ints
    counts: Ints
    totals: AggregateValues
    covered: Ints
    codes: Ints
    places: Ints
    registers: Registers


@rule
def reset(mapped: Mapped) -> None:
    """Take back all rows."""
    for j in range(mapped.counts.size):
        mapped.counts[j] = 0
    for t in range(mapped.covered.size):
        mapped.covered[t] = 0


@rule
def map_row(row: int, v: int, table: MatchConditionTable, arguments: Arguments, bank: ColumnBank, mapped: Mapped) -> None:
    """Map a row to variable v."""
    for j in range(table.in_set.shape[0]):
        if table.in_set[j, v]:
            mapped.rows[j, mapped.counts[j]] = row
            mapped.counts[j] += 1
    for t in range(table.step.size):
        a = table.argument[t, v]
        if a >= 0:
            before = mapped.covered[t]
            if table.step[t] == COUNT_DISTINCT:
                _add_distinct(t, before, a, row, arguments, mapped)
            else:
                _add(t, before, a, row, table.step[t], arguments, mapped.totals)
            mapped.covered[t] = before + 1
    if table.classifier >= 0:
        bank.ints[table.classifier, row] = table.spelling[v]


@rule
def unmap_row(v: int, table: MatchConditionTable, mapped: Mapped) -> None:
    """Take back the last row, which is mapped to variable v."""
    for j in range(table.in_set.shape[0]):
        mapped.counts[j] -= table.in_set[j, v]
    for t in range(table.step.size):
        mapped.covered[t] -= table.argument[t, v] >= 0


@rule
def _next_float(step: int, first: bool, total: float, value: float) -> float:
    """Return a total of floats after one more value; the least and the greatest are NaN if one value is."""
    found = total + value
    if step != Aggregation.SUM_FLOATS:
        lesser = value < total if step == Aggregation.MIN_FLOATS else value > total
        found = value if first or lesser or value != value else total
    return found


@rule
def next_total(step: int, a: int, row: int, count: int, whole: int, real: float, arguments: Arguments) -> tuple[int, int, float]:
    """Return a total after one more row, of whose argument a: of how many values it is, and what it is of int64 and of float64."""
    if step == Aggregation.COUNT_EVENTS:
        count += 1
    elif count == SUM_OVERFLOWED or arguments.states[a, row] == FAILED:
        count = SUM_OVERFLOWED
    elif arguments.states[a, row] == PRESENT:
        first = count == 0
        count += 1
        if step >= Aggregation.COUNT_FLOATS:
            real = _next_float(step, first, real, arguments.floats[a, row])
        elif step == Aggregation.SUM_INTS:
            whole, wrapped = add_ints(whole, arguments.ints[a, row])
            count = SUM_OVERFLOWED if wrapped else count
        else:
            number = arguments.ints[a, row]
            whole = number if first else min(whole, number) if step == Aggregation.MIN_INTS else max(whole, number)
    return count, whole, real


@rule
def _add(t: int, before: int, a: int, row: int, step: int, arguments: Arguments, totals: AggregateValues) -> None:
    """Set total t after one more row."""
    count, whole, real = next_total(step, a, row, totals.counts[t, before], totals.ints[t, before], totals.floats[t, before], arguments)
    totals.counts[t, before + 1] = count
    totals.ints[t, before + 1] = whole
    totals.floats[t, before + 1] = real


@rule
def _add_distinct(t: int, before: int, a: int, row: int, arguments: Arguments, mapped: Mapped) -> None:
    """Set total t, which counts different values, after one more row; its numbers tell sets of values apart by 128 bits."""
    totals = mapped.totals
    count, code = totals.counts[t, before], -1
    one, other = totals.ints[t, before], totals.floats[t, before]
    if count == SUM_OVERFLOWED or arguments.states[a, row] == FAILED:
        count = SUM_OVERFLOWED
    elif arguments.states[a, row] == PRESENT:
        code = arguments.ints[a, row]
        at = mapped.places[t, code]
        if at >= before or mapped.codes[t, at] != code:
            count += 1
            mapped.places[t, code] = before
            one = one ^ _fingerprint(code, 1)
            other = np.int64(np.float64(other).view(np.int64) ^ _fingerprint(code, 2)).view(np.float64)
    mapped.codes[t, before] = code
    totals.counts[t, before + 1] = count
    totals.ints[t, before + 1] = one
    totals.floats[t, before + 1] = other


@rule
def _fingerprint(code: int, seed: int) -> np.int64:
    mixed = mix_hash(mix_hash(mix_hash(np.uint64(seed), code + 1), seed), code + 1)
    return np.uint64(mixed).view(np.int64)


@rule
def at_distance(found: int, distance: int, here: Here) -> int:
    """Return the row so far behind a row, or −1 if there is none in the partition."""
    there = found + distance
    return there if found >= 0 and here.begin <= there < here.end else -1


@rule
def row_or_none(row: int, bank: ColumnBank) -> int:
    """Return a row of the bank: that of NULLs for −1."""
    return row if row >= 0 else bank.ints.shape[1] - 1


@rule
def row_at(k: int, here: Here, table: MatchConditionTable, mapped: Mapped) -> int:
    """Return the row to which place k leads from the current row, or −1."""
    j, offset, found = table.place_set[k], table.offset[k], -1
    if j < 0:
        found = here.start + offset if table.from_first[k] else here.row - offset
        found = found if here.start <= found <= here.row else -1
    else:
        count = mapped.counts[j]
        i = offset if table.from_first[k] else count - 1 - offset
        if 0 <= i < count:
            found = mapped.rows[j, i]
    found = at_distance(found, table.distance[k], here)
    if table.inside[k] and (found < here.start or found > here.row):
        found = -1
    return found


@rule
def judge(v: int, here: Here, table: MatchConditionTable, programs: ProgramTable, bank: ColumnBank, mapped: Mapped) -> int:
    """Return whether all conditions of variable v hold at the current row: 1 or 0; −1 if one cannot be computed."""
    holding, failing = True, False
    for c in range(table.condition_first[v], table.condition_first[v + 1]):
        true, error = False, 0
        if table.means[c] == BY_PROGRAM:
            registers = mapped.registers
            for i in range(table.place_first[c], table.place_first[c + 1]):
                k = table.place[i]
                registers.rows[k] = row_or_none(row_at(k, here, table, mapped), bank)
            for t in range(table.step.size):
                registers.places[t] = mapped.covered[t]
            error = run_program(table.code_first[c], table.code_last[c], programs, bank, table.stand_in, mapped.totals, registers)
            true = holds(table.result[c], registers)
        elif table.left_column[c] >= 0:
            true = _columns_compare(c, here, table, bank, mapped)
        else:
            true, error = _sides_compare(c, here, table, bank, mapped)
        holding, failing = holding and true, failing or error != 0
    truth = 1 if holding else 0
    return -1 if failing else truth


@rule
def _columns_compare(c: int, here: Here, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped) -> bool:
    """Return whether condition c, a comparison of two columns, holds; it does not if one is read where there is no row."""
    places = table.operands.other
    left, right = row_at(places[table.left[c]], here, table, mapped), row_at(places[table.right[c]], here, table, mapped)
    return left >= 0 and right >= 0 and comparison_holds(c, left, right, table, bank)


@rule
def row_of_operand(o: int, here: Here, table: MatchConditionTable, mapped: Mapped) -> int:
    """Return the row that operand o reads, −1 if there is none; any row if it reads no column."""
    kind = table.operands.kind[o]
    reads = kind == Operand.COLUMN or kind == Operand.COLUMN_OF_INTS
    return row_at(table.operands.other[o], here, table, mapped) if reads else 0


@rule
def rows_of_side(o: int, here: Here, table: MatchConditionTable, mapped: Mapped) -> tuple[int, int]:
    """Return the rows that the operands of a side read, of which o is the first."""
    alone = table.operands.operation[o] == ALONE
    return row_of_operand(o, here, table, mapped), 0 if alone else row_of_operand(o + 1, here, table, mapped)


@rule
def _sides_compare(c: int, here: Here, table: MatchConditionTable, bank: ColumnBank, mapped: Mapped) -> tuple[bool, int]:
    """Return (whether the comparison that condition c is holds, whether it cannot be computed); with NULL it does not hold."""
    one, other, operands, totals, covered = table.left[c], table.right[c], table.operands, mapped.totals, mapped.covered
    one_rows, other_rows = rows_of_side(one, here, table, mapped), rows_of_side(other, here, table, mapped)
    if table.means[c] == BY_INTS:
        whole, one_null, one_failed = int_side(one, one_rows, operands, bank, totals, covered)
        other_whole, other_null, other_failed = int_side(other, other_rows, operands, bank, totals, covered)
        true = compare(table.comparison[c], whole, other_whole)
    else:
        real, one_null, one_failed = float_side(one, one_rows, operands, bank, totals, covered)
        other_real, other_null, other_failed = float_side(other, other_rows, operands, bank, totals, covered)
        true = compare(table.comparison[c], real, other_real)
    return true and not (one_null or other_null), 1 if one_failed or other_failed else 0
