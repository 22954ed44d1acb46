"""Cases of the kernels that join situations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_cep_kernels.intervals import joins
from gpu_cep_kernels.intervals.joins import RELATIONS, ZONE_COUNT, CandidateRanges, Configurations, Fitting, Level, Limits, Situations
from tests.kernel_cases.calls import Call, KernelCase, Variants, cases
from tests.kernel_cases.inputs import GREATEST, LEAST, Array, Random, flags, places_of

_NAMES = 3
_ALL_ZONES = ((0, ZONE_COUNT - 1),)

# A constraint between the situation at a place and the new one: its relations, those decided early, and the runs of zones that it allows.
Related = tuple[int, str, str, tuple[tuple[int, int], ...]]

_BEFORE: Related = (0, "before", "before", ((4, 4),))
_TOUCHING: Related = (1, "meets overlaps finishes contains", "meets overlaps finishes contains", ((2, 3),))
_INSIDE: Related = (0, "starts during overlapped-by", "", ((1, 1),))
_SCATTERED: Related = (1, "before after during equals contains", "before after", ((0, 2), (4, 4)))
_APART: Related = (0, "before after", "before after", ((0, 0), (4, 4)))


def _situations(size: int, random: Random, streams: int, endpoint: str) -> Situations:
    """About `size` situations of all names and streams; `endpoint` is their type, or says that they are moments of times of a type."""
    number = random.integers(0, 2 * size // (streams * _NAMES) + 2, (_NAMES, streams))
    ends = np.cumsum(number.ravel()).reshape(number.shape)
    offsets = np.concatenate([(ends - number)[:, :1], ends], axis=1)
    total = int(number.sum())
    # at least one from a start to its end, and none or more to the next
    steps = np.stack([random.integers(0, 4, total), random.integers(1, 5, total)], axis=1)
    points = np.cumsum(steps).reshape(-1, 2) - _before_each(steps, number.ravel())
    if endpoint.startswith("moments"):
        return _moments(points, offsets, random, endpoint.removeprefix("moments-"))
    start, end = points.T.astype(endpoint).copy()
    first, last = (offsets[:, :-1][number > 0], offsets[:, 1:][number > 0] - 1)
    least, greatest = (LEAST, GREATEST) if endpoint == "int64" else (-np.inf, np.inf)
    start[first[flags(len(first), random, 0.25)]] = least
    end[last[flags(len(last), random, 0.25)]] = greatest
    clocks = _clock(start), _clock(end)
    return Situations(offsets, start, end, end, clocks[0], clocks[1], clocks[1])


def _before_each(steps: Array, number: Array) -> Array:
    """The sum of the steps before each group of so many rows, and a bit more or less, so that groups begin at small times."""
    places = places_of(number)
    before = np.concatenate([[0], np.cumsum(steps.sum(axis=1))])[places[:-1]]
    return np.repeat(before + np.arange(len(number)) % 5 - 2, number)[:, np.newaxis]


def _moments(points: Array, offsets: Array, random: Random, clock: str) -> Situations:
    """Situations as early detection sees them: known at some event before their ends, and the last ones open."""
    start, end = (points + 2).T.copy()
    horizon = int(end.max(initial=0)) + 1
    last = np.unique(offsets[:, 1:][np.diff(offsets) > 0] - 1)
    is_open = last[flags(len(last), random)]
    known = np.minimum(start + random.integers(0, 3, len(start)), end)
    end[is_open] = horizon
    times = np.arange(horizon + 1) * 2 - 7
    clocks = [_clock(times[np.where(moments == horizon, 0, moments)].astype(clock)) for moments in (start, end, known)]
    return Situations(offsets, start, end, known, *clocks)


def _clock(points: Array) -> Array:
    return points if points.dtype.kind == "f" else points.view(np.uint64)


def _rows(size: int, random: Random, situations: Situations, places: int) -> Configurations:
    """Some situations of the first names, of one stream in each row; none if no stream has all of them."""
    offsets = situations.offsets[:places]
    peopled = np.flatnonzero((np.diff(offsets) > 0).all(axis=0))
    stream = np.sort(random.choice(peopled, size)) if len(peopled) else np.empty(0, np.int64)
    members = random.integers(offsets[:, stream], offsets[:, stream + 1]).astype(np.int32)
    first = np.take_along_axis(members, situations.start[members].argmin(axis=0)[np.newaxis], axis=0)[0]
    latest = np.take_along_axis(members, situations.known[members].argmax(axis=0)[np.newaxis], axis=0)[0]
    return Configurations(
        members,
        stream.astype(np.int32),
        situations.start[first],
        situations.known[latest],
        situations.start_clock[first],
        situations.known_clock[latest],
    )


def _level(related: Sequence[Related], places: int, windowed: bool, zones: bool) -> Level:
    """The join with the name behind the first ones; `zones`: candidates are cut by constraints."""
    runs = [own for *_, own in related] if zones else []
    divided = next((k for k, own in enumerate(runs) if len(own) > 1), -1)
    return Level(
        name=places,
        place=np.array([place % places for place, *_ in related], np.int64),
        allowed=np.array([_mask(allowed) for _, allowed, _, _ in related], np.int64),
        early=np.array([_mask(early) for _, _, early, _ in related], np.int64),
        first_zone=np.array([own[0][0] for own in runs], np.int64),
        last_zone=np.array([own[-1][1] for own in runs], np.int64),
        divided=divided,
        runs=np.array(runs[divided] if divided >= 0 else _ALL_ZONES, np.int64),
        windowed=windowed,
    )


def _mask(relations: str) -> int:
    return sum(1 << RELATIONS.index(name) for name in relations.split())


class _Join:
    """Rows, a level, and what the kernels look for."""

    def __init__(
        self, size: int, random: Random, endpoint: str = "int64", related: Sequence[Related] = (_TOUCHING,), streams: int = 5,
        places: int = 2, windowed: bool = True, zones: bool = True, sliced: bool = False,
    ) -> None:  # fmt: skip
        self.situations = _situations(2 * size, random, streams, endpoint)
        self.rows = _rows(size, random, self.situations, places)
        self.level = _level(related, places, windowed, zones)
        is_float = endpoint.endswith("float64")
        unbounded = np.float64(np.inf) if is_float else np.uint64(2**64 - 1)
        self.length = unbounded.dtype.type(25) if windowed else unbounded
        least = np.int64(self.situations.known.max(initial=0)) if endpoint.startswith("moments") else np.int64(GREATEST)
        self.latest = np.float64(np.inf) if endpoint == "float64" else least
        starts = self.situations.start
        self.limit = starts[len(starts) // 2] if sliced and len(starts) else self.latest
        self.limits = Limits(self.latest, self.limit, self.length)
        self.begin = len(self.rows.stream) // 3

    def candidates(self) -> CandidateRanges:
        """Room for the candidates of each row."""
        return CandidateRanges(*(np.zeros((len(self.level.runs), len(self.rows.stream)), np.int64) for _ in range(2)))

    def found(self) -> tuple[CandidateRanges, Fitting]:
        """The candidates; and of the rows behind `begin` where what fits is kept, room for it, and for its number."""
        candidates = self.candidates()
        size = len(self.rows.stream)
        joins.find_candidates(0, size, self.rows, self.level, self.situations, self.length, candidates)
        places = places_of(candidates.size[:, self.begin :].sum(axis=0))
        kept, number = np.zeros(int(places[-1]), np.int32), np.zeros(size - self.begin, np.int64)
        return candidates, Fitting(places[:-1].copy(), kept, number)


def _finding(size: int, random: Random, slots: int, **given: Any) -> Call:
    join = _Join(size, random, **given)
    return Call(len(join.rows.stream), (join.rows, join.level, join.situations, join.length, join.candidates()))


def _keeping(size: int, random: Random, slots: int, **given: Any) -> Call:
    join = _Join(size, random, **given)
    candidates, fitting = join.found()
    table = join.rows, join.level, join.situations
    return Call(len(fitting.number), (join.begin, *table, join.limits, candidates, fitting))


def _counting(size: int, random: Random, slots: int, **given: Any) -> Call:
    join = _Join(size, random, **given)
    candidates, _ = join.found()
    number = np.zeros(len(join.rows.stream), np.int64)
    return Call(len(number), (join.rows, join.situations, join.limits, candidates, number))


def _joining(size: int, random: Random, slots: int, **given: Any) -> Call:
    join = _Join(size, random, **given)
    candidates, fitting = join.found()
    table, number = (join.rows, join.level, join.situations), fitting.number
    joins.keep_fitting(0, len(number), join.begin, *table, join.limits, candidates, fitting)
    rows, places = int(number.sum()), len(join.rows.members)
    columns = (np.zeros(rows, column.dtype) for column in join.rows[1:])
    joined = Configurations(np.zeros((places + 1, rows), np.int32), *columns)
    return Call(len(number), (join.begin, *table, fitting, places_of(number)[:-1].copy(), joined))


_ENDPOINTS: Variants = {
    endpoint: {"endpoint": endpoint, "related": (_BEFORE, _SCATTERED)}
    for endpoint in ("int64", "float64", "moments-int64", "moments-float64")
}
_SHAPES: Variants = {
    "one-stream": {"streams": 1, "related": (_TOUCHING,)},
    "inside": {"related": (_INSIDE,)},
    "two-constraints": {"related": (_TOUCHING, _INSIDE), "windowed": False},
    "divided": {"related": (_INSIDE, _SCATTERED), "endpoint": "moments-int64"},
    "one-bound": {"related": (_APART,), "places": 1},
    "unrelated": {"related": (), "sliced": True},
    "all-of-the-stream": {"related": (_BEFORE,), "windowed": False, "zones": False},
    "of-the-window": {"related": (_SCATTERED,), "zones": False},
}

INTERVAL_JOIN_CASES: tuple[KernelCase, ...] = (
    *cases(joins.find_candidates, _finding, {**_ENDPOINTS, **_SHAPES}),
    *cases(joins.count_candidates, _counting, {**_ENDPOINTS, **_SHAPES}),
    *cases(joins.keep_fitting, _keeping, {**_ENDPOINTS, **_SHAPES}),
    *cases(joins.join_situations, _joining, {**_ENDPOINTS, **_SHAPES}),
)
