"""Load the columns of a chunk of rows onto a device when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep.engine.phase_one.label_steps import Loadable
from gpu_cep_kernels.device.interface import Array, Device

# What chunks load: each kind of input of each column.
Sources = dict[tuple[str, int], Loadable | None]


@dataclass
class Chunk:
    """The rows [low, high) of the columns; an input is loaded when it is first asked for.

    `sources` are the inputs that this or an earlier chunk has asked for.
    """

    columns: DeviceColumns
    sources: Sources
    low: int
    high: int
    _loaded: dict[tuple[str, int], Array | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def device(self) -> Device:
        device: Device = self.columns.device
        return device

    def values(self, column: int) -> Array:
        """Return the column in its machine representation; text as its codes."""
        if self.columns.columns.type(column).kind is Kind.STRING:
            return self._load("text", column, self.columns.text_codes)
        return self._load("values", column, self.columns.values)

    def present(self, column: int) -> Array | None:
        """Return uint8: 0 where the column is NULL; None if it never is."""
        return self._load("present", column, self.columns.present)

    def label_codes(self, column: int, codes: Loadable) -> Array:
        """Return the chunk's rows of `codes`, which stand for the values of a text column."""
        return self._load("label", column, lambda _: codes)

    def _load(self, kind: str, column: int, source: Callable[[int], Loadable | None]) -> Array | None:
        """Return the rows of an input, loaded on first use."""
        key = kind, column
        if key not in self.sources:
            self.sources[key] = source(column)
        if key not in self._loaded:
            self._loaded[key] = _load_rows(self.sources[key], self.low, self.high)
        return self._loaded[key]

    def prefetch(self) -> Chunk:
        """Load the rows of all inputs that earlier chunks asked for, and return the chunk."""
        self._loaded = {key: _load_rows(source, self.low, self.high) for key, source in self.sources.items()}
        return self

    def with_sources(self, sources: Sources) -> Chunk:
        """Return the chunk with the inputs that chunks have asked for by now, and what it has loaded."""
        return Chunk(self.columns, sources, self.low, self.high, self._loaded)


def _load_rows(source: Loadable | None, low: int, high: int) -> Array | None:
    return None if source is None else source.load(low, high)
