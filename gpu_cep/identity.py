"""Remember results by the object that they were made of, not by its value."""

from __future__ import annotations

from typing import Generic, TypeVar

Value = TypeVar("Value")


class Identity(Generic[Value]):
    """A key of caches that equals another one if both hold the same object.

    Trees and plans are immutable, and hashing one takes longer than what is remembered of it may be worth.
    Values that are equal may also differ in type, as 1 and 1.0 do.
    """

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)
