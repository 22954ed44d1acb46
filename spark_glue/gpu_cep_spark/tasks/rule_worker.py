"""Match many patterns over the events of one Spark partition on an executor."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext

from gpu_cep.engine.accounting.match_budget import Spent
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.events.own_events import WHOLE
from gpu_cep.engine.input.input_events import InputEvents
from gpu_cep.errors import CepError
from gpu_cep.rule_sets.plans import PlannedRule, PlannedRules
from gpu_cep.rule_sets.rules import naming
from gpu_cep.rule_sets.runs import run_shared, share_events
from gpu_cep.rule_sets.tables import join_results
from gpu_cep_spark.slices.own_rows import separate_own_rows
from gpu_cep_spark.tasks.devices import use_device_of_task
from gpu_cep_spark.tasks.results import as_promised, in_batches
from gpu_cep_spark.tasks.worker import Work, as_events, parts_of, refuse_untimed, room_for
from gpu_cep_spark.tasks.worker_memory import tasks_at_once


@dataclass(frozen=True, slots=True)
class RuleWork:
    """The work on each Spark partition, which holds whole streams, or slices of one without keys: that of all `rules`.

    `work` says what all share: events, keys and memory. Its plan is that of a rule, and its result has the
    name of the pattern first.
    """

    work: Work
    rules: tuple[PlannedRule, ...]


def match_rules_of_partition(given: RuleWork, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the matches of each rule among the events of one Spark partition.

    Raises
    ------
    CepError
        Any error of the engine, with the name of the pattern in the message.
    """
    context, work = TaskContext.get(), given.work
    use_device_of_task(context, os.environ)
    cores, concurrent = 1 if context is None else context.cpus(), tasks_at_once(context)
    spent = {rule.name: Spent() for rule in given.rules}
    try:
        with closing(parts_of(work, batches, room_for(work, context), Profile())) as parts:
            for part in parts:
                found = _match_rules(given, as_events(part.events, work.events, work.codes), cores, concurrent, spent)
                yield from (as_promised(rows, work.result) for rows in in_batches(found))
    except CepError as fault:
        # without the frames of the engine, which tell a user nothing
        raise fault.with_traceback(None) from None


def _match_rules(given: RuleWork, events: pa.Table, cores: int, concurrent: int, spent: dict[str, Spent]) -> pa.Table:
    """Return the matches of all rules among events, as one table."""
    for rule in given.rules:
        with naming(rule.name):
            refuse_untimed(given.work, rule.plan, events)
    events, own, _ = separate_own_rows(given.work.plan, events) if given.work.sliced else (events, WHOLE, None)
    shared = PlannedRules(InputEvents(events), events, given.rules, {}, {})
    found = run_shared(shared, share_events(shared, cores), Resources(cores, concurrent=concurrent), _fail, spent=spent, own=own)
    return join_results({rule.name: found[rule.name] for rule in given.rules})


def _fail(name: str, fault: CepError) -> None:
    raise fault
