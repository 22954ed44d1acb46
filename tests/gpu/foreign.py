"""Arrays as other libraries hold them: on a card by ``__cuda_array_interface__``, on the simulator NumPy's protocol in its place."""

from __future__ import annotations

import importlib.util

import numpy as np

from tests.gpu.strict_arrays import StrictDevice


def strict_if_simulated(device):
    """The device; the simulator with arrays as strict as a card's."""
    if not device.simulated:
        return device
    return StrictDevice(importlib.import_module("cupy") if importlib.util.find_spec("cupy") else None)


class Foreign:
    """An array of another library, with every second element of a longer one if `strided`, and where it is not NULL."""

    def __init__(self, device, values, mask=None, *, strided=False):
        self._device = device
        stored = values.view(np.int64) if values.dtype.kind in "mM" else values
        longer = stored.repeat(2) if strided else stored
        held = longer if device.simulated else device.upload(longer)
        self._held = held[::2] if strided else held
        self._protocol = "__array_interface__" if device.simulated else "__cuda_array_interface__"
        described = {key: value for key, value in getattr(self._held, self._protocol).items() if key != "descr"}
        self.interface = {**described, "typestr": values.dtype.str, "mask": mask}

    def __getattr__(self, name):
        if name == self.__dict__.get("_protocol"):
            return self.interface
        raise AttributeError(name)

    def __len__(self):
        return self.interface["shape"][0]

    def held(self):
        """The elements as they are now, as an array of the host."""
        return self._held if isinstance(self._held, np.ndarray) else self._device.download(self._held)


def bits(device, valid):
    """A mask of one bit per row, as cuDF describes it."""
    packed = Foreign(device, np.packbits(valid, bitorder="little"))
    packed.interface |= {"shape": (len(valid),), "typestr": "<t1"}
    return packed


def flags(device, valid):
    """A mask of one number per row."""
    return Foreign(device, valid.astype(np.int32) * 256)


def unmasked(device, valid):
    """No mask."""
    return


MASKS = (unmasked, bits, flags)
