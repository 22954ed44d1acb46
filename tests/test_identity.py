"""What is remembered by an object, not by its value."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from itertools import count

from gpu_cep.identity import Identity, WeakIdentity, while_alive


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Thing:
    size: int


def test_equal_objects_are_two_keys():
    one, other = Thing(1), Thing(1)
    for kind in (Identity, WeakIdentity):
        assert kind(one) == kind(one)
        assert hash(kind(one)) == hash(kind(one))
        assert kind(one) != kind(other)


def test_a_weak_key_of_what_is_gone_equals_no_other():
    thing = Thing(1)
    key, other = WeakIdentity(thing), WeakIdentity(thing)
    held = {key: "made"}
    assert held[other] == "made"
    del thing
    gc.collect()
    assert key != other
    assert other not in held
    # so can a cache let go of it
    del held[key]


def test_what_is_made_of_an_object_goes_with_it():
    numbers = count()
    made = while_alive(lambda thing: [next(numbers)])
    one, other = Thing(1), Thing(1)
    assert [made(one), made(other), made(one)] == [[0], [1], [0]]

    class Result:
        pass

    result = while_alive(lambda thing: Result())
    held, thing = weakref.ref(result(one)), weakref.ref(one)
    assert held() is result(one)
    del one
    gc.collect()
    assert thing() is None
    assert held() is None
