"""Processes that compile large kernels beside a query."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_cep_kernels.compile import jit, kernel_cache, large, turns
from gpu_cep_kernels.compile.forms import form_of, name_of, object_named, signature_of, type_of
from gpu_cep_kernels.phase_one.input_buffers import count_labels, fill_buffers

pytestmark = pytest.mark.skipif(jit.simulated(), reason="the simulator compiles nothing")

NAMES = list(large.forms())
FIRST, SECOND = map(object_named, NAMES[:2])
# What a process is told to compile: one quick form, and one that is for no kernel.
HELPER = """
import sys
from gpu_cep_kernels.compile import ahead, large
form = next(each for each in ahead.forms() if each.on_cpu and each.kernel.endswith(":count_labels"))
large.forms = lambda: {"nowhere": form._replace(kernel="gpu_cep_kernels.phase_one.windows:nowhere"), form.kernel: form}
large.main([sys.argv[1], *large.forms()])
compiled = large.object_named(form.kernel).compiled
print(large.missing([large.object_named(form.kernel)]), compiled._cache.file_name(large.signature_of(form), compiled.targetctx.codegen()))
"""


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What is started, in a process with three cores that has nothing on disk."""
    started: list[tuple[object, ...]] = []
    monkeypatch.setattr(large, "available_threads", lambda: 3)
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(large, "start_beside", lambda module, arguments: started.append(tuple(arguments)))
    large._look_once.cache_clear()
    yield started
    large._look_once.cache_clear()


def file_of(kernel) -> str:
    form = large.forms()[name_of(kernel)]
    return str(kernel.compiled._cache.file_name(signature_of(form), kernel.compiled.targetctx.codegen()))


def test_what_is_listed_is_a_kernel_of_such_types():
    for name, form in large.forms().items():
        assert form == form_of(object_named(name), [type_of(each) for each in form.types], on_cpu=True)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_process_compiles_what_it_is_told_and_leaves_what_fails(tmp_path, processes):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HELPER, processes]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        # its input stays open until it has said all
        said = started.stdout.read().splitlines() if started.stdout else []
    (kept,) = (tmp_path / "gpu_cep").glob("*.kernel")
    assert said[-1] == f"[] {kept.name}"


def test_processes_are_started_once_on_the_cores_that_are_left(begun):
    for _ in range(2):
        large.compile_beside((FIRST, SECOND), 16)
    large.compile_beside((SECOND,), 2)
    large.compile_beside((count_labels, fill_buffers), 16)
    assert begun == [(2, *NAMES[:2]), (1, NAMES[1])]


def test_a_run_of_one_thread_starts_none(begun):
    large.compile_beside((FIRST, SECOND), 1)
    assert begun == []
    large.compile_beside((FIRST, SECOND), 2)
    assert begun == [(1, *NAMES[:2])]


def test_what_is_kept_is_left_out(begun, tmp_path):
    (tmp_path / file_of(FIRST)).touch()
    large.compile_beside((FIRST,), 16)
    assert begun == []
    large.compile_beside((FIRST, SECOND), 16)
    assert begun == [(1, NAMES[1])]


def test_what_a_process_compiles_is_left_out_until_it_gives_up(begun, tmp_path):
    other, lock = turns.Turn(), tmp_path / f"{file_of(FIRST)}.lock"
    assert other.take_free(lock)
    for _ in range(2):
        # to look takes no turn
        assert large.missing((FIRST, SECOND)) == [NAMES[1]]
    large.compile_beside((FIRST, SECOND), 16)
    other.give_up()
    # as a process that was ended leaves it
    lock.touch()
    large.compile_beside((FIRST,), 16)
    assert begun == [(1, NAMES[1]), (1, NAMES[0])]


def test_what_is_kept_in_a_folder_that_cannot_be_written_is_left_out(begun, monkeypatch, tmp_path):
    """As in an image; neither is it compiled by a process that is told to."""
    (tmp_path / file_of(FIRST)).touch()
    tried: list[Path] = []
    monkeypatch.setattr(kernel_cache, "writable_folder", tried.append)
    large.compile_beside((FIRST,), 16)
    compiled = FIRST.compiled
    assert not compiled._cache.begin(signature_of(large.forms()[NAMES[0]]), compiled.targetctx.codegen(), True)
    # it would be told that it cannot be written
    assert (begun, tried) == ([], [])


@pytest.mark.parametrize(
    ("module", "name", "found"),
    [
        (jit, "simulated", True),
        (large, "available_threads", 1),
        (kernel_cache, "writable_folder", None),
        (large, "can_start", False),
    ],
)
def test_nothing_is_started_where_it_is_of_no_use(begun, monkeypatch, module, name, found):
    monkeypatch.setattr(module, name, lambda *_: found)
    large.compile_beside((FIRST,), 16)
    assert begun == []


def test_each_query_lets_the_system_forget_processes_that_have_ended(begun, monkeypatch):
    forgotten: list[None] = []
    monkeypatch.setattr(large, "forget_ended", lambda: forgotten.append(None))
    for _ in range(2):
        large.compile_beside((FIRST,), 16)
    assert len(forgotten) == 2
