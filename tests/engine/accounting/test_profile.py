"""A profile that nobody reads takes all that a profile takes, and keeps nothing of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from gpu_cep.engine.accounting.profile import Profile, UnreadProfile
from gpu_cep.plan.costs import BatchAnswer, Estimate


def _filled() -> Profile:
    """Return a profile that holds a count."""
    profile = Profile()
    profile.add("matches", 2)
    return profile


def _stage(profile: Profile) -> None:
    with profile.stage("labels"):
        pass


_RECORDS: dict[str, Callable[[Profile], Any]] = {
    "add": lambda profile: profile.add("events", 3),
    "count_run": lambda profile: profile.count_run("cpu"),
    "add_groups": lambda profile: profile.add_groups(1, 2),
    "add_slices": lambda profile: profile.add_slices(1, 2, 3),
    "stage": _stage,
    "add_answer": lambda profile: profile.add_answer(BatchAnswer(0, 1, Estimate("joins", 0.0, exact=False), (), 0, 0, 0, 0.0)),
    "add_join": lambda profile: profile.add_join((0, 1), [2, 3]),
    "merge": lambda profile: profile.merge(_filled()),
}


def test_each_way_to_record_is_listed() -> None:
    assert {name for name, _ in inspect.getmembers(Profile, inspect.isfunction) if not name.startswith("_")} == {*_RECORDS, "apart"}


def test_a_part_of_a_run_is_recorded_as_the_run_is() -> None:
    profile, unread = Profile(), UnreadProfile()
    part = profile.apart()
    part.add("events", 3)
    assert profile.counts == {}
    profile.merge(part)
    assert profile.counts == {"events": 3}
    assert unread.apart() is unread


@pytest.mark.parametrize("name", _RECORDS)
def test_only_a_profile_that_is_read_keeps_what_it_is_told(name: str) -> None:
    unread, profile = UnreadProfile(), Profile()
    _RECORDS[name](unread)
    _RECORDS[name](profile)
    assert repr(unread) == repr(UnreadProfile())
    assert str(unread) == str(Profile())
    assert {**vars(profile), "_lock": None} != {**vars(Profile()), "_lock": None}
    assert {**vars(unread), "_lock": None} == {**vars(UnreadProfile()), "_lock": None}
