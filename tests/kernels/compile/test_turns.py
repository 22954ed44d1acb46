"""Turns of processes, by the lock of a file that whoever has the turn removes."""

from __future__ import annotations

import pytest

from gpu_cep_kernels.compile import kernel_cache, turns
from gpu_cep_kernels.compile.turns import Turn, is_taken

pytestmark = pytest.mark.skipif(turns.fcntl is None, reason="files are locked where the system can")


def test_one_has_the_turn_at_a_time(tmp_path):
    path = tmp_path / "kernel.lock"
    one, other = Turn(), Turn()
    assert one.take_free(path)
    assert is_taken(path)
    assert not other.take_free(path)
    one.give_up()
    assert not path.exists()
    assert other.take_free(path)


def test_a_file_that_was_removed_while_its_lock_was_awaited_gives_no_turn(monkeypatch, tmp_path):
    path = tmp_path / "kernel.lock"
    first, second, third = Turn(), Turn(), Turn()
    assert first.take_free(path)
    is_locked = turns._is_locked

    def overtaken(file):
        # between the second's opening and its locking, the first ends and the third begins
        monkeypatch.setattr(turns, "_is_locked", is_locked)
        first.give_up()
        assert third.take_free(path)
        return is_locked(file)

    monkeypatch.setattr(turns, "_is_locked", overtaken)
    assert not second.take_free(path)
    second.give_up()
    assert is_taken(path)


def test_who_looks_is_not_taken_for_who_has_the_turn(monkeypatch, tmp_path):
    path = tmp_path / "kernel.lock"
    # as a process that was ended leaves it
    path.touch()
    is_locked, seen = turns._is_locked, []

    def looked_at(file, kind):
        monkeypatch.setattr(turns, "_is_locked", is_locked)
        locked = is_locked(file, kind)
        seen.append(is_taken(path))
        return locked

    monkeypatch.setattr(turns, "_is_locked", looked_at)
    assert not is_taken(path)
    assert seen == [False]


def test_whoever_has_the_turn_keeps_it_when_taking_it_again(tmp_path):
    path = tmp_path / "kernel.lock"
    one = Turn()
    assert one.take_free(path)
    before = path.stat().st_ino
    # held meanwhile, so that a file made anew has another number
    with path.open("rb"):
        one.take(path)
        assert path.stat().st_ino == before
    assert is_taken(path)


def test_waiting_for_a_turn_ends_after_a_time_and_takes_nothing(monkeypatch, tmp_path):
    path = tmp_path / "kernel.lock"
    one, other = Turn(), Turn()
    assert one.take_free(path)
    monkeypatch.setattr(turns, "_MOST_SECONDS_IN_WAIT", 0.01)
    other.take(path)
    other.give_up()
    assert is_taken(path)


def test_there_is_no_turn_where_no_file_can_be_made(tmp_path):
    path = tmp_path / "missing" / "kernel.lock"
    one = Turn()
    one.take(path)
    assert not one.take_free(path)


def test_a_kernel_that_is_kept_just_before_its_turn_is_not_compiled_again(monkeypatch, tmp_path):
    looks = iter([False, True])
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "is_kept", lambda _: next(looks))
    cache = kernel_cache.KernelCache("kernel", "key")
    monkeypatch.setattr(kernel_cache.KernelCache, "file_name", lambda *_: "kernel.kernel")
    assert not cache.begin((), None, wait=False)
    assert not is_taken(tmp_path / "kernel.kernel.lock")
