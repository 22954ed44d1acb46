"""Drive kernels on the CPU: over slices of their index range, in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Events that take about as long as it takes to hand them to another thread and to wait for it.
_WORTH_A_THREAD = 1 << 12


def available_threads() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_of(threads: int | None) -> int:
    """Return how many threads a caller allows: one for each core that this process may use, if it is None."""
    return available_threads() if threads is None else threads


def threads_for(size: int, threads: int) -> int:
    """Return how many of `threads` are worth the cost of handing them parts of `size` events or matches."""
    return 1 if threads == 1 else max(1, min(threads, size // _WORTH_A_THREAD))


@cache
def _executor(threads: int, process: int) -> ThreadPoolExecutor:
    """Return this process's thread pool with so many threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"gpu_cep-{process}")


def spread(function: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return what `function` gives for each item, in the order of items; `threads` threads work on it.

    If calls fail, raise the error of the first such item. The calling thread is one
    of the threads: it takes what no other has begun, and then waits for the others.
    So `function` may spread its own work.
    """
    if threads == 1 or len(items) <= 1:
        return list(map(function, items))
    begun = [_executor(threads - 1, os.getpid()).submit(function, item) for item in items]
    outcomes: list[Future[Result]] = []
    try:
        for future, item in zip(begun, items, strict=True):
            outcomes.append(_outcome(function, item) if future.cancel() else future)
            if outcomes[-1].done() and outcomes[-1].exception() is not None:
                break
        return [outcome.result() for outcome in outcomes]
    finally:
        for future in begun:
            future.cancel()


def over_slices(kernel: Callable[..., None], size: int, threads: int, *arguments: Any) -> None:
    """Run a parallel kernel over [0, size) in `threads` threads; `arguments` are all but low and high."""
    if threads == 1 and size:
        kernel(0, size, *arguments)
        return
    spread(lambda span: kernel(*span, *arguments), slices(size, threads), threads)


def _outcome(function: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Return what the call gives, or the exception that it raises, as a finished future."""
    outcome: Future[Result] = Future()
    try:
        outcome.set_result(function(item))
    except Exception as fault:
        outcome.set_exception(fault)
    return outcome


def slices(length: int, parts: int) -> list[tuple[int, int]]:
    """Return ``[0, length)`` cut into at most `parts` slices of nearly equal length, none of them empty."""
    if parts <= 1 or length <= 1:
        return [(0, length)] if length else []
    parts = min(parts, length)
    return [(length * part // parts, length * (part + 1) // parts) for part in range(parts)]


def blocks(low: int, high: int, size: int) -> Iterable[tuple[int, int]]:
    """Return ``[low, high)`` cut into blocks of `size`; the last one may be shorter."""
    return ((start, min(start + size, high)) for start in range(low, high, size))
