"""Remember results by the object that they were made of, not by its value."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Generic, TypeVar
from weakref import ref

Value = TypeVar("Value")
Made = TypeVar("Made")


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


class WeakIdentity(Generic[Value]):
    """An :class:`Identity` that does not keep its object alive; that of an object that is gone equals no other."""

    __slots__ = ("_address", "_object")

    def __init__(self, value: Value) -> None:
        self._address, self._object = id(value), ref(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeakIdentity):
            return False
        own = self._object()
        return own is not None and other._object() is own

    def __hash__(self) -> int:
        return self._address


def while_alive(make: Callable[[Value], Made]) -> Callable[[Value], Made]:
    """Return `make` with a memory: what it made of an object is kept until the object is gone.

    What is made must not hold the object itself, which would never go then.
    """
    held: dict[int, tuple[ref[Value], Made]] = {}

    @wraps(make)
    def made_of(value: Value) -> Made:
        address = id(value)
        known = held.get(address)
        if known is not None and known[0]() is value:
            return known[1]

        def forget(gone: ref[Value]) -> None:
            # another object may lie at the address already
            if address in held and held[address][0] is gone:
                del held[address]

        made = make(value)
        held[address] = ref(value, forget), made
        return made

    return made_of
