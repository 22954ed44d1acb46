"""Evaluate conditions between bindings when an event is about to be bound: one generic body for all of them.

A condition has a part for each variable that it reads. A part's combinations
are the events, or pairs of events, of that variable's binding that it reads.
A condition must hold for every combination of its parts' combinations. A
*cursor* is a place on the path, at which a part's current combination stands.
"""

from __future__ import annotations

from gpu_cep_kernels.compile.jit import rule
from gpu_cep_kernels.rules.interpreter import holds, run_program
from gpu_cep_kernels.rules.running import is_null
from gpu_cep_kernels.rules.scalars import compare
from gpu_cep_kernels.rules.tables import (
    BY_INTS,
    BY_PROGRAM,
    CONSECUTIVELY,
    NO_EVENT,
    NO_VARIABLE,
    ONCE,
    PAIRWISE,
    SINGLY,
    ColumnBank,
    ComparisonTable,
    Conditions,
    ConditionTable,
    EventPath,
    PathState,
    PatternTable,
)
from gpu_cep_kernels.rules.walked import JudgedConditions, JudgingPath


@rule
def comparison_holds(c: int, left_row: int, right_row: int, table: ComparisonTable, bank: ColumnBank) -> bool:
    """Return whether condition c, one comparison of two columns, holds for two rows; with NULL it does not."""
    left, right = table.left_column[c], table.right_column[c]
    if table.means[c] == BY_INTS:
        true = compare(table.comparison[c], bank.ints[left, left_row], bank.ints[right, right_row])
        null = is_null(bank.int_nulls, left, left_row) or is_null(bank.int_nulls, right, right_row)
    else:
        true = compare(table.comparison[c], bank.floats[left, left_row], bank.floats[right, right_row])
        null = is_null(bank.float_nulls, left, left_row) or is_null(bank.float_nulls, right, right_row)
    return true and not null


@rule
def first_cursor(g: int, v: int, table: ConditionTable, path: EventPath) -> int:
    """Return the place on the path of the first event that part g combines with a new event of v.

    It is -1 if the part reads the new event alone, and -2 if it has nothing to read: the condition then holds.
    """
    u, spread = table.variable[g], table.spread[g]
    cursor = path.last[u]
    if u == v and spread <= SINGLY:
        # further events change nothing in what is read of a whole binding, or the condition waits until none can come
        vacuous = spread == ONCE and cursor >= 0
        cursor = -1
    else:
        vacuous = cursor < 0 or (u != v and spread == CONSECUTIVELY and path.earlier[cursor] < 0)
    return -2 if vacuous else cursor


@rule
def _next_cursor(g: int, v: int, cursor: int, table: ConditionTable, path: EventPath) -> int:
    """Return the place on the path of the next event that part g combines with it; −1 if there is none."""
    following_cursor = -1
    spread = table.spread[g]
    if spread != ONCE and (table.variable[g] != v or spread == PAIRWISE):
        following_cursor = path.earlier[cursor] if cursor >= 0 else -1
        if following_cursor >= 0 and spread == CONSECUTIVELY and path.earlier[following_cursor] < 0:
            following_cursor = -1
    return following_cursor


@rule
def set_rows(g: int, v: int, event: int, cursor: int, base: int, table: ConditionTable, path: EventPath) -> None:
    """Write what each role of part g reads, for its combination at `cursor`.

    That is a row of the bank and a place on the path, both kept in the registers.
    """
    rows, places = path.registers.rows, path.registers.places
    u = table.variable[g]
    own = u == v
    if table.each[g] >= 0:
        rows[table.each[g]] = base + (event if own else path.event[cursor])
    if table.previous[g] >= 0:
        place = cursor if own else path.earlier[cursor]
        rows[table.previous[g]] = base + path.event[place]
        places[table.previous[g]] = place
    if table.start[g] >= 0:
        rows[table.start[g]] = base + (path.event[path.first[u]] if path.last[u] >= 0 else event)
    if table.end[g] >= 0:
        rows[table.end[g]] = base + path.event[path.last[u]]
        places[table.end[g]] = path.last[u]


