"""Load the columns of a chunk of rows onto a device, together or when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_cep.analysis.types import Kind
from gpu_cep.engine.input.device.uploads import Input, load
from gpu_cep.engine.phase_one.device.columns import DeviceColumns
from gpu_cep_kernels.device.interface import Array, Device

# One kind of input of a column.
Key = tuple[str, int]


@dataclass
class Sources:
    """Hold the inputs that the chunks of a run load; each is made when it is first asked for."""

    columns: DeviceColumns
    held: dict[Key, Input | None] = field(default_factory=dict)

    def values(self, column: int) -> Key:
        """Ask for a column in its machine representation; for text, for its codes."""
        if self.columns.columns.type(column).kind is Kind.STRING:
            return self._ask(("text", column), self.columns.text_codes)
        return self._ask(("values", column), self.columns.values)

    def present(self, column: int) -> Key:
        """Ask where a column is not NULL."""
        return self._ask(("present", column), self.columns.present)

    def label_codes(self, column: int, codes: Input) -> Key:
        """Ask for `codes`, which stand for the values of a text column."""
        return self._ask(("label", column), lambda _: codes)

    def _ask(self, key: Key, source: Callable[[int], Input | None]) -> Key:
        if key not in self.held:
            self.held[key] = source(key[1])
        return key


@dataclass
class Chunk:
    """The rows [low, high) of the columns; an input that was not loaded with others is loaded when it is first asked for."""

    sources: Sources
    low: int
    high: int
    _loaded: dict[Key, Array | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.high - self.low

    @property
    def columns(self) -> DeviceColumns:
        """Return the columns of which the chunk is a part."""
        return self.sources.columns

    @property
    def device(self) -> Device:
        """Return the device that holds the chunk."""
        return self.columns.device

    def values(self, column: int) -> Array:
        """Return the column in its machine representation; text as its codes."""
        return self._load(self.sources.values(column))

    def present(self, column: int) -> Array | None:
        """Return uint8: 0 where the column is NULL; None if it never is."""
        return self._load(self.sources.present(column))

    def label_codes(self, column: int, codes: Input) -> Array:
        """Return the chunk's rows of `codes`, which stand for the values of a text column."""
        return self._load(self.sources.label_codes(column, codes))

    def _load(self, key: Key) -> Array | None:
        """Return the rows of an input, loaded on first use."""
        if key not in self._loaded:
            self._load_all([key])
        return self._loaded[key]

    def prefetch(self) -> Chunk:
        """Load the rows of all inputs that were asked for so far, and return the chunk."""
        self._load_all([*self.sources.held])
        return self

    def _load_all(self, keys: list[Key]) -> None:
        held = {key: source for key in keys if (source := self.sources.held[key]) is not None}
        found = dict(zip(held, load(self.device, [*held.values()], self.low, self.high), strict=True))
        self._loaded.update({key: found.get(key) for key in keys})
