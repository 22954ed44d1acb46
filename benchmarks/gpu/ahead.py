"""What queries run with a card, for processes that compile it ahead of them; no card is needed.

``python -m benchmarks.gpu.ahead`` asks the questions of :mod:`benchmarks.gpu.questions` as :mod:`benchmarks.gpu.cold_start` does, compiles
what they launch and what the CPU runs beside it, and writes kernels/gpu_cep_kernels/compile/ahead.json anew: what takes longest is first.
Each is compiled in a process of its own: another kernel of the same rules may not have been compiled when a query waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import product
from multiprocessing import get_context
from threading import local
from typing import Any
from unittest.mock import patch

import numba
from numba.core.caching import NullCache

from benchmarks.gpu.cold_start import launched
from benchmarks.gpu.counting import CountingDevice
from benchmarks.gpu.device_code import CAPABILITIES, machine_code, ptx_of
from benchmarks.gpu.questions import QUESTIONS
from gpu_cep.engine.phase_one.device import order_events
from gpu_cep_kernels.compile.ahead import FORMS, import_for_card, import_for_cpu
from gpu_cep_kernels.compile.bundles import bundled
from gpu_cep_kernels.compile.forms import Form, form_of, object_named, signature_of, text_of, type_of, write_forms
from gpu_cep_kernels.compile.jit import Kernel

# By kernel and types; each kernel with what it is compiled for.
Used = dict[tuple[str, str], tuple[Kernel[..., Any], Any]]


def all_used() -> tuple[Used, Used]:
    """Return the kernels that the questions launch, each with its types, and those that the CPU runs beside them."""
    used = Used()
    with _noting_calls() as called:
        for question, many in product(QUESTIONS.values(), (order_events._MANY, 1)):
            # the few events that are asked for are ordered as many are, too
            with patch.object(order_events, "_MANY", many):
                used |= {(kernel.__name__, str(types)): (kernel, types) for kernel, types in launched(question)}
    return used, called


@contextmanager
def _noting_calls() -> Iterator[Used]:
    """Note which kernels the CPU runs, but for those that it runs in a card's place."""
    called, inside = Used(), local()
    call, launch = Kernel.__call__, CountingDevice.launch

    def noted(kernel: Kernel[..., Any], *given: Any) -> Any:
        if not getattr(inside, "launch", False):
            types = tuple(map(kernel.compiled.typeof_pyval, given))
            if all(bundled(type_of(text_of(each))) == each for each in types):
                called[kernel.__name__, str(types)] = kernel, types
        return call(kernel, *given)

    def in_its_place(device: CountingDevice, kernel: Kernel[..., Any], size: int, *given: Any) -> None:
        inside.launch = True
        try:
            launch(device, kernel, size, *given)
        finally:
            inside.launch = False

    with patch.object(Kernel, "__call__", noted), patch.object(CountingDevice, "launch", in_its_place):
        yield called


def _seconds(form: Form) -> float:
    """Return the seconds of processor time to compile a form, a card's for the newest architecture; to be called in a new process."""
    import_for_cpu()
    kernel = object_named(form.kernel)
    if form.on_cpu:
        return seconds_on_cpu(kernel, signature_of(form))
    import_for_card(CAPABILITIES[-1])
    begin = time.process_time()
    machine_code(ptx_of(kernel, numba.void(*map(type_of, form.types)), CAPABILITIES[-1]), CAPABILITIES[-1])
    return time.process_time() - begin


def seconds_on_cpu(kernel: Kernel[..., Any], types: Any) -> float:
    """Return the seconds of processor time to compile a kernel for the CPU, rules that others have brought along not among them."""
    again = Kernel(kernel.body, kernel.parallel, kernel.writes, kernel.scratch)
    again.compiled._cache = NullCache()
    begin = time.process_time()
    again.compiled.compile(types)
    return time.process_time() - begin


def main() -> None:
    """Write the list."""
    used, called = all_used()
    forms = [form_of(kernel, types.args) for kernel, types in used.values()]
    forms += [form_of(*each, on_cpu=True) for each in called.values()]
    context = get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.gpu.ahead"])
    with ProcessPoolExecutor(1, context, max_tasks_per_child=1) as pool:
        seconds = dict(zip(map(str, forms), pool.map(_seconds, forms), strict=True))
    write_forms(FORMS, sorted(forms, key=lambda form: -seconds[str(form)]))


if __name__ == "__main__":
    main()
