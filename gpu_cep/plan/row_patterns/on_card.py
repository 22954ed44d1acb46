"""Say whether a card that labels the rows of a row pattern finds its matches, too."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_cep.plan.row_patterns.row_plan import RowPlan

MOST_STATES = 64
"""The most states of an automaton that a card follows: they are the bits of a word."""


def left_to_cpu(plan: RowPlan) -> str:
    """Return why the CPU finds the matches of rows that a card has labelled; empty if the card finds them."""
    return next(_reasons(plan), "")


def _reasons(plan: RowPlan) -> Iterator[str]:
    states = len(plan.automaton.variable)
    if plan.search is not None:
        yield "conditions read the match"
    if not 0 < states <= MOST_STATES:
        yield f"the pattern has {states:,} states, not 1 to {MOST_STATES}"
    if any(condition.program.calls for condition in plan.neighbours):
        yield "a condition on other rows calls a function"
