"""What a run may take of a device's memory, and the pieces that its work is cut into to stay within."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_cep.engine.labels import words_for
from gpu_cep.plan.plan import Plan
from gpu_cep_kernels.device import Device

# Share of the free memory that a run takes; the rest is for what estimates cannot know: allocators' slack, libraries' workspaces.
MEMORY_SHARE = 0.8
# Rows of a chunk: enough to keep a card busy, few enough that copies of the next overlap with its kernels.
LARGEST_CHUNK, SMALLEST_CHUNK = 1 << 24, 1 << 8
SMALLEST_BATCH = 1 << 10

# Bytes per kept event while it is ordered: time, row, key code, all once more in order, and two int64 orders, sorted in scratch.
_ORDERING = 2 * (8 + 4 + 8) + 4 * 8
# The same for each word of its label.
_ORDERING_WORD = 2 * 8
# Bytes per event of a batch beside its label and occurrences: time, stream and its end, what follows, coverage, and scratch.
_WINDOWS = 8 + 4 + 4 + 4 + 4 + 4 * 8
# Bytes per event and variable: next occurrence, prefix count, earliest event, binding's count.
_PER_VARIABLE = 4 * 4
# Bytes per event that a match binds: its place in the batch, and its place among those that come back.
_BOUND = 2 * 8


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes that a run may take, and how many rows or events that lets it work on at a time, with labels of so many words."""

    bytes: int
    words: int = 1

    def chunk_rows(self, row_bytes: int) -> int:
        """Rows of a chunk whose labels are computed: two chunks, one of them on its way, take a quarter."""
        return max(SMALLEST_CHUNK, min(LARGEST_CHUNK, self.bytes // 8 // max(1, row_bytes)))

    @property
    def kept_events(self) -> int:
        """Events that can be kept and ordered on the device."""
        return self.bytes // 2 // (_ORDERING + _ORDERING_WORD * self.words)

    def batch_events(self, variables: int) -> int:
        """Events of a batch whose windows are judged, those that its last windows reach included."""
        return max(SMALLEST_BATCH, self.bytes // 2 // (_WINDOWS + 8 * self.words + _PER_VARIABLE * variables))

    @property
    def bound_events(self) -> int:
        """Events that the matches which are read off at a time bind, one match at least."""
        return max(1, self.bytes // 4 // _BOUND)

    def halved(self) -> DeviceMemory:
        """Half of it, for another try."""
        return replace(self, bytes=self.bytes // 2)


def memory_of(device: Device, plan: Plan) -> DeviceMemory:
    """What a run of `plan` may take: ``gpu_memory=``, or the share of what is free."""
    free = int(device.free_memory() * MEMORY_SHARE)
    wanted = plan.settings.gpu_memory
    words = len(words_for(len(plan.query.variables)))
    return DeviceMemory(free if wanted is None else min(wanted, free), words)
