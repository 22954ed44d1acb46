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
        code = cuda_code(fault)
        if code == _OUT_OF_MEMORY and not isinstance(fault, MemoryError):
            raise MemoryError(str(fault)) from fault
        if code in _FATAL:
            raise DeviceLost(_message(fault)) from fault
        raise


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
