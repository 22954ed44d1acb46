"""What all matchers share: the search they serve, and the protocol by which the road through the engine calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpu_cep.engine.batches import Batch
from gpu_cep.engine.budget import Budget
from gpu_cep.engine.matches import Indices, Matches
from gpu_cep.engine.patterns import MatcherTables
from gpu_cep.engine.profile import Profile
from gpu_cep.engine.slices import WHOLE, TimeSlice
from gpu_cep.engine.streams import OrderedEvents
from gpu_cep.plan.plan import Plan


class ConditionOverflow(Exception):
    """An int64 overflow in a condition: its number and the event at which the window starts."""

    def __init__(self, condition: int, start: int) -> None:
        super().__init__(condition, start)
        self.condition = condition
        self.start = start


@dataclass(frozen=True, slots=True)
class Search:
    """What is sought and where; shared by all batches and threads. Only matches that start in `own` are asked for."""

    plan: Plan
    tables: MatcherTables
    ordered: OrderedEvents
    budget: Budget
    profile: Profile
    own: TimeSlice = WHOLE


class Matcher(Protocol):
    """An algorithm: finds or counts the matches that start in a batch."""

    def find(self, batch: Batch) -> Matches:
        """The matches, in order of first event, last event and bindings."""

    def count(self, batch: Batch) -> tuple[Indices, Indices]:
        """How many matches the streams of the batch have, in any number of parts: ascending starts of matches, and a number at each."""
