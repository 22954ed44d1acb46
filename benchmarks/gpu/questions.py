"""What both engines are asked at many sizes: a question for each way to match on a card, with as many events in each stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.baselines.interval_peer import Listing1
from benchmarks.baselines.measure import events_of, of_usual_length
from benchmarks.workloads import drives
from benchmarks.workloads.questions import WORKLOADS, Workload, query_text
from gpu_cep.keywords import make_options
from gpu_cep.plan.interval_plan import AnyPlan
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan

OUTPUT = "count"


@dataclass(frozen=True, slots=True)
class Question:
    """A query over any number of events; `about` says it to readers, `text` and `events` are of a size.

    It is answered by an `algorithm`, and asks for the matches that `after_match` keeps.
    """

    name: str
    about: str
    key: str | None
    text: Callable[[int], str]
    events: Callable[[int], pa.Table]
    algorithm: str = "auto"
    after_match: str = "all"

    def plan(self, size: int, schema: pa.Schema, engine: str) -> AnyPlan:
        """Return the plan for so many events of `schema` on an engine; matches are counted."""
        settings = Settings(output=OUTPUT, engine=engine, algorithm=self.algorithm, after_match=self.after_match)
        return make_plan(self.text(size), schema, make_options(partition_by=self.key), settings)


def _of_workload(workload: Workload) -> Question:
    return Question(
        workload.name,
        f"`{workload.query}`",
        workload.key,
        lambda size: query_text(workload, of_usual_length(workload, size).streams),
        lambda size: events_of(of_usual_length(workload, size)),
    )


_LISTING = Question(
    "drivers",
    f"TPStream's Listing 1 as printed, an interval pattern, over {drives.CARS:,} cars",
    None,
    lambda size: Listing1().text,
    drives.car_reports,
)

# A sequence with conditions on pairs, whose runs a card follows.
_RISING = replace(
    WORKLOADS["stocks"],
    name="stocks_rising",
    query="PATTERN SEQ(A a, B b+, C c) WHERE b[i].price > b[i-1].price AND c.price < last(b.price)",
)
# The same with a mean in a condition: the card judges by programs and keeps aggregates, for which it has other code.
_MEAN = replace(
    WORKLOADS["stocks"],
    name="stocks_mean",
    query="PATTERN SEQ(A a, B b+, C c) WHERE b[i].price > b[i-1].price AND c.price < avg(b.price)",
)
# A rising sequence unless another event comes between, which a card rules out behind the runs.
_UNBROKEN = replace(
    WORKLOADS["stocks"],
    name="stocks_unbroken",
    query="PATTERN SEQ(A a, NOT(C n), B b+, C c) WHERE n.price > a.price AND b[i].price > b[i-1].price AND c.price < last(b.price)",
)
# A sequence of single variables whose runs step back, which a card follows, too.
_ROBUST = replace(
    WORKLOADS["stocks"],
    name="stocks_robust",
    query="PATTERN SEQ(A a, B b, C c) WHERE robust_skip_till_next_match { b.price > a.price AND c.price < b.price }",
)
# One of two sequences: a card follows the runs of each, and the host unites their matches.
_EITHER = replace(
    WORKLOADS["stocks"],
    name="stocks_either",
    query="PATTERN SEQ(A a, OR(B b, C d), C c) WHERE b.price > a.price AND d.price < a.price AND c.price < a.price",
)
# A rise of neighbours and a fall, whose matches a card reads off lifted labels; rows of that kind are less rare than in ticks.
_IN_A_ROW = replace(
    WORKLOADS["stocks"],
    name="stocks_in_a_row",
    query="PATTERN SEQ(A a, B b+, C c) WHERE strict_contiguity { b[i].price > b[i-1].price AND c.price < last(b.price) }",
    shares={"A": 0.1, "B": 0.5, "C": 0.2, "Q": 0.2},
)
# A sequence without conditions between bindings, whose matches a card counts without enumerating them.
_COUNTED = replace(
    WORKLOADS["selective"],
    name="selective_counted",
    query="PATTERN SEQ(Quote q, Trade t, Halt h) WHERE skip_till_any_match { q.price < 50 }",
)
_SELECTIVE = _of_workload(WORKLOADS["selective"])
# The selective question by joins, which run on a card.
_JOINED = replace(_SELECTIVE, name="selective_joined", about=f'{_SELECTIVE.about}, `algorithm="join_tree"`', algorithm="join_tree")

# A rise and a fall of any events: many of these matches overlap, and a card takes those that must not where it reads them.
_RISE_FALL = _of_workload(
    replace(
        WORKLOADS["stocks"],
        name="stocks_apart",
        query="PATTERN SEQ(a, b+, c) WHERE strict_contiguity { b[1].price > a.price AND b[i].price > b[i-1].price "
        "AND c.price < last(b.price) }",
    )
)
_APART = replace(_RISE_FALL, about=f'{_RISE_FALL.about}, `after_match="skip_past_last"`', after_match="skip_past_last")

_OWN = (*map(_of_workload, (_RISING, _MEAN, _UNBROKEN, _ROBUST, _EITHER, _IN_A_ROW)), _APART, _of_workload(_COUNTED), _JOINED, _LISTING)
QUESTIONS = {question.name: question for question in (*map(_of_workload, WORKLOADS.values()), *_OWN)}
