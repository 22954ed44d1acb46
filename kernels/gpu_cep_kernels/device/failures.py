"""Tell failures of CUDA apart: memory ran out, or the device is lost to this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Driver and runtime number their errors alike.
_OUT_OF_MEMORY = 2
# An uncorrectable fault of the memory, an illegal address, a kernel that took too long, a failed assertion, faults of stack,
# instruction, alignment, address space and program counter, a failed launch, and a fault of no known kind.
_FATAL = frozenset((214, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999))
BLOCKING = "CUDA_LAUNCH_BLOCKING"


class DeviceLost(Exception):
    """Say that CUDA failed so that every later call of this process fails, too; the message says how."""


@contextmanager
def told_apart() -> Iterator[None]:
    """Run the block, and raise its failures of CUDA as what they mean.

    Raises
    ------
    MemoryError
        The device has no memory left. Work in smaller pieces may succeed.
    DeviceLost
        No later work of this process can succeed on the device.
    """
    try:
        yield
    except Exception as fault:
        failure = _failure(fault)
        if failure is None or isinstance(fault, (MemoryError, DeviceLost)):
            raise
        raise failure from fault


def cuda_failure(fault: BaseException) -> Exception | None:
    """Return what an error means for the device, by itself or by its causes: MemoryError, DeviceLost, or None."""
    failure = _failure(fault)
    if failure is not None:
        return failure
    related = (fault.__cause__, *getattr(fault, "exceptions", ()))
    return next((found for each in related if each is not None and (found := cuda_failure(each)) is not None), None)


def _failure(fault: BaseException) -> Exception | None:
    """Return an error itself or as what it means; None if it is neither a want of memory nor fatal."""
    if isinstance(fault, DeviceLost):
        return fault
    code = cuda_code(fault)
    if isinstance(fault, MemoryError) or code == _OUT_OF_MEMORY:
        return MemoryError(str(fault))
    return DeviceLost(_message(fault)) if code in _FATAL else None


def cuda_code(fault: BaseException) -> int | None:
    """Return CUDA's number of the error, from CuPy's ``status`` or numba's ``code``; None if it is none of CUDA's."""
    codes = (getattr(fault, name, None) for name in ("status", "code"))
    return next((int(code) for code in codes if isinstance(code, int)), None)


def _message(fault: BaseException) -> str:
    """Return the error's text, and what was noted of it."""
    return "; ".join([f"{type(fault).__name__}: {fault}", *getattr(fault, "__notes__", ())])


def note_kernel(fault: BaseException, kernel: str) -> None:
    """Note on a fatal error which kernel was being launched when it came to light."""
    if cuda_code(fault) in _FATAL:
        fault.add_note(f"it came to light at the launch of {kernel}, and with {BLOCKING}=1 comes to light at the kernel at fault")
