"""Every kernel does on the device what its compiled form does on the CPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_cep_kernels.device.packing import to_device
from tests.kernel_cases.calls import written
from tests.kernels.runs import compiled, each_call, image, made

# The simulator takes its time.
FEW = (0, 1, 40)


def on_host(device, value):
    """Arrays of the device, alone or in tuples, as NumPy's."""
    if isinstance(value, device.xp.ndarray):
        return device.download(value)
    return tuple(on_host(device, part) for part in value) if isinstance(value, tuple) else value


@each_call(lambda case: case.kernel.parallel, FEW)
def test_a_launch_does_what_the_cpu_does(device, case, size):
    call = made(case, size, device.slots(size))
    call = call._replace(arguments=to_device(device, call.arguments))
    device.launch(case.kernel, call.size, *call.arguments)
    assert (None, image(on_host(device, tuple(written(case, call))))) == compiled(case, size)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each_call(lambda case: not case.kernel.parallel, FEW)
def test_one_thread_does_what_the_cpu_does(device, case, size):
    if not device.simulated:
        pytest.skip("a card runs primitives in place of sequential kernels")
    call = made(case, size)
    result = np.zeros(1, np.int64)
    case.kernel.cuda[1, 1](result if case.kernel.returns else 1, call.arguments)
    returned, expected = compiled(case, size)
    assert image(written(case, call)) == expected
    assert result[0] == (returned or 0)
