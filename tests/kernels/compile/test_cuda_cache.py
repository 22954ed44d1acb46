"""The disk cache of kernels compiled for CUDA: each form has a file of its own, named by the sources that it was made of."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import NamedTuple

import pytest

from gpu_cep_kernels.compile import jit, kernel_cache, notices, turns
from tests.kernel_cases import kernels
from tests.requirements import require_modules

pytestmark = pytest.mark.skipif(jit.simulated(), reason="the simulator compiles nothing")

# What a device would add to the key: the runtime's version and its compute capability.
CODEGEN = SimpleNamespace(magic_tuple=lambda: ((13, 0), (9, 0)))


@pytest.fixture(scope="module", autouse=True)
def numba_cuda():
    require_modules("numba_cuda")


def fresh(kernel):
    """The kernel as a new process would declare it."""
    return jit.Kernel(kernel.body, kernel.parallel, kernel.writes, kernel.scratch)


def entry(kernel):
    """The file in which the kernel's code for one signature is kept."""
    kept = kernel.cuda._cache
    return kept._cache_file.name_of(kept._index_key("signature", CODEGEN))


def test_no_two_kernels_share_a_file():
    files = {entry(fresh(kernel)) for kernel in kernels().values()}
    assert len(files) == len(kernels())


def test_entries_are_found_again():
    for kernel in kernels().values():
        assert entry(fresh(kernel)) == entry(fresh(kernel))


def test_who_opens_the_card_and_who_does_not_find_the_same_entry():
    """Numba-cuda names the parts of a capability that it asks the card for."""

    class Capability(NamedTuple):
        major: int
        minor: int

    kept = fresh(next(iter(kernels().values()))).cuda._cache
    opened = SimpleNamespace(magic_tuple=lambda: ((13, 0), Capability(9, 0)))
    assert kept._index_key("signature", opened) == kept._index_key("signature", CODEGEN)


@pytest.mark.parametrize("wait", [False, True])
def test_a_form_is_compiled_by_whose_turn_it_is(monkeypatch, tmp_path, wait):
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(turns, "_MOST_SECONDS_IN_WAIT", 0.2)
    kept = fresh(jit.Kernel(fill, True, ("values",), ())).cuda._cache
    context = SimpleNamespace(codegen=lambda: CODEGEN)
    key = kept._index_key((), CODEGEN)
    other = turns.Turn()
    other.take(kept._cache_file.turn_of(key))
    assert kept.begin((), context, False) is None
    if not wait:
        other.give_up()
    assert kept.begin((), context, wait) is True
    turns.cuda_turn.give_up()
    other.give_up()
    kept._cache_file.save(key, {})
    assert kept.begin((), context, wait) is False
    assert not list(tmp_path.glob("*.lock"))


def test_forms_in_a_folder_that_cannot_be_written_are_found(monkeypatch, tmp_path):
    """As in an image whose users may read it; what they compile is kept elsewhere."""
    wanted, other = tmp_path / "wanted", tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: wanted)
    kernel, context = jit.Kernel(fill, True, ("values",), ()), SimpleNamespace(codegen=lambda: CODEGEN)
    kept = fresh(kernel).cuda._cache
    kept._cache_file.save(kept._index_key((), CODEGEN), {"code": "kept"})
    monkeypatch.setattr(kernel_cache, "writable_folder", lambda _: other)
    later = fresh(kernel).cuda._cache
    assert later._cache_file.load(kept._index_key((), CODEGEN)) == {"code": "kept"}
    assert later.begin((), context, True) is False
    later._cache_file.save("another", {"code": "new"})
    assert later._cache_file.load("another") == {"code": "new"}
    assert [len(list(folder.glob("*.cuda"))) for folder in (wanted, other)] == [1, 1]


def test_where_nothing_can_be_written_forms_are_found(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    kernel, context = jit.Kernel(fill, True, ("values",), ()), SimpleNamespace(codegen=lambda: CODEGEN)
    kept = fresh(kernel).cuda._cache
    key = kept._index_key((), CODEGEN)
    kept._cache_file.save(key, {"code": "kept"})
    monkeypatch.setattr(kernel_cache, "writable_folder", lambda _: None)
    later = fresh(kernel).cuda._cache
    assert later._cache_file.load(key) == {"code": "kept"}
    (path,) = tmp_path.iterdir()
    path.unlink()
    assert later.load_overload((), context) is None
    assert later.begin((), context, True) is False
    later._cache_file.save(key, {"code": "new"})
    assert list(tmp_path.iterdir()) == []


def test_another_compiler_has_other_entries(monkeypatch):
    before = {entry(fresh(kernel)) for kernel in kernels().values()}
    monkeypatch.setattr(jit, "compilers_key", lambda: "the digest of other sources")
    assert before.isdisjoint({entry(fresh(kernel)) for kernel in kernels().values()})


@jit.rule
def raised(value):
    """Add one."""
    return value + 1


def fill(low: int, high: int, values) -> None:
    for index in range(low, high):
        values[index] = raised(values[index])


def with_rule(function):
    """The kernel above, with another rule for `raised`."""
    body = FunctionType(fill.__code__, fill.__globals__ | {"raised": jit.rule(function)}, "fill")
    body.__annotations__ = fill.__annotations__
    return jit.Kernel(body, True, ("values",), ())


def test_an_edited_rule_has_another_entry_and_an_edited_docstring_has_not():
    def raised(value):
        """Add two."""
        return value + 2

    def documented(value):
        """Return the next value."""
        return value + 1

    documented.__code__ = documented.__code__.replace(co_name="raised")
    as_it_is = entry(jit.Kernel(fill, True, ("values",), ()))
    assert entry(with_rule(documented)) == as_it_is
    assert entry(with_rule(raised)) != as_it_is


@pytest.fixture
def files(monkeypatch, tmp_path):
    """The files of a kernel's forms in an empty folder, and a process that has said nothing yet."""
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv(notices.QUIET, raising=False)
    return fresh(jit.Kernel(fill, True, ("values",), ())).cuda._cache._cache_file


@pytest.mark.parametrize("damage", [b"", b"\x80", b"random bytes" * 100])
def test_a_damaged_file_is_replaced(files, tmp_path, capsys, damage):
    for form in ("form", "other"):
        files.save(form, {"code": form})
    assert [files.load(form) for form in ("form", "other", "none")] == [{"code": "form"}, {"code": "other"}, None]
    for path in tmp_path.iterdir():
        path.write_bytes(damage)
    assert [files.load(form) for form in ("form", "other")] == [None, None]
    assert capsys.readouterr().err == f"gpu_cep: {tmp_path}: damaged files; their kernels are compiled again\n"
    files.save("form", {"code": "again"})
    assert files.load("form") == {"code": "again"}


def test_a_full_disk_is_told_once(files, monkeypatch, tmp_path, capsys):
    def fail(path: Path, held: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fail)
    for form in ("form", "other"):
        files.save(form, {"code": form})
        assert files.load(form) is None
    assert capsys.readouterr().err == f"gpu_cep: {tmp_path}: No space left on device; each process compiles its kernels again\n"
    assert os.listdir(tmp_path) == []
