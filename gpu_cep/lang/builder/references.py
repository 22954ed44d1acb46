"""Build ``v[…]``: single events of a binding, and those before the current one."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_cep.errors import PatternError
from gpu_cep.lang import ast as tree
from gpu_cep.lang.builder.constants import name, whole
from gpu_cep.lang.builder.expressions import Expression

_INDICES = "the event of a binding is v[i], v[i - 1], v[1] (counted from 1), v[-1] (the last), and v[: i - 1] those before the current one"


@dataclass(frozen=True, slots=True)
class Counter:
    """The number of the current event in its binding; only ``i`` and ``i - 1`` can be written."""

    ast: tree.EachIndex | tree.PreviousIndex = tree.EachIndex()

    def __sub__(self, distance: int) -> Counter:
        if isinstance(self.ast, tree.PreviousIndex) or whole(distance, f"{distance!r} is no number of events") != 1:
            raise PatternError("only the event bound just before can be read: v[i - 1]")
        return Counter(tree.PreviousIndex())


i = Counter()
"""``v[i]`` is each event bound to v, ``v[i - 1]`` the one before it."""


@dataclass(frozen=True, slots=True)
class BoundEvent:
    """One event of a binding: ``v[i]``, ``v[i - 1]``, ``v[1]`` or ``v[-1]``.

    Its attributes are read by a dot, or by ``["…"]``.
    """

    ast: tree.Reference

    def __getattr__(self, attribute: str) -> Expression:
        return self.attr(public(attribute))

    def __getitem__(self, attribute: str) -> Expression:
        return self.attr(attribute)

    def attr(self, attribute: str) -> Expression:
        """Return the attribute of the given name, which may be any text."""
        return Expression(tree.Reference(self.ast.variable, name(attribute, "an attribute"), self.ast.index))


@dataclass(frozen=True, slots=True)
class EarlierEvents:
    """The events bound to `variable` before the current one, ``v[: i - 1]``; aggregates read them."""

    variable: str

    def __getattr__(self, attribute: str) -> EarlierValues:
        return self.attr(public(attribute))

    def __getitem__(self, attribute: str) -> EarlierValues:
        return self.attr(attribute)

    def attr(self, attribute: str) -> EarlierValues:
        """Return the values of the attribute of the given name, which may be any text."""
        return EarlierValues(self.variable, name(attribute, "an attribute"))


@dataclass(frozen=True, slots=True)
class EarlierValues:
    """An attribute's values at the events before the current one, ``v[: i - 1].x``; aggregates read them."""

    variable: str
    attribute: str


def public(attribute: str) -> str:
    """Return `attribute`; raise AttributeError if it starts with an underscore.

    Python and notebooks ask objects for such names.
    """
    if attribute.startswith("_"):
        raise AttributeError(f"an attribute whose name starts with an underscore is written v[{attribute!r}]")
    return attribute


def place(variable: str, index: object) -> BoundEvent | EarlierEvents:
    """Return the event or the earlier events of `variable` that `index` selects."""
    match index:
        case Counter():
            return BoundEvent(tree.Reference(variable, None, index.ast))
        case slice(start=None, stop=Counter(ast=tree.PreviousIndex()), step=None):
            return EarlierEvents(variable)
        case slice():
            raise PatternError(f"{_INDICES}: no other range can be read")
    return BoundEvent(tree.Reference(variable, None, _numbered(whole(index, f"{index!r} is no index: {_INDICES}"))))


def _numbered(number: int) -> tree.NumberIndex | tree.LastIndex:
    if number == -1:
        return tree.LastIndex()
    if number < 1:
        raise PatternError(f"{number} is no index: {_INDICES}")
    return tree.NumberIndex(number)
