"""Streams of labels and SES patterns without conditions, as kernels see them and as plain Python does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from hypothesis import strategies as st

from gpu_cep_kernels.phase_one.window_conditions import NextEvents, prefix_counts
from gpu_cep_kernels.phase_one.windows import WindowLimits, mark_streams, next_occurrences, window_ends
from gpu_cep_kernels.rules.scalars import LABEL_BITS
from tests.kernel_cases.tables import negation_table, pattern_table


@dataclass(frozen=True)
class Pattern:
    """⟨B1, …, Bk⟩: the size of each set, and (minimum, maximum) of each variable in turn; the maximum may be None."""

    sizes: tuple[int, ...]
    quantifiers: tuple[tuple[int, int | None], ...]

    @cached_property
    def level(self):
        return [level for level, size in enumerate(self.sizes) for _ in range(size)]

    @cached_property
    def _before(self):
        return [[u for u, level in enumerate(self.level) if level < own] for own in self.level]

    def before(self, v):
        return self._before[v]

    def direct(self, v):
        return [u for u in range(len(self.level)) if self.level[u] == self.level[v] - 1]

    def successors(self, v):
        """How many variables follow v immediately."""
        return self.level.count(self.level[v] + 1)

    def table(self):
        return pattern_table(self.sizes, self.quantifiers)


@dataclass(frozen=True)
class Negated:
    """Events, by their places, none of which may stand after the events of some variables and before those of others."""

    places: tuple[int, ...]
    after: tuple[int, ...] = ()
    before: tuple[int, ...] = ()


@dataclass(frozen=True)
class LabelStream:
    """One stream: label and time of each event, the window's length, whether ties are strict, and into how many parts it is split."""

    labels: tuple[int, ...]
    times: tuple[int, ...]
    length: int
    strict: bool = True
    parts: int = 1

    def part(self, e):
        """Events go to the parts by turns."""
        return e % self.parts

    def successors(self):
        """What follows each event in its part, as kernels see it: nothing where that is always the next event."""
        size = len(self.labels)
        return np.minimum(np.arange(size) + self.parts, size) if self.parts > 1 else np.empty(0, np.int64)

    def negation_table(self, variables, negations):
        """As kernels see it; the negated variables come after so many others."""
        listed = [(variables + n, each.after, each.before, np.array(each.places, np.int64)) for n, each in enumerate(negations)]
        clock = np.array(self.times, np.uint64)
        return negation_table(listed, np.array([0, len(clock)]), clock if self.strict else clock[:0], clock, np.uint64(self.length))

    def is_before(self, e, f):
        return self.times[e] < self.times[f] if self.strict else e < f

    def window(self, e):
        """The events of the match window that starts at e."""
        return [f for f in range(e, len(self.times)) if self.times[f] - self.times[e] <= self.length]

    def arrays(self, variables):
        """What phase 1 makes of the stream."""
        size = len(self.labels)
        labels, clock = label_words(self.labels, variables), np.array(self.times, np.uint64)
        stream_end, after = np.empty(size, np.int32), np.empty(size + 1, np.int32)
        mark_streams(0, np.array([0, size]), 0, 1, clock, stream_end, after)
        occurrence, counts = np.empty((variables, size + 2), np.int32), np.empty((variables, size + 1), np.int32)
        for k, word in enumerate(labels):
            own = slice(LABEL_BITS * k, min(LABEL_BITS * (k + 1), variables))
            next_occurrences(word, own.stop - own.start, occurrence[own])
            prefix_counts(word, own.stop - own.start, counts[own])
        ends = np.empty(size, np.int32)
        limits = WindowLimits(clock, stream_end, np.uint64(self.length))
        window_ends(0, size, np.arange(size), np.arange(size), limits, ends)
        untied = not self.strict or len(set(self.times)) == size
        return Arrays(labels, limits, NextEvents(after[:0] if untied else after, occurrence), counts, ends)


def label_words(labels, variables):
    """Labels as [word, event], with as many words as the variables take."""
    words = range(-(-variables // LABEL_BITS))
    return np.array([[label >> LABEL_BITS * k & (1 << LABEL_BITS) - 1 for label in labels] for k in words], np.uint64)


@dataclass(frozen=True)
class Arrays:
    """A stream as kernels see it."""

    labels: np.ndarray
    limits: WindowLimits
    next_events: NextEvents
    counts: np.ndarray
    ends: np.ndarray


QUANTIFIERS = st.sampled_from([(1, 1), (1, 1), (1, None), (2, None), (2, 2), (1, 2)])


@st.composite
def patterns(draw, quantifiers=QUANTIFIERS):
    sizes = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3).filter(lambda sizes: sum(sizes) <= 4))
    return Pattern(tuple(sizes), tuple(draw(quantifiers) for _ in range(sum(sizes))))


@st.composite
def label_streams(draw, variables, max_size=9, exclusive=False):
    label = st.sampled_from([0, *(1 << v for v in range(variables))]) if exclusive else st.integers(0, (1 << variables) - 1)
    labels = draw(st.lists(label, min_size=1, max_size=max_size))
    times = sorted(draw(st.lists(st.integers(0, 9), min_size=len(labels), max_size=len(labels))))
    return LabelStream(tuple(labels), tuple(times), draw(st.integers(0, 10)), draw(st.booleans()))


@st.composite
def problems(draw, quantifiers=QUANTIFIERS, max_size=9, exclusive=False):
    pattern = draw(patterns(quantifiers))
    return pattern, draw(label_streams(len(pattern.level), max_size, exclusive))


@st.composite
def divided_problems(draw, max_size=12):
    """Problems whose stream may be split into parts."""
    pattern, stream = draw(problems(max_size=max_size))
    return pattern, replace(stream, parts=draw(st.integers(1, 3)))


@st.composite
def negations(draw, pattern, stream):
    """One or two of them: between two sets of the pattern, before the first, after the last, or beside all."""
    listed = []
    for _ in range(draw(st.integers(1, 2))):
        level = draw(st.integers(0, len(pattern.sizes) + 1))
        after = tuple(v for v, own in enumerate(pattern.level) if own < level <= len(pattern.sizes))
        before = tuple(v for v, own in enumerate(pattern.level) if own >= level)
        places = draw(st.sets(st.integers(0, len(stream.labels) - 1), max_size=3))
        listed.append(Negated(tuple(sorted(places)), after, before))
    return tuple(listed)


@st.composite
def negated_problems(draw, max_size=9):
    pattern, stream = draw(problems(max_size=max_size))
    return pattern, stream, draw(negations(pattern, stream))


def widened(pattern, stream, variables):
    """The problem behind so many single variables that follow one another, and their events."""
    sizes, quantifiers = (1,) * variables + pattern.sizes, ((1, 1),) * variables + pattern.quantifiers
    labels = (*(1 << v for v in range(variables)), *(label << variables for label in stream.labels))
    times = (*range(variables), *(variables + time for time in stream.times))
    return Pattern(sizes, quantifiers), LabelStream(labels, times, stream.length + variables, stream.strict)


def of_characters(text, sizes, quantifiers, length=100):
    """A stream of characters, ``a`` labelled with the first variable and so on; ``-`` fits none."""
    labels = tuple(1 << (ord(character) - ord("a")) if character != "-" else 0 for character in text)
    return Pattern(sizes, quantifiers), LabelStream(labels, tuple(range(len(text))), length)
