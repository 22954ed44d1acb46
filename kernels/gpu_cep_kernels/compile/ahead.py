"""Compile, in processes side by side, what queries launch on a card, and what the CPU runs for them.

ahead.json lists kernels with the types of their arguments: what the benchmark's questions run,
those that take longest to compile first. ``python -m benchmarks.gpu.ahead`` writes it.

A process that compiles opens no card: it is told the compute capability by its input. It ends with the process that started it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from subprocess import Popen
from types import SimpleNamespace

import numba
from numba.core.registry import cpu_target

from gpu_cep_kernels.compile import jit, notices
from gpu_cep_kernels.compile.forms import Form, compile_for_cpu, object_named, read_forms, type_of
from gpu_cep_kernels.compile.kernel_cache import cache_folder, is_kept, writable_folder
from gpu_cep_kernels.compile.launch import available_threads
from gpu_cep_kernels.compile.processes import can_start, end_with_parent, fork_others, read_told, start_beside, tell
from gpu_cep_kernels.compile.turns import ahead_turn, cuda_turn, is_taken

FORMS = Path(__file__).with_name("ahead.json")
Capability = tuple[int, int]
# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_CAPABILITY = (75, 76)
# So many processes at most begin with what the CPU runs, one of so many: two forms take long, the others together as long as one.
_MOST_FOR_CPU, _PROCESSES_FOR_EACH = 3, 4


def forms() -> list[Form]:
    """Return the forms to compile, those that take longest first."""
    return read_forms(FORMS)


@cache
def compile_ahead() -> None:
    """Start processes that compile what is not on disk yet, on the cores that this one leaves; once in a process.

    Nothing happens without a CUDA driver, in the simulator, where nothing can be kept, in an application whose file is not
    Python, if all was compiled before, or while another process has started some for a card of the same compute capability.
    """
    usable = not jit.simulated() and can_start() and _driver() is not None
    folder = writable_folder(cache_folder()) if usable else None
    if folder is None or _is_compiled(folder):
        return
    # what another process compiles may be for another kind of card
    alone = not any(map(is_taken, folder.glob("ahead-*.lock"))) and ahead_turn.take_free(_done(folder, None).with_suffix(".lock"))
    if alone or _takes_turn(folder, card_capability()):
        started = start(available_threads() - 1)
        # they import what they need, while the driver takes its time
        capability = card_capability()
        begins = not alone or _takes_turn(folder, capability)
        for process in started:
            tell(process, "{} {}\n".format(*capability) if begins and capability is not None else "")


def _takes_turn(folder: Path, capability: Capability | None) -> bool:
    """Return whether there is a card for whose capability no other process compiles ahead; this one does so from now on."""
    return capability is not None and ahead_turn.take_free(_done(folder, capability).with_suffix(".lock"))


def _is_compiled(folder: Path) -> bool:
    """Return whether all forms are compiled for the card; it is asked only where they are for some card."""
    if not is_kept(_done(folder, None).name):
        return False
    capability = card_capability()
    return capability is None or is_kept(_done(folder, capability).name)


def start(processes: int) -> list[Popen[bytes]]:
    """Start to compile in so many processes, one for each form at most, and return those that are to be told the compute capability.

    It is one process, which forks the others once it has imported what all need, or as many where processes cannot fork.
    """
    processes = min(processes, len(forms()))
    each = max(1, processes) if hasattr(os, "fork") else 1
    started = [start_beside("gpu_cep_kernels.compile.ahead", (each,)) for _ in range(0, processes, each)]
    return [process for process in started if process is not None]


@cache
def _driver() -> ctypes.CDLL | None:
    """Return CUDA's driver, None if there is none."""
    try:
        return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return None


def card_capability() -> Capability | None:
    """Return the compute capability of the first card that this process sees, None if there is none; the card is not opened."""
    driver = _driver()
    if driver is None:
        return None
    device, found = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    asked = [driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0)]
    asked += [driver.cuDeviceGetAttribute(ctypes.byref(part), name, device) for part, name in zip(found, _CAPABILITY, strict=True)]
    return None if any(asked) else (found[0].value, found[1].value)


