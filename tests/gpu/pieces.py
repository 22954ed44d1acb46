"""Tiny pieces of work, as a device that holds next to nothing cuts them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Pieces:
    """As DeviceMemory, for a device that holds next to nothing."""

    bytes: int
    chunk: int
    kept_events: int
    batch: int
    bound_events: int
    ranked_values: int
    walked: int = 1000
    lifted: bool = True
    room: bool = True

    def chunk_rows(self, labelling):
        return self.chunk

    def batch_events(self, resident):
        return self.batch

    def walked_windows(self, fixed, window, held, batch):
        return self.walked

    def for_batch(self, events, total):
        return events

    def lifted_events(self, resident, event):
        return self.batch if self.lifted else 0

    def holds(self, taken, rows):
        return self.room


PIECES = st.builds(
    Pieces,
    bytes=st.just(1),
    chunk=st.integers(1, 9),
    kept_events=st.sampled_from([3, 1000]),
    batch=st.sampled_from([60, 1000]),
    bound_events=st.sampled_from([1, 5, 1000]),
    ranked_values=st.sampled_from([2, 1000]),
    walked=st.sampled_from([0, 1, 3, 1000]),
    lifted=st.booleans(),
)
