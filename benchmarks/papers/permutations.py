"""The thesis' baseline (section 4.7.2): for a sequence of sets one automaton for each order of their variables, all run over the events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, permutations, product
from typing import Any

import numpy as np
import pyarrow as pa

import gpu_cep
from benchmarks.papers.figures import Run, Way
from gpu_cep.engine.accounting.resources import Resources
from gpu_cep.engine.answers import answer
from gpu_cep.keywords import make_options
from gpu_cep.lang.ast import And, Equivalence, PatternNode, Query, Seq, Variable
from gpu_cep.plan.settings import Settings
from gpu_cep.queries.plans import make_plan


def sets_of(query: Query) -> list[tuple[PatternNode, ...]]:
    """Return the sets of variables that follow one another."""
    elements = query.pattern.elements if isinstance(query.pattern, Seq) else (query.pattern,)
    return [element.elements if isinstance(element, And) else (element,) for element in elements]


def orders(query: Query) -> list[Query]:
    """Return one sequence of single variables for each order of the variables of each set."""
    choices = product(*(permutations(members) for members in sets_of(query)))
    return [replace(query, pattern=Seq(tuple(chain.from_iterable(order)))) for order in choices]


def by_permutations(events: pa.Table, query: str, options: Mapping[str, Any]) -> Run:
    """Return the run of all automata, planned ahead. No two find the same match: its events have one order."""
    parsed = _parsed(query)
    settings = Settings(output="indices", algorithm="ses_automaton", prune=())
    keywords = make_options(partition_by=options.get("partition_by"), strategy=options.get("strategy"))
    plans = [make_plan(order, events.schema, keywords, settings) for order in orders(parsed)]
    names = [name for members in sets_of(parsed) for name in _names(members)]

    def run(**keywords: Any) -> pa.Table:
        return pa.concat_tables([answer(plan, events, resources=Resources(1, **keywords)).select(names) for plan in plans])

    return run


def _parsed(query: str) -> Query:
    """Return the query over events that the text is."""
    parsed = gpu_cep.parse(query)
    assert isinstance(parsed, Query), query
    return parsed


def number_of_conforming(found: pa.Table, events: pa.Table, query: str) -> int:
    return int(conforming(found, events, query).num_rows)


def conforming(found: pa.Table, events: pa.Table, query: str) -> pa.Table:
    """Return the matches of the sets' own skip-till-next-match.

    An automaton of one order passes over events that only another order takes. Of a set's variables of one event type,
    the events must be the first of their type behind the set before (or from the match's first event on).
    Types and equivalence tests must be the only conditions, and times must differ.
    """
    parsed = _parsed(query)
    kinds = _kinds(events, parsed) * (events.num_rows + 1)
    places = np.sort(kinds + np.arange(events.num_rows))
    bound = {name: found[name].to_numpy() for name in found.column_names}
    begin = np.min([*bound.values()], axis=0)
    kept = np.ones(found.num_rows, bool)
    for members in sets_of(parsed):
        for own in _by_type(members, bound):
            latest = own.max(axis=0)
            passed = np.searchsorted(places, kinds[latest] + latest) - np.searchsorted(places, kinds[latest] + begin)
            kept &= passed == len(own) - 1
        begin = np.max([bound[name] for name in _names(members)], axis=0) + 1
    return found.filter(pa.array(kept))


def _names(members: tuple[PatternNode, ...]) -> list[str]:
    return [member.name for member in members if isinstance(member, Variable)]


def _by_type(members: tuple[PatternNode, ...], bound: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the events of a set, one row for each variable, those of one event type together."""
    found: dict[str | None, list[np.ndarray]] = {}
    for member in members:
        if isinstance(member, Variable):
            found.setdefault(member.event_type, []).append(bound[member.name])
    return [np.array(rows) for rows in found.values()]


def _kinds(events: pa.Table, query: Query) -> np.ndarray:
    """Return a number for each event: the same for those of one type and one stream, as the equivalence test has it."""
    attributes = [query.where.attribute] if isinstance(query.where, Equivalence) else []
    codes = [events[name].combine_chunks().cast(pa.string()).dictionary_encode().indices.to_numpy() for name in ("type", *attributes)]
    return np.unique(np.stack(codes), axis=1, return_inverse=True)[1].reshape(-1)


PERMUTATIONS = Way("all permutations", prepare=by_permutations, count=number_of_conforming)