def known_capabilities() -> list[Capability]:
    """Return the compute capabilities for which CUDA's compiler compiles here, ascending; no card is asked.

    Raises
    ------
    ImportError, RuntimeError
        Numba-cuda or that compiler is missing, or the simulator stands in for them.
    """
    if jit.simulated():
        raise RuntimeError("NUMBA_ENABLE_CUDASIM asks for the simulator, which compiles nothing")
    if importlib.util.find_spec("numba_cuda") is None:
        raise ImportError("numba-cuda is not installed (pip install 'gpu_cep[gpu]')")
    from numba.cuda.cudadrv import nvrtc

    return sorted(nvrtc.get_supported_ccs())  # type: ignore[attr-defined]


def _done(folder: Path, capability: Capability | None) -> Path:
    """Return the empty file that says that all forms are compiled, for some card where no capability is given."""
    spec = importlib.util.find_spec("numba_cuda")
    about = (FORMS.read_bytes(), jit.compilers_key(), notices.package_version(), numba.__version__, spec and spec.origin, capability)
    return folder / f"ahead-{hashlib.sha256(repr((sys.implementation.cache_tag, about)).encode()).hexdigest()[:16]}"


def compile_all(capability: Capability, listed: Sequence[Form]) -> None:
    """Compile the forms that no process compiles, then those that a process has given up; what fails is left to queries.

    After a want of disk or memory a later process tries again.
    """
    failed, short = set[int](), False
    for wait in (False, True):
        for number, form in enumerate(listed):
            try:
                if number not in failed:
                    compile_form(form, capability, wait)
            except Exception as fault:
                failed.add(number)
                short |= isinstance(fault, OSError | MemoryError)
    if not short:
        note_done(capability)


def compile_form(form: Form, capability: Capability, wait: bool = True) -> None:
    """Compile a form and keep it on disk, unless it is there; if another process compiles it, `wait` for that, or leave it.

    This process opens no card from then on: it stands in for one of that capability.
    """
    if form.on_cpu:
        compile_for_cpu(form, wait)
        return
    _stand_in(capability)
    dispatcher = object_named(form.kernel).cuda
    signature = tuple(map(type_of, form.types))
    if dispatcher._cache.begin(signature, dispatcher.targetctx, wait):
        from numba.cuda.dispatcher import _Kernel

        try:
            compiled = _Kernel(dispatcher.py_func, signature, **dispatcher.targetoptions)
            compiled.library.get_cubin()
            dispatcher._cache.save_overload(signature, compiled)
        finally:
            cuda_turn.give_up()


def note_done(capability: Capability) -> None:
    """Let later processes know that all forms are compiled."""
    folder = writable_folder(cache_folder())
    if folder is not None:
        for each in (capability, None):
            _done(folder, each).touch()


@cache
def _stand_in(capability: Capability) -> None:
    """Let numba-cuda compile in this process for a card that it does not open."""
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import devices

    device = SimpleNamespace(compute_capability=capability)
    dispatcher.get_current_device = lambda: device  # type: ignore[attr-defined]
    devices.get_context = lambda *_: SimpleNamespace(device=device)


def import_for_cpu() -> None:
    """Import what compiling for the CPU takes, and let numba register what it knows of types and functions."""
    for form in forms():
        import_module(form.kernel.partition(":")[0])
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def import_for_card(capability: Capability) -> None:
    """Import numba-cuda, and let it register what it knows of types and functions."""
    from numba.cuda.descriptor import cuda_target

    _stand_in(capability)
    cuda_target.typing_context.refresh()
    cuda_target.target_context.refresh()


def _fork(capability: Capability, processes: int) -> tuple[list[int], list[Form]]:
    """Fork all but one of `processes`; return them, and the forms in this process's order.

    Some begin with what the CPU runs, before numba-cuda is imported: a query waits longest for that.
    """
    listed, early = forms(), min(_MOST_FOR_CPU, processes // _PROCESSES_FOR_EACH)
    first = fork_others(early)
    if len(first) < early:
        return [], sorted(listed, key=lambda form: not form.on_cpu)
    import_for_card(capability)
    others = fork_others(processes - 1 - early)
    return [*first, *others] if others else [], listed


def main(argv: Sequence[str]) -> None:
    """Compile in so many processes for the compute capability whose two numbers are the first line of the input."""
    processes = int(argv[0])
    import_for_cpu()
    told = read_told()
    if not told:
        return
    major, minor = map(int, told.split())
    capability = major, minor
    # before there is a thread, which would not be forked
    forked, listed = _fork(capability, processes) if processes > 1 else ([], forms())
    end_with_parent()
    compile_all(capability, listed)
    for each in forked:
        os.waitpid(each, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
