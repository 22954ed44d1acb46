"""Faults in what a card needs, which no card is needed to notice."""

from __future__ import annotations

from tests.mutants.fault import Fault

DEVICE = (
    Fault(
        "empty-streams-have-a-number",
        "gpu_cep/engine/phase_one/device/order_events.py",
        "borders = device.upload(begins[np.diff(begins, prepend=0) > 0])",
        "borders = device.upload(begins)",
        ("tests/engine/phase_one/test_device_streams.py",),
    ),
    Fault(
        "streams-of-picked-events-begin-late",
        "gpu_cep/engine/phase_one/device/event_sources.py",
        "np.searchsorted(events, source.offsets)",
        'np.searchsorted(events, source.offsets, side="right")',
        ("tests/engine/phase_one/test_device_streams.py",),
    ),
    Fault(
        "illegal-address-is-survived",
        "kernels/gpu_cep_kernels/device/failures.py",
        "frozenset((214, 700, 702,",
        "frozenset((214, 702,",
        ("tests/kernels/device/test_failures.py",),
    ),
    Fault(
        "lost-device-is-opened-again",
        "kernels/gpu_cep_kernels/device/selection.py",
        "    _lost.append(reason)",
        "    del reason",
        ("tests/kernels/device/test_failures.py",),
    ),
    Fault(
        "check-goes-on-at-the-item-at-fault",
        "benchmarks/gpu/parts.py",
        "        done |= {lost}",
        "        done |= set()",
        ("tests/benchmarks/test_gpu_check.py::test_a_part_goes_on_behind_the_item_that_lost_the_device",),
    ),
    Fault(
        "parameter-that-cupy-lacks",
        "kernels/gpu_cep_kernels/device/primitives.py",
        'order = xp.argsort(keys[-1], kind="stable")',
        "order = xp.argsort(keys[-1], stable=True)",
        ("tests/kernels/device/test_array_names.py::test_cupys_functions_take_the_arguments",),
    ),
)
