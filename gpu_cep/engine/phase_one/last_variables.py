"""Let only late events be the last of a match, where only matches are asked for that end late.

A run over a stream asks for the matches that end after the last run. With skip-till-any-match each set
of events is a match by itself. So if one variable comes last and binds one event, no other match
depends on the events before that fit it: their labels lose its bit, and matchers never form what was
reported before.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_cep.engine.events.ordered_events import OrderedEvents
from gpu_cep.engine.events.own_events import TimeSlice
from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.phase_one.run import EventRun
from gpu_cep_kernels.rules.scalars import LABEL_BITS


def ending_late(run: EventRun, ordered: OrderedEvents) -> OrderedEvents:
    """Return the events without the bits of last variables before the slice `ends` of the run; as they are, if they might matter."""
    if not isinstance(run.reported.ends, TimeSlice) or run.reported.ends.begin is None:
        return ordered
    bits = _last_bits(run)
    if not bits:
        return ordered
    times = ordered.times if ordered.times.dtype.kind == "f" else ordered.times.view(np.int64)
    early, labels = times < run.reported.ends.begin, ordered.labels.copy()
    kind = labels.dtype.type
    for number, word in enumerate(labels):
        word[early] &= kind(~(bits >> LABEL_BITS * number) & int(np.iinfo(kind).max))
    return replace(ordered, labels=labels)


def _last_bits(run: EventRun) -> int:
    """Return the last variable of each branch as bits; 0 if a match may depend on others that end before it."""
    if run.plan.query.strategy != "skip_till_any_match" or not run.plan.settings.keeps_all:
        return 0
    lasts = [_last_of(tables) for tables in run.tables]
    bits = 0
    for last in lasts:
        if last is None:
            return 0
        bits |= 1 << last
    of_branches = [sum(1 << variable for variable in tables.branch.positives) for tables in run.tables]
    # a variable that is the last one of a branch must not be one before the last of another
    apart = all(own & bits == 1 << last for own, last in zip(of_branches, lasts, strict=True) if last is not None)
    return bits if apart else 0


def _last_of(tables: MatcherTables) -> int | None:
    """Return the variable behind all others of a branch, if it binds one event."""
    pattern, positives = tables.pattern, tables.branch.positives
    behind_all = [v for v in range(len(positives)) if pattern.precedes[:, v].sum() == len(positives) - 1 and pattern.maximum[v] == 1]
    return positives[behind_all[0]] if behind_all else None
