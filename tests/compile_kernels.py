"""``python -m tests.compile_kernels``: compiles every kernel for the types of its cases, in a process for each core.

Processes that run tests beside each other find them on disk then, and no two compile the same.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.gpu.device_code import arguments_of
from gpu_cep_kernels.compile.forms import form_of
from gpu_cep_kernels.compile.launch import available_threads
from tests.kernel_cases import CASES, KernelCase
from tests.kernels.runs import leading


def types_of(case: KernelCase) -> tuple[Any, ...]:
    """The types with which the kernel's CPU form is called."""
    return tuple(map(case.kernel.compiled.typeof_pyval, (*leading(case, 0, 1, 0), *arguments_of(case))))


def compile_cases(numbers: list[int]) -> None:
    """The cases of those numbers: kernels do not travel between processes."""
    for case in map(CASES.__getitem__, numbers):
        case.kernel.compiled.compile(types_of(case))


def folders() -> list[list[int]]:
    """The numbers of cases with distinct forms by the folder of their kernels, which share rules: each process compiles a rule once.

    Those with most tables come first: they take longest, and no process should be left with one alone.
    """
    by_folder: dict[str, dict[str, int]] = defaultdict(dict)
    for number, case in enumerate(CASES):
        form = str(form_of(case.kernel, types_of(case), on_cpu=True))
        by_folder[case.kernel.body.__module__.split(".")[1]].setdefault(form, number)
    return [[*forms.values()] for forms in sorted(by_folder.values(), key=lambda forms: -len("".join(forms)))]


def main() -> None:
    """Compile the cases of a folder in one process each."""
    with ProcessPoolExecutor(available_threads()) as processes:
        list(processes.map(compile_cases, folders()))


if __name__ == "__main__":
    main()
