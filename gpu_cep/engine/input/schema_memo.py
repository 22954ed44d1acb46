"""Remember what was made of a query, or a plan, for schemas of events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from gpu_cep_kernels.compile.forks import free_after_fork

if TYPE_CHECKING:
    import pyarrow as pa

Key = TypeVar("Key", bound=Hashable)
Made = TypeVar("Made")


class SchemaMemo(Generic[Key, Made]):
    """Hold what was made of the last `most` pairs of a key and a schema; threads may share it.

    Schemas are compared, with the metadata of their fields or without: hashing one takes longer,
    and types of a caller's own may have no hash.
    """

    def __init__(self, most: int, *, metadata: bool) -> None:
        self._most, self._metadata = most, metadata
        # keys and the schemas of each, those that were asked for last at the end and at the front
        self._held: OrderedDict[Key, tuple[tuple[pa.Schema, Made], ...]] = OrderedDict()
        # those of the key at the end
        self._latest: tuple[tuple[pa.Schema, Made], ...] = ()
        self._pairs = 0
        self._changing = free_after_fork()

    def of(self, key: Key, schema: pa.Schema, make: Callable[[pa.Schema], Made]) -> Made:
        """Return what ``make(schema)`` returned for the key and an equal schema, or returns now; an error is not remembered."""
        pairs = self._held.get(key, ())
        for place, (known, made) in enumerate(pairs):
            if known.equals(schema, check_metadata=self._metadata):
                if place or pairs is not self._latest:
                    self._note_use(key, place, known)
                return made
        made = make(schema)
        with self._changing:
            self._held[key] = self._latest = ((schema, made), *self._held.get(key, ()))
            self._held.move_to_end(key)
            self._pairs += 1
            if self._pairs > self._most:
                self._forget()
        return made

    def _note_use(self, key: Key, place: int, schema: pa.Schema) -> None:
        """Move a key to the end, and its schema to the front of the key's, as the latest asked for; skip one that was forgotten."""
        with self._changing:
            pairs = self._held.get(key, ())
            if place < len(pairs) and pairs[place][0] is schema:
                self._held.move_to_end(key)
                if place:
                    self._held[key] = (pairs[place], *pairs[:place], *pairs[place + 1 :])
                self._latest = self._held[key]

    def _forget(self) -> None:
        """Let go the last schema of the key that was not asked for the longest."""
        key, pairs = next(iter(self._held.items()))
        self._pairs -= 1
        if len(pairs) > 1:
            self._held[key] = pairs[:-1]
        else:
            del self._held[key]
