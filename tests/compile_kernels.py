"""``python -m tests.compile_kernels``: compiles every kernel for the types of its cases, in a process for each core.

Processes that run tests beside each other find them on disk then, and no two compile the same.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.gpu.device_code import arguments_of
from gpu_cep_kernels.compile.launch import available_threads
from tests.kernel_cases import CASES, KernelCase
from tests.kernels.runs import leading


def types_of(case: KernelCase) -> tuple[Any, ...]:
    """The types with which the kernel's CPU form is called."""
    return tuple(map(case.kernel.compiled.typeof_pyval, (*leading(case, 0, 1, 0), *arguments_of(case))))


def compile_case(number: int) -> None:
    """The case of that number: kernels do not travel between processes."""
    case = CASES[number]
    case.kernel.compiled.compile(types_of(case))


def main() -> None:
    """The kernels of most tables first: they take longest, and no process should be left with one alone."""
    distinct: dict[tuple[str, str], int] = {}
    for number, case in enumerate(CASES):
        distinct.setdefault((case.kernel.__name__, str(types_of(case))), number)
    order = [distinct[key] for key in sorted(distinct, key=lambda key: len(key[1]), reverse=True)]
    with ProcessPoolExecutor(available_threads()) as processes:
        list(processes.map(compile_case, order))


if __name__ == "__main__":
    main()
