"""Drop the matches of a first event beyond the limit for one, while others are still being found."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.engine.accounting.match_budget import Account
from gpu_cep.engine.events.matches import Matches
from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.input.event_columns import EventColumns
from gpu_cep.engine.output.after_match import first_of_starts
from gpu_cep.plan.event_plan import EventPlan


@dataclass(frozen=True, slots=True)
class StartLimit:
    """The most matches of a first event that are kept, and what tells which: the ranking of `plan`, or the order of results."""

    plan: EventPlan
    columns: EventColumns
    ordered: OrderedEvents
    most: int

    def keep(self, matches: Matches, positives: tuple[int, ...], budget: Account) -> Matches:
        """Return the matches that are kept, in the same order; the budget gets the bytes of the others back.

        The matches are of a branch that binds the variables `positives`. They stand together by first event, and each event's
        in result order. If some of a first event are missing, those that are kept in the end are kept here.
        """
        whole = matches.widen(positives, len(self.plan.query.positives))
        kept = first_of_starts(self.plan, self.columns, self.ordered, whole, self.most)
        if len(kept) == len(matches):
            return matches
        fewer = matches.reorder(kept)
        budget.give_back(len(matches) - len(fewer), len(matches.events) - len(fewer.events))
        return fewer


def start_limit(plan: EventPlan, columns: EventColumns, ordered: OrderedEvents) -> StartLimit | None:
    """Return the limit of the plan; None if it keeps all matches of a first event, or chooses otherwise."""
    most = plan.settings.limit_per_start
    return None if most is None else StartLimit(plan, columns, ordered, most)
