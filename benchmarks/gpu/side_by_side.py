"""Work in processes side by side: each compiles for itself, and a card takes turns between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from benchmarks.gpu.findings import Finding, described, fault, note
from gpu_cep_kernels.device.failures import cuda_failure

Result = TypeVar("Result")

SECONDS_TO_BEGIN = 1.0


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """So many new processes. Behind the block they end, whatever they are at."""
    # a forked process could not use CUDA
    pool = ProcessPoolExecutor(count, get_context("spawn"))
    try:
        yield pool
    finally:
        running = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()


def outcomes(called: Mapping[Future[Result], str], seconds: float, take: Callable[[str, Result], Iterable[Finding]]) -> Iterator[Finding]:
    """What `take` makes of each call's name and result, as calls end: a fault for one that fails, a note of those out of time."""
    left = set(called.values())
    try:
        for future in as_completed(called, max(SECONDS_TO_BEGIN, seconds)):
            name, error = called[future], future.exception()
            left.discard(name)
            if error is None:
                yield from take(name, future.result())
            else:
                yield fault(f"{name}: {described(error, cuda_failure(error))}")
    except TimeoutError:
        yield note(f"Out of time before the end of: {', '.join(sorted(left))}.")
