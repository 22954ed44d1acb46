"""Say what a run may use of this machine, and who receives what it has counted."""

from __future__ import annotations

from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.records import record


@record()
class Resources:
    """What a run may use, and what it adds to.

    `threads`: how many it uses (None: one for each core of the process). `profile`: receives counts and seconds of each stage.
    `concurrent`: how many such runs share the memory of this machine, as the tasks of a Spark executor's host do.
    `spent`: what runs over other parts of the events have used of `max_matches` and `max_steps`; the run adds to it.
    """

    threads: int | None = None
    profile: Profile | None = None
    concurrent: int = 1
    spent: Spent | None = None


ALL_CORES = Resources()
