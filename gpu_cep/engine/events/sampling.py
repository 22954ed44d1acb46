"""Sample the work on a batch, to estimate the work on all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np

from gpu_cep.engine.events.matches import Indices


@dataclass(frozen=True, slots=True)
class WorkSample:
    """The work and the matches of searches from a sample of places.

    Of `places` places, `tried` were searched from, in `steps` steps. They gave so many `matches`,
    with `bound` events in all. `passed` is the number of steps that passed over an event. `wasted`
    is the number of searches that followed a long run that became no match.
    """

    places: int
    tried: int
    steps: int
    matches: int
    bound: int
    passed: int = 0
    wasted: int = 0

    @property
    def all_steps(self) -> float:
        """Return the estimated steps of all places."""
        return self.places * self.steps / max(self.tried, 1)

    @property
    def all_passed(self) -> float:
        """Return the estimated steps of all places that pass over an event."""
        return self.places * self.passed / max(self.tried, 1)

    @property
    def all_matches(self) -> float:
        """Return the estimated number of matches of all places."""
        return self.places * self.matches / max(self.tried, 1)

    @property
    def all_bound(self) -> float:
        """Return the estimated events of all matches; an event counts once for each match that binds it."""
        return self.places * self.bound / max(self.tried, 1)

    def add_share(self, other: WorkSample, share: float) -> WorkSample:
        """Return the sample with a share of another one's work and matches added."""
        spent = ("steps", "matches", "bound", "passed", "wasted")
        return replace(self, **{name: getattr(self, name) + round(share * getattr(other, name)) for name in spent})


NOTHING = WorkSample(0, 0, 0, 0, 0)


def sum_samples(samples: Sequence[WorkSample]) -> WorkSample:
    """Return one sample of the places of all samples together."""
    return WorkSample(*(sum(values) for values in zip(*map(astuple, samples), strict=True)))


def combine_searches(samples: Sequence[WorkSample]) -> WorkSample:
    """Return the estimated work and matches of several searches together, from a sample of each."""
    if len(samples) == 1:
        return samples[0]
    places, steps = sum(each.places for each in samples), sum(each.all_steps for each in samples)
    matches, bound = sum(each.all_matches for each in samples), sum(each.all_bound for each in samples)
    return WorkSample(places, places, round(steps), round(matches), round(bound))


def spread_places(size: int, most: int) -> Indices:
    """Return at most `most` places among `size`, evenly spread, in ascending order."""
    return np.arange(size) if size <= most else np.arange(most, dtype=np.int64) * size // most


def scatter_places(size: int, most: int) -> Indices:
    """Return the same places in another order: any first few of them are spread over all."""
    places = spread_places(size, most)
    # multiples of the golden ratio fill the unit interval evenly
    found: Indices = places[np.argsort(np.arange(len(places)) * 0.6180339887498949 % 1.0)]
    return found


def cluster_places(size: int, most: int, together: int) -> Indices:
    """Return at most `most` places among `size`, in clusters of `together` neighbours.

    The first few clusters are spread over all places.
    """
    if size <= most:
        return np.arange(size)
    begins = scatter_places(size // together, most // together) * together
    return (begins[:, None] + np.arange(together)).ravel()
