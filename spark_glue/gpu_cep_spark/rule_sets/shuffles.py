"""Choose the shuffles of a rule set on Spark: as few as keep every stream of every rule together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from gpu_cep.analysis.bound import TimeWindow
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_spark.jobs import keys_of_shuffle
from gpu_cep_spark.narrowing.narrow_queries import NarrowQuery, time_kind
from gpu_cep_spark.slices.choice import AUTO, KnownStreams, choose_slicing, looks_back, reason_against
from gpu_cep_spark.slices.cut import Slicing
from gpu_cep_spark.slices.stream_costs import ASSUMED_CORES

Keys = frozenset[str]
Columns = frozenset[str]

# The most sets of keys that no rule has and of which a sample is taken.
_MOST_SAMPLES = 16
# To read the events once more costs as much as to shuffle so many further columns of them.
_READING = 3
# Keys spread rows well if the largest stream has at most this share of what a core does.
_SHARE_OF_CORE = 0.5


@dataclass(frozen=True, slots=True)
class RuleShuffle:
    """Rules that share one shuffle, which moves every column that at least one of them reads.

    Rows with equal values of `keys` come together. Without keys, those of one slice of time do if there is a `slicing`, else all.
    """

    queries: Mapping[str, NarrowQuery]
    keys: Keys = frozenset()
    slicing: Slicing | None = None


@dataclass(frozen=True, slots=True)
class Shuffles:
    """The shuffles of a rule set; `alone` says why a rule is matched by a call of its own, by its name."""

    shared: tuple[RuleShuffle, ...]
    alone: Mapping[str, str]


def choose_shuffles(queries: Mapping[str, NarrowQuery], known_of: Callable[[NarrowQuery, Keys], KnownStreams]) -> Shuffles:
    """Return the shuffles that serve all rules.

    Parameters
    ----------
    queries
        The rules by name.
    known_of
        Returns what is known of the events, for the times of a query and for streams with some keys.
    """
    keyless: dict[Any, dict[str, NarrowQuery]] = {}
    alone: dict[str, str] = {}
    for name, query in queries.items():
        if keys_of(query):
            continue
        if (reason := _reason_to_be_alone(query)) is not None:
            alone[name] = reason
        else:
            keyless.setdefault(_time_of(query), {})[name] = query
    shared = _by_keys(queries, lambda keys: _spreads(known_of(next(iter(queries.values())), keys)))
    for time, every in keyless.items():
        for group in by_columns(every):
            if len(group) == 1:
                alone |= dict.fromkeys(group, "no other pattern without keys is matched in the same way")
            else:
                shared.append(RuleShuffle(group, slicing=None if time is None else _slicing(group, known_of)))
    return Shuffles(tuple(shared), {name: alone[name] for name in queries if name in alone})


def keys_of(query: NarrowQuery) -> Keys:
    """Return the columns by whose values rows may be sent to different partitions."""
    return frozenset(query.events.names[key] for key in keys_of_shuffle(query.plan))


def _by_keys(queries: Mapping[str, NarrowQuery], spreads: Callable[[Keys], bool]) -> list[RuleShuffle]:
    """Return the shuffles of the rules whose streams have keys."""
    keys = {name: keys_of(query) for name, query in queries.items()}
    serving = keys_of_shuffles([own for own in keys.values() if own], spreads)
    groups: dict[Keys, dict[str, NarrowQuery]] = {}
    for name, query in queries.items():
        if keys[name]:
            groups.setdefault(serving[keys[name]], {})[name] = query
    return [RuleShuffle(group, keys) for keys, every in groups.items() for group in by_columns(every)]


def by_columns(queries: Mapping[str, NarrowQuery]) -> list[dict[str, NarrowQuery]]:
    """Return rules that may share a shuffle in groups, so that what each reads together costs less than shuffles by themselves."""
    columns = {name: frozenset(query.events.names) for name, query in queries.items()}
    found: dict[frozenset[Columns], dict[str, NarrowQuery]] = {}
    group_of = {own: group for group in groups_of_columns(columns.values()) for own in group}
    for name, query in queries.items():
        found.setdefault(group_of[columns[name]], {})[name] = query
    return list(found.values())


def groups_of_columns(wanted: Iterable[Columns]) -> list[frozenset[Columns]]:
    """Return sets of columns that are shuffled together; those of most columns come first.

    Filters may leave each rule other rows. Then a shuffle of them together has the rows of both, with the columns of both, but
    the events are read once.

    >>> few, more, many = frozenset("kt"), frozenset("ktx"), frozenset("ktabcdefghij")
    >>> [len(group) for group in groups_of_columns([few, more, many])]
    [1, 2]
    """
    groups: list[frozenset[Columns]] = []
    for own in sorted(set(wanted), key=_order, reverse=True):
        joined = next((group for group in groups if _pays(frozenset().union(*group), own)), None)
        if joined is None:
            groups.append(frozenset((own,)))
        else:
            groups[groups.index(joined)] = joined | {own}
    return groups


def _pays(left: Columns, right: Columns) -> bool:
    """Return whether one shuffle of the columns of both costs less than two, if both have as many rows and none in common."""
    return 2 * len(left | right) <= len(left) + len(right) + 2 * _READING


def keys_of_shuffles(wanted: Collection[Keys], spreads: Callable[[Keys], bool]) -> dict[Keys, Keys]:
    """Return for each set of keys that rules have the keys of the shuffle that serves it.

    Rows with equal values of some keys have equal values of fewer of these, too. So the keys of a rule serve those that contain
    them. Keys that several sets have in common serve all of these, but may have few values: they are taken if they spread rows.
    """
    least = sorted({own for own in wanted if not any(fewer < own for fewer in wanted)}, key=_order)
    chosen: list[Keys] = []
    for common in _common_keys(least):
        if sum(common <= own for own in least) > 1 and spreads(common):
            chosen.append(common)
            least = [own for own in least if not common <= own]
    known = sorted([*chosen, *least], key=_order)
    return {own: next(fewer for fewer in known if fewer <= own) for own in wanted}


def _common_keys(least: list[Keys]) -> list[Keys]:
    """Return keys that several sets have in common, those first that most sets have."""
    common = {left & right for left, right in combinations(least, 2)} - {frozenset()}
    return sorted(common, key=lambda keys: (-sum(keys <= own for own in least), *_order(keys)))[:_MOST_SAMPLES]


def _order(keys: Keys) -> tuple[int, list[str]]:
    return len(keys), sorted(keys)


def _spreads(known: KnownStreams) -> bool:
    """Return whether a shuffle surely keeps all cores busy, by a sample of the streams."""
    shares = known.shares()
    return shares is not None and max(shares, default=0) * (known.cores or ASSUMED_CORES) <= _SHARE_OF_CORE


def _reason_to_be_alone(query: NarrowQuery) -> str | None:
    """Return why a rule without keys shares no slices of time with others; None if it does, or if its stream is not cut."""
    if _time_of(query) is None:
        return None
    if not isinstance(query.plan, EventPlan):
        return "slices of situations begin with an event of their own"
    return "skip_past_last chooses among the matches of all slices" if query.settings.after_match == "skip_past_last" else None


def _time_of(query: NarrowQuery) -> tuple[str, Any] | None:
    """Return the column of times by which a stream is cut, and their kind; None if it stays whole."""
    plan = query.plan
    if reason_against(plan) is not None or not isinstance(plan.query.window, TimeWindow):
        return None
    return query.events.names[plan.query.timestamp], time_kind(plan)


def _slicing(group: Mapping[str, NarrowQuery], known_of: Callable[[NarrowQuery, Keys], KnownStreams]) -> Slicing:
    """Return slices for all rules of a group, which fit the longest window."""
    longest = max(group.values(), key=_window)
    slicing, _ = choose_slicing(longest.plan, AUTO, longest.options.time_unit, known_of(longest, frozenset()))
    assert slicing is not None, "streams without keys are cut"
    return replace(slicing, looks_back=any(looks_back(query.plan) for query in group.values()))


def _window(query: NarrowQuery) -> int | float:
    window = query.plan.query.window
    assert isinstance(window, TimeWindow), "other streams are whole"
    return window.length


def described(shuffle: RuleShuffle) -> Iterator[str]:
    """Yield in words by what a shuffle brings rows together, and why rules share it."""
    if shuffle.keys:
        yield f"one shuffle by {', '.join(sorted(shuffle.keys))}"
        wider = sum(keys_of(query) > shuffle.keys for query in shuffle.queries.values())
        if wider:
            yield f"{wider:,} of them with more keys, by which equal rows are equal in these"
    elif shuffle.slicing is None:
        yield "one shuffle to one task: their events are one stream, which cannot be cut"
    else:
        yield f"one shuffle by slices of time of {shuffle.slicing.length:,} ticks: their events are one stream"