@rule
def _pair_holds(c: int, v: int, event: int, conditions: Conditions, path: EventPath) -> bool:
    """Return whether condition c, a comparison of two single variables, holds if v binds `event`.

    It is true while the other variable is unbound.
    """
    table, base = conditions.table, conditions.base
    left, right = table.left_variable[c], table.right_variable[c]
    place = path.last[right if left == v else left]
    true = True
    if place >= 0:
        other = path.event[place]
        true = comparison_holds(c, base + (event if left == v else other), base + (event if right == v else other), table, conditions.bank)
    return true


@rule
def program_holds(c: int, conditions: JudgedConditions, path: JudgingPath) -> bool:
    """Return whether the program of condition c says TRUE of the rows and places in the path's registers; an error is told in its state."""
    table, registers, stand_ins = conditions.table, path.registers, conditions.aggregates.missing
    first, last = table.code_first[c], table.code_last[c]
    error = run_program(first, last, conditions.programs, conditions.bank, stand_ins, path.aggregates, registers)
    if error != 0:
        path.state[PathState.ERROR_CONDITION] = c + 1
    return holds(table.result[c], registers)


@rule
def condition_holds(c: int, v: int, event: int, conditions: Conditions, path: EventPath) -> bool:
    """Return whether condition c holds for all combinations of bound events with `event` as v's new one; true if there are none.

    If the condition does not read v, these are all combinations of bound events.
    """
    table, bank, registers = conditions.table, conditions.bank, path.registers
    first, last = table.part_first[c], table.part_first[c + 1]
    combined = True
    for g in range(first, last):
        cursor = first_cursor(g, v, table, path)
        combined = combined and cursor != -2
        path.cursor[g - first] = cursor
    true = True
    while combined and true:
        for g in range(first, last):
            set_rows(g, v, event, path.cursor[g - first], conditions.base, table, path)
        if table.means[c] == BY_PROGRAM:
            true = program_holds(c, conditions, path)
        else:
            true = comparison_holds(c, registers.rows[table.left_role[c]], registers.rows[table.right_role[c]], table, bank)
        combined = False
        for g in range(first, last):
            if not combined:
                cursor = _next_cursor(g, v, path.cursor[g - first], table, path)
                combined = cursor >= 0
                path.cursor[g - first] = cursor if combined else first_cursor(g, v, table, path)
    return true


@rule
def is_decided(c: int, v: int, table: ConditionTable, path: EventPath) -> bool:
    """Return whether all variables of condition c but v are bound."""
    decided = True
    for g in range(table.part_first[c], table.part_first[c + 1]):
        u = table.variable[g]
        decided = decided and (u == v or path.last[u] >= 0)
    return decided


@rule
def is_closed(c: int, v: int, pattern: PatternTable, table: ConditionTable, path: EventPath) -> bool:
    """Return whether the variables that condition c waits for can bind no more once v binds: each has a bound variable behind it.

    A negated v has a number above those of the others. Its events are judged when the match is complete.
    """
    closed = True
    for k in range(table.closing_first[c], table.closing_first[c + 1]):
        u = table.closing[k]
        followed = v >= pattern.order.size
        for j in range(pattern.following_first[u], pattern.following_first[u + 1]):
            w = pattern.following[j]
            followed = followed or w == v or path.last[w] >= 0
        closed = closed and followed
    return closed


@rule
def conditions_hold(v: int, event: int, pattern: PatternTable, conditions: Conditions, path: EventPath) -> bool:
    """Return whether all conditions that are decided by binding `event` to v hold."""
    table = conditions.table
    true = True
    for k in range(table.first[v], table.first[v + 1]):
        c = table.listed[k]
        if true and table.left_variable[c] >= 0:
            true = _pair_holds(c, v, event, conditions, path)
        elif true and is_closed(c, v, pattern, table, path):
            true = condition_holds(c, v, event, conditions, path)
    return true


@rule
def final_conditions_hold(conditions: Conditions, path: EventPath) -> bool:
    """Return whether the conditions that only the end of a match decides hold for the events bound."""
    true = True
    for k in range(conditions.table.final.size):
        if true:
            true = condition_holds(conditions.table.final[k], NO_VARIABLE, NO_EVENT, conditions, path)
    return true
