"""Remember what was made of schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

Made = TypeVar("Made")

_MOST = 8


class SchemaMemo(Generic[Made]):
    """What was made of the last few different schemas; threads may share it.

    Schemas are compared, with the metadata of their fields or without. That takes a fiftieth of the time that hashing one takes,
    and types of a caller's own may have no hash.
    """

    __slots__ = ("_held", "_metadata")

    def __init__(self, *, metadata: bool) -> None:
        self._metadata = metadata
        self._held: tuple[tuple[pa.Schema, Made], ...] = ()

    def of(self, schema: pa.Schema, make: Callable[[pa.Schema], Made]) -> Made:
        """Return what ``make(schema)`` returned for an equal schema, or returns now; an error is not remembered."""
        for known, made in self._held:
            if known.equals(schema, check_metadata=self._metadata):
                return made
        made = make(schema)
        self._held = ((schema, made), *self._held[: _MOST - 1])
        return made
