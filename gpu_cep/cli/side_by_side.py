"""Run tasks in processes side by side; a process that is killed costs its own task alone."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic, TypeVar

Task = TypeVar("Task")


@dataclass(frozen=True, slots=True)
class EndedTask(Generic[Task]):
    """A task that has ended: what its function returned, or that its process was killed."""

    task: Task
    result: str = ""
    killed: bool = False


def run_side_by_side(
    run: Callable[[Task], str], tasks: Sequence[Task], processes: int, begin: Callable[[], None]
) -> Iterator[EndedTask[Task]]:  # fmt: skip
    """Yield each task as it ends; `processes` of them run at a time, in processes that call `begin` first.

    An exception of `run` is raised. Where a process is killed, what ran then runs again in a process of its own.
    """
    waiting, running = deque(tasks), dict[Future[str], Task]()
    while waiting:
        try:
            with _pool(min(processes, len(waiting)), begin) as pool:
                yield from _run_in(pool, run, waiting, running, processes)
        except BrokenProcessPool:
            # all processes end with one, and nothing tells which it was
            while running:
                _, task = running.popitem()
                yield _run_alone(run, task, begin)


def _run_in(
    pool: ProcessPoolExecutor, run: Callable[[Task], str], waiting: deque[Task], running: dict[Future[str], Task], processes: int
) -> Iterator[EndedTask[Task]]:  # fmt: skip
    """Yield the `waiting` tasks as they end in the processes of a pool; those that are `running` are left there if one is killed."""
    while waiting or running:
        while waiting and len(running) < processes:
            begun = pool.submit(run, waiting[0])
            running[begun] = waiting.popleft()
        for each in wait(running, return_when=FIRST_COMPLETED).done:
            result = each.result()
            yield EndedTask(running.pop(each), result)


def _run_alone(run: Callable[[Task], str], task: Task, begin: Callable[[], None]) -> EndedTask[Task]:
    """Run a task in a process of its own, which has all memory to itself."""
    try:
        with _pool(1, begin) as pool:
            return EndedTask(task, pool.submit(run, task).result())
    except BrokenProcessPool:
        return EndedTask(task, killed=True)


def _pool(processes: int, begin: Callable[[], None]) -> ProcessPoolExecutor:
    """Return fresh processes: a fork may hold locks of threads that it has not."""
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), initializer=begin)
