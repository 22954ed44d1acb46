"""Work in processes side by side: each compiles for itself, and a card takes turns between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from benchmarks.gpu.findings import BEGUN, Finding, described, fault, note
from gpu_cep_kernels.device.failures import DeviceLost, cuda_failure

Result = TypeVar("Result")

SECONDS_TO_BEGIN, SECONDS_TO_END = 1.0, 5.0


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Give so many new processes. Behind the block they end, whatever they are at."""
    # a forked process could not use CUDA
    pool = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        yield pool
    finally:
        running = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()
        # what they hold of the card is let go before anything is timed
        for process in running:
            process.join(SECONDS_TO_END)


def outcomes(called: Mapping[Future[Result], str], seconds: float, take: Callable[[str, Result], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what `take` makes of each call's name and result, as calls end: a fault for one that fails, a note of those out of time.

    Raises
    ------
    DeviceLost
        CUDA failed in a call: its process can do nothing more. The calls that have ended are told as begun, that one as the last.
    """
    left, ended = set(called.values()), list[str]()
    try:
        for future in as_completed(called, max(SECONDS_TO_BEGIN, seconds)):
            name, error = called[future], future.exception()
            if isinstance(error, BrokenProcessPool):
                yield fault(f"The system ended a process, with which the others ended. Left are: {', '.join(sorted(left))}.")
                return
            left.discard(name)
            ended.append(name)
            if error is None:
                yield from take(name, future.result())
                continue
            failure = cuda_failure(error)
            yield fault(f"{name}: {described(error, failure)}")
            if isinstance(failure, DeviceLost):
                yield from (Finding(BEGUN, each) for each in ended)
                raise failure from error
    except TimeoutError:
        yield note(f"Out of time before the end of: {', '.join(sorted(left))}.")
