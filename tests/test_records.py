"""Records are equal, hashed, copied and pickled as frozen dataclasses are."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from functools import cached_property

import pytest

from gpu_cep.records import record


@record()
class Span:
    """Two numbers."""

    low: int
    high: int = 3


@record(slots=False)
class Measured(Span):
    """Two numbers, and what is derived of them once."""

    @cached_property
    def length(self) -> int:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Frozen:
    """The same as a frozen dataclass."""

    low: int
    high: int = 3


@pytest.mark.parametrize("kind", [Span, Measured])
def test_equality_and_hash_are_those_of_the_fields(kind: type[Span]) -> None:
    made, frozen = kind(1), Frozen(1)
    assert made == kind(1, 3) != kind(1, 4)
    assert hash(made) == hash(kind(1, 3)) == hash(frozen)
    assert [each.name for each in fields(made)] == ["low", "high"]
    assert repr(made) == repr(frozen).replace("Frozen", kind.__name__)


@pytest.mark.parametrize("kind", [Span, Measured])
def test_copies_are_equal(kind: type[Span]) -> None:
    made = kind(1)
    assert replace(made, high=5) == kind(1, 5)
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made


def test_only_type_checkers_keep_fields_from_being_set() -> None:
    span, frozen = Span(1), Frozen(1)
    object.__setattr__(span, "low", 2)
    assert span == Span(2)
    with pytest.raises(FrozenInstanceError):
        frozen.low = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        span.other = 2  # type: ignore[attr-defined]


def test_derived_values_are_made_once() -> None:
    measured = Measured(1)
    assert measured.length == 2
    assert vars(measured)["length"] == 2
