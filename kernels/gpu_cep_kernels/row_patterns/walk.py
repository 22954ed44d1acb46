"""Walk to preferred matches where conditions read the match so far, and no row leaves a choice between states.

Behind each state comes one state at most. So a match goes on as long as rows fit, and ends where the automaton last accepted.
Nothing is taken back, and there are no dead ends to be remembered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_cep_kernels.compile.jit import rule, sequential
from gpu_cep_kernels.row_patterns.conditions import Arguments, Here, Mapped, MatchConditionTable, judge, map_row, reset
from gpu_cep_kernels.row_patterns.matches import next_start
from gpu_cep_kernels.row_patterns.runs import NO_RUN, RunTable, end_of_run
from gpu_cep_kernels.row_patterns.search import Outcome
from gpu_cep_kernels.row_patterns.tables import ACCEPT, UNMATCHED, Reach, RowAutomatonTable, first_source, leads_on, limit_of
from gpu_cep_kernels.rules.tables import ColumnBank, Ints, ProgramTable


class _WalkNumber(NamedTuple):
    """Name the numbers of walks."""

    PARTITION: int = 0
    LAST_PARTITION: int = 1  # the one before which they end
    START: int = 2  # −1: the partition's first row comes next
    STEPS: int = 3  # those of this call
    STATE: int = 4  # the state that was to map a row whose condition could not be computed
    ROW: int = 5  # this row


WalkNumber = _WalkNumber()


@rule
def _leads_back(q: int, automaton: RowAutomatonTable) -> bool:
    """Return whether the first move behind a state leads back to it."""
    k = automaton.move_first[q]
    return k < automaton.move_first[q + 1] and automaton.moves[k] == q


@rule
def _walk(
    start: int, begin: int, end: int, automaton: RowAutomatonTable, reach: Reach, table: MatchConditionTable, runs: RunTable,
    programs: ProgramTable, bank: ColumnBank, arguments: Arguments, mapped: Mapped, numbers: Ints,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Return the length of the match that begins in row `start`, its first and last row to skip to, and whether it was found."""
    limit = limit_of(start, end, reach)
    source, row, truth, going = first_source(start, begin, automaton), start, 1, True
    length, first, last, accepted_first, accepted_last = UNMATCHED, -1, -1, -1, -1
    reset(mapped)
    while going:
        k, behind = automaton.move_first[source], automaton.move_first[source + 1]
        q = automaton.moves[k] if k < behind else ACCEPT
        ends = automaton.ends[source] if row == end else k < behind and automaton.moves[behind - 1] < 0
        if ends:
            length, accepted_first, accepted_last = row - start, first, last
        going = q >= 0 and row < end and leads_on(q, row, limit, reach)
        if going:
            v, here = automaton.variable[q], Here(begin, end, start, row)
            map_row(row, v, table, arguments, bank, mapped)
            truth = judge(v, here, table, programs, bank, mapped)
            going = truth == 1
            if truth < 0:
                numbers[WalkNumber.STATE], numbers[WalkNumber.ROW] = q, row
            if going:
                mapped_from = row
                row += 1
                if runs.total[v] != NO_RUN and _leads_back(q, automaton):
                    row = end_of_run(q, v, here, limit, reach, table, runs, bank, arguments, mapped)
                if automaton.target[q]:
                    first = mapped_from if first < 0 else first
                    last = row - 1
                source = q
    numbers[WalkNumber.STEPS] += row - start + 1
    return length, accepted_first, accepted_last, truth >= 0


@sequential(writes=("numbers", "lengths", "bank"), scratch=("mapped",))
def walk_row_matches(
    offsets: Any, automaton: RowAutomatonTable, reach: Reach, to: int, table: MatchConditionTable, runs: RunTable, programs: ProgramTable,
    bank: ColumnBank, arguments: Arguments, most_steps: int, mapped: Mapped, numbers: Ints, lengths: Any,
) -> int:  # fmt: skip
    """Find the matches of the partitions that `numbers` name, as :func:`find_row_matches`; return an Outcome.

    It returns behind the match with which `most_steps` steps are made, and goes on when it is called again.
    """
    outcome = -1
    numbers[WalkNumber.STEPS] = 0
    while outcome < 0:
        p = numbers[WalkNumber.PARTITION]
        if p >= numbers[WalkNumber.LAST_PARTITION]:
            outcome = Outcome.DONE
            continue
        begin, end = offsets[p], offsets[p + 1]
        start = numbers[WalkNumber.START] if numbers[WalkNumber.START] >= 0 else begin
        while start < end and outcome < 0:
            length, first, last, found = _walk(start, begin, end, automaton, reach, table, runs, programs, bank, arguments, mapped, numbers)
            target = start + 1
            if found:
                lengths[start] = length
                target = next_start(start, length, to, first, last) if length > 0 else start + 1
            if not found:
                outcome = Outcome.FAILED
            elif target <= start:
                outcome = Outcome.NO_TARGET
            else:
                start = target
                outcome = Outcome.PAUSED if numbers[WalkNumber.STEPS] >= most_steps else -1
        numbers[WalkNumber.PARTITION], numbers[WalkNumber.START] = (p, start) if start < end else (p + 1, -1)
    return outcome
