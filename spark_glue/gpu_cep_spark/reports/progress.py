"""Show how many tasks of a Spark action are done, while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from pyspark import SparkContext
from pyspark.sql import SparkSession
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_WHAT = "matching"
_PER_SECOND = 4
_BAR = 40  # characters

# Seconds between two lines of output that is not a terminal, where no bar can be redrawn.
_EVERY = 10.0


@dataclass(frozen=True, slots=True)
class Tasks:
    """The numbers of the stages that have begun and of their tasks.

    `known` are all tasks; some of these are done, and some are running.
    """

    stages: int = 0
    done: int = 0
    running: int = 0
    known: int = 0

    def __str__(self) -> str:
        stages = "1 stage" if self.stages == 1 else f"{self.stages:,} stages"
        return f"{self.done:,} of {self.known:,} tasks in {stages} so far, {self.running:,} running" if self.stages else "no task so far"


@contextmanager
def show_progress(session: Any) -> Iterator[Console]:
    """Show the progress of the actions inside.

    It is a bar on a terminal or in a notebook, elsewhere a line every :data:`_EVERY` seconds.
    """
    console, begin = Console(stderr=True), time.monotonic()
    with _tasks_of(session) as tasks:
        show = _bar if console.is_terminal or console.is_jupyter else _lines
        with show(console, tasks, begin):
            yield console


def _bar(console: Console, tasks: Callable[[], Tasks], begin: float) -> AbstractContextManager[Any]:
    def state() -> Table:
        now = tasks()
        shown = Table.grid(padding=(0, 1))
        shown.add_row(_WHAT, ProgressBar(max(now.known, 1), now.done, _BAR), Text(f"{time.monotonic() - begin:.0f} s  {now}"))
        return shown

    return Live(get_renderable=state, console=console, refresh_per_second=_PER_SECOND, transient=True)


@contextmanager
def _lines(console: Console, tasks: Callable[[], Tasks], begin: float) -> Iterator[None]:
    ended = Event()

    def write() -> None:
        while not ended.wait(_EVERY):
            console.print(Text(f"{_WHAT}  {time.monotonic() - begin:.0f} s  {tasks()}"), soft_wrap=True)

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def _tasks_of(session: Any) -> AbstractContextManager[Callable[[], Tasks]]:
    """Return a context that yields a function which returns the tasks of the actions begun inside.

    On Spark Connect these are all of the session's actions, else those of this thread.
    """
    return _tag_jobs(session.sparkContext) if isinstance(session, SparkSession) else _follow_operations(session)


@contextmanager
def _tag_jobs(context: SparkContext) -> Iterator[Callable[[], Tasks]]:
    """Yield a function that returns the tasks of the jobs that this thread begins inside."""
    tag = f"gpu_cep {uuid4()}"
    context.addJobTag(tag)
    try:
        yield partial(_tasks_of_jobs, context, tag)
    finally:
        context.removeJobTag(tag)


def _tasks_of_jobs(context: SparkContext, tag: str) -> Tasks:
    tracker = context.statusTracker()
    # PySpark's tracker cannot look up tags; the JVM's can
    jobs = map(tracker.getJobInfo, context._jsc.sc().statusTracker().getJobIdsForTag(tag))
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    known = [stage for stage in map(tracker.getStageInfo, sorted(stages)) if stage is not None]
    # a stage whose shuffle files exist already never begins, and would keep the bar from its end
    begun = [stage for stage in known if stage.numActiveTasks or stage.numCompletedTasks]
    done, running = (sum(getattr(stage, which) for stage in begun) for which in ("numCompletedTasks", "numActiveTasks"))
    return Tasks(len(begun), done, running, sum(stage.numTasks for stage in begun))


@contextmanager
def _follow_operations(session: Any) -> Iterator[Callable[[], Tasks]]:
    """Yield a function that returns the tasks of all operations, as the server last reported them.

    The server reports every ``spark.connect.progress.reportInterval``.
    """
    told: dict[str | None, Tasks] = {}

    def listen(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        begun = tuple(stages or ())
        finished, known = (sum(getattr(stage, which) for stage in begun) for which in ("num_completed_tasks", "num_tasks"))
        told[operation_id] = Tasks(len(begun), finished, 0 if done else inflight_tasks, known)

    def tasks() -> Tasks:
        operations = tuple(told.values())
        return Tasks(*(sum(getattr(each, which) for each in operations) for which in Tasks.__slots__))

    session.registerProgressHandler(listen)
    try:
        yield tasks
    finally:
        session.removeProgressHandler(listen)
