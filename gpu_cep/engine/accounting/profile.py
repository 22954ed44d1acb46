"""Record the work of a run: seconds of each stage, and the counts of the pruning waterfall."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Lock

from gpu_cep.plan.costs import BatchAnswer, groups_text
from gpu_cep.plan.interval_explain import JoinedChunks


@dataclass
class Profile:
    """The counts and seconds of one run; several threads may add to it.

    `counts` holds, in the order of the stages:

    * ``events``: events read;
    * ``filtered``: events left after filtering, and near a rare event if the plan looks for these;
    * ``windows``: events that a match can start with;
    * ``summarised`` and ``candidates``: windows left after each condition;
    * ``pivots``: events of the rarest variable, if the lazy chain ran (on the CPU in place of windows);
    * ``pairs``: pairs of rows whose relation was tested, if joins ran;
    * ``nodes``: nodes of NFA^b's buffer, if that ran;
    * ``matches`` that were found, and ``steps`` (those that ``max_steps`` bounds);
    * ``kept``: matches that are left of those, if `after_match` or `limit_per_start` may drop some,
      or branches of OR, ``?`` or ``*`` may have found the same; in
      streams this is not known of ``skip_past_last`` and of ``output="events"``, nor where Spark
      cuts them into slices;
    * ``timeouts``: starts whose window ended without a match, where a stream returns these;
    * ``left``: candidate windows that a device left to the CPU, if it did;
    * ``rows`` and ``partitions``: those of MATCH_RECOGNIZE, in place of events and what follows.

    `seconds` are summed over the batches and parts that threads work on. `engines` counts the runs
    on ``cpu`` and on ``gpu``. `answers` says by which algorithm each batch was answered, and why.
    `joins` says in which orders situations were joined. `groups` are the numbers of row groups of
    Parquet that were read, and that there are (None: none could be left out). `slices` are the
    number of slices of time in which files were matched, the rows that these held, and the rows
    that there are (None: they were read at once). A row that two slices hold is read once.
    `source` says who read which columns of files to a GPU (empty: nobody did).
    """

    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    engines: dict[str, int] = field(default_factory=dict)
    answers: list[BatchAnswer] = field(default_factory=list, repr=False)
    joins: dict[tuple[int, ...], JoinedChunks] = field(default_factory=dict, repr=False)
    groups: tuple[int, int] | None = None
    slices: tuple[int, int, int] | None = None
    source: str = ""
    _lock: Lock = field(default_factory=Lock, repr=False)

    def apart(self) -> Profile:
        """Return an empty profile for a part of the run; it counts once it is merged."""
        return Profile()

    def add(self, name: str, count: int) -> None:
        """Add `count` to the count of that name."""
        with self._lock:
            self.counts[name] = self.counts.get(name, 0) + count

    def count_run(self, engine: str) -> None:
        """Count a run on an engine."""
        with self._lock:
            self.engines[engine] = self.engines.get(engine, 0) + 1

    def add_groups(self, read: int, of: int) -> None:
        """Count row groups of Parquet, and those of them that were read."""
        with self._lock:
            before = self.groups or (0, 0)
            self.groups = (before[0] + read, before[1] + of)

    def add_slices(self, number: int, held: int, of: int) -> None:
        """Count slices of time, the rows that they hold, and the rows that there are."""
        with self._lock:
            before = self.slices or (0, 0, 0)
            self.slices = (before[0] + number, before[1] + held, before[2] + of)

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Return a context that adds the seconds of its block to those of the stage."""
        return _Stage(self, name)

    def add_answer(self, answer: BatchAnswer) -> None:
        """Record the algorithm by which a batch was answered."""
        with self._lock:
            self.answers.append(answer)

    def add_join(self, order: tuple[int, ...], rows: Sequence[int]) -> None:
        """Record the join of a chunk of situations, in the order of names `order`.

        `rows` are the numbers of configurations after each step.
        """
        with self._lock:
            self._add_joined(JoinedChunks(order, 1, tuple(rows)))

    def _add_joined(self, joined: JoinedChunks) -> None:
        before = self.joins.get(joined.order, JoinedChunks(joined.order, 0, (0,) * len(joined.order)))
        rows = tuple(map(sum, zip(before.rows, joined.rows, strict=True)))
        self.joins[joined.order] = JoinedChunks(joined.order, before.chunks + joined.chunks, rows)

    def merge(self, other: Profile) -> None:
        """Add all that another profile holds."""
        if other.groups is not None:
            self.add_groups(*other.groups)
        if other.slices is not None:
            self.add_slices(*other.slices)
        with self._lock:
            self.source = other.source or self.source
            self.answers += other.answers
            for joined in other.joins.values():
                self._add_joined(joined)
            for name, count in other.counts.items():
                self.counts[name] = self.counts.get(name, 0) + count
            for name, seconds in other.seconds.items():
                self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            for engine, runs in other.engines.items():
                self.engines[engine] = self.engines.get(engine, 0) + runs

    def __str__(self) -> str:
        counts = " → ".join(f"{name} {count:,}" for name, count in self.counts.items())
        times = ", ".join(f"{name} {1000 * seconds:.1f} ms" for name, seconds in self.seconds.items())
        read = "" if self.groups is None else f"\n{groups_text(self.groups)}"
        cut = "" if self.slices is None else "\nslices of time: {:,}, which held {:,} rows of {:,}".format(*self.slices)
        by = f"\n{self.source}" if self.source else ""
        return f"{counts}\n{times}{read}{cut}{by}"


class _Stage(AbstractContextManager[None]):
    """The context of one block of a stage; over few events a generator would cost more than most blocks."""

    __slots__ = ("begin", "name", "profile")

    def __init__(self, profile: Profile, name: str) -> None:
        self.profile, self.name = profile, name

    def __enter__(self) -> None:
        self.begin = time.perf_counter()

    def __exit__(self, *fault: object) -> None:
        seconds, profile = time.perf_counter() - self.begin, self.profile
        with profile._lock:
            profile.seconds[self.name] = profile.seconds.get(self.name, 0.0) + seconds


_NO_STAGE = nullcontext()


class UnreadProfile(Profile):
    """A profile that records nothing, since nobody reads it; over few events, recording takes a twentieth of a call."""

    def apart(self) -> Profile:
        """Return itself."""
        return self

    def add(self, name: str, count: int) -> None:
        """Ignore a count."""

    def count_run(self, engine: str) -> None:
        """Ignore a run."""

    def add_groups(self, read: int, of: int) -> None:
        """Ignore numbers of row groups."""

    def add_slices(self, number: int, held: int, of: int) -> None:
        """Ignore numbers of slices."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Return a context that takes no time."""
        return _NO_STAGE

    def add_answer(self, answer: BatchAnswer) -> None:
        """Ignore an answer."""

    def add_join(self, order: tuple[int, ...], rows: Sequence[int]) -> None:
        """Ignore a join."""

    def merge(self, other: Profile) -> None:
        """Ignore all that another profile holds."""


UNREAD = UnreadProfile()
