"""The disk cache of kernels compiled for the CPU: what is edited is compiled again, and nothing else is."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpu_cep_kernels.compile import kernel_cache, notices
from gpu_cep_kernels.compile.jit import _source_of
from gpu_cep_kernels.compile.source_keys import _descriptions
from tests.kernel_cases import kernels
from tests.kernels.compile.forked import ForkServer

ROOT = Path(__file__).resolve().parents[3]
RULES = '''"""Rules."""

from typing import NamedTuple

import numpy as np

from gpu_cep_kernels.compile.jit import rule

OFFSET = np.int64(10)


class Pair(NamedTuple):
    left: int
    right: int


@rule
def inner(value):
    """Add the offset."""
    return value + OFFSET


@rule
def outer(value):
    return inner(value)
'''
KERNELS = '''"""Kernels."""

from gpu_cep_kernels.compile.jit import sequential
from gpu_cep_kernels.tried_rules import rules


@sequential(writes=())
def first(pair) -> int:
    """Call a rule that calls another one."""
    return rules.outer(pair.left)


@sequential(writes=())
def second(pair) -> int:
    return pair.right
'''
CALL = """
import sys
from gpu_cep_kernels.tried_kernels import kernels
from gpu_cep_kernels.tried_rules.rules import Pair
pair = Pair(**{"left": 1, "right": 2})
print(kernels.first(pair), kernels.second(pair))
kernels.first(pair)
for each in (kernels.first.compiled, kernels.second.compiled):
    assert sum(each._cache_hits.values()) + sum(each._cache_misses.values()) == 1, (each._cache_hits, each._cache_misses)
print(*(name for name in ("first", "second") if getattr(kernels, name).compiled._cache_misses))
"""


class Checkout:
    """A copy of the package with two kernels of its own, whose rules stand in another folder."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder, self.cache = folder, cache
        package = folder / "gpu_cep_kernels"
        shutil.copytree(ROOT / "kernels" / "gpu_cep_kernels", package, ignore=shutil.ignore_patterns("__pycache__"))
        self.rules, self.kernels = package / "tried_rules" / "rules.py", package / "tried_kernels" / "kernels.py"
        self.compiler = package / "compile" / "jit.py"
        for path, text in ((self.rules, RULES), (self.kernels, KERNELS)):
            path.parent.mkdir()
            (path.parent / "__init__.py").touch()
            path.write_text(text)

    def edit(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def files(self) -> list[Path]:
        """The files of compiled forms in the cache."""
        return sorted((self.cache / "gpu_cep").glob("*.kernel"))

    def call(self, before: str = "", forked: bool = True, **environment: str) -> tuple[str, str, str]:
        """In another process: what the kernels return, which of them were compiled, and what was said on stderr."""
        variables = os.environ | {
            "PYTHONPATH": str(self.folder),
            "NUMBA_CACHE_DIR": str(self.cache),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GPU_CEP_QUIET": "1",
        }
        code, variables = before + CALL, variables | environment
        if forked and hasattr(os, "fork"):
            printed, said = server().run(code, self.folder, variables)
        else:
            run = subprocess.run([sys.executable, "-c", code], env=variables, cwd=self.folder, capture_output=True, text=True, check=True)
            printed, said = run.stdout, run.stderr
        results, compiled = printed.splitlines()
        return results, compiled, said


@cache
def server() -> ForkServer:
    return ForkServer()


@pytest.fixture(scope="module", autouse=True)
def _ended_server():
    yield
    if server.cache_info().currsize:
        server().close()
        server.cache_clear()


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A checkout whose kernels are compiled, by a process that has forked from none."""
    folder = tmp_path_factory.mktemp("warm")
    checkout = Checkout(folder / "checkout", folder / "cache")
    assert checkout.call(forked=False) == ("11 2", "first second", "")
    return checkout


@pytest.fixture
def clone(warm, tmp_path):
    """Another checkout of equal sources, with the same cache."""
    return Checkout(tmp_path / "elsewhere", warm.cache)


def test_a_checkout_of_equal_sources_finds_all(clone):
    assert clone.call() == ("11 2", "", "")


def test_an_edited_rule_in_another_folder_is_compiled_and_an_unrelated_kernel_is_not(clone):
    clone.edit(clone.rules, "value + OFFSET", "value - OFFSET")
    assert clone.call() == ("-9 2", "first", "")


def test_an_edited_constant_of_a_rule_is_compiled(clone):
    clone.edit(clone.rules, "np.int64(10)", "np.int64(20)")
    assert clone.call() == ("21 2", "first", "")


def test_fields_in_another_order_are_compiled(clone):
    clone.edit(clone.rules, "left: int\n    right: int", "right: int\n    left: int")
    assert clone.call() == ("11 2", "first second", "")


def test_a_rule_compiled_in_another_way_is_compiled(clone):
    clone.edit(clone.compiler, '_OPTIONS | {"no_cpython_wrapper": True}', '_OPTIONS | {"no_cpython_wrapper": True, "fastmath": True}')
    assert clone.call() == ("11 2", "first second", "")


def test_a_module_that_has_moved_is_compiled(clone):
    """What is kept names the modules that it comes from."""
    moved = clone.kernels.parent.with_name("moved_kernels")
    clone.kernels.parent.rename(moved)
    (moved.parent / "tried_kernels").mkdir()
    (moved.parent / "tried_kernels" / "__init__.py").write_text("from gpu_cep_kernels.moved_kernels import kernels")
    assert clone.call() == ("11 2", "first second", "")


def test_docstrings_comments_and_places_are_no_part_of_the_key(clone):
    clone.edit(clone.rules, "Add the offset.", "Add what\n\n    is to be added.")
    clone.edit(clone.rules, "OFFSET = np", "# so much\n\n\nOFFSET = np")
    clone.edit(clone.kernels, "Call a rule", "Return what comes of a rule")
    assert clone.call() == ("11 2", "", "")


def test_an_edit_undone_is_found_again(clone):
    clone.edit(clone.rules, "value + OFFSET", "value * OFFSET")
    assert clone.call()[0] == "10 2"
    clone.edit(clone.rules, "value * OFFSET", "value + OFFSET")
    assert clone.call() == ("11 2", "", "")


def test_a_folder_that_cannot_be_written_is_told_once_and_another_one_taken(warm, tmp_path):
    other = Checkout(tmp_path / "checkout", tmp_path / "file" / "cache")
    (tmp_path / "file").write_text("in the place of a folder")
    (tmp_path / "temporary").mkdir()
    results, compiled, said = other.call(TMPDIR=str(tmp_path / "temporary"), GPU_CEP_QUIET="")
    assert (results, compiled) == ("11 2", "first second")
    assert said.count("compiled kernels are kept in") == 1
    assert other.call(TMPDIR=str(tmp_path / "temporary"))[1] == ""


def test_without_a_home_kernels_are_kept_in_a_private_folder(clone, tmp_path):
    """No folder named ``~`` comes to be where the process runs."""
    nowhere = {"NUMBA_CACHE_DIR": "", "HOME": "~", "TMPDIR": str(tmp_path), "GPU_CEP_QUIET": ""}
    results, compiled, said = clone.call("import os; os.environ.pop('XDG_CACHE_HOME', None)\n", **nowhere)
    (kept,) = tmp_path.glob("gpu_cep-*")
    assert (results, compiled) == ("11 2", "first second")
    assert f"gpu_cep: there is no home folder; compiled kernels are kept in {kept}\n" in said
    assert kept.stat().st_mode & 0o777 == 0o700
    assert "~" not in os.listdir(clone.folder)


def test_an_empty_home_is_none(monkeypatch):
    """The folder would be in the root of the file system."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(kernel_cache.numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert kernel_cache.cache_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert kernel_cache.cache_folder() == Path("/caches/gpu_cep")
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert kernel_cache.cache_folder() is not None


def test_where_nothing_can_be_written_kernels_run(clone):
    """Neither the folder nor one for temporary files takes a file; the forms that are there are read all the same."""
    no_folder = "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/none']\n"
    results, compiled, said = clone.call(no_folder, NUMBA_CACHE_DIR="/proc/none", GPU_CEP_QUIET="")
    assert (results, compiled) == ("11 2", "first second")
    assert said.count("each process compiles its kernels again") == 1


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_folder_that_others_may_write_is_not_taken(monkeypatch, tmp_path, mode):
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = kernel_cache._temporary_folder()
    assert folder is not None
    folder.chmod(mode)
    assert kernel_cache._temporary_folder() is None


def test_a_link_to_another_folder_is_not_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = kernel_cache._temporary_folder()
    assert folder is not None
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    assert kernel_cache._temporary_folder() is None


def test_on_a_full_disk_kernels_run(tmp_path):
    """The system itself refuses to write on, as on a full disk."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))\n"
    checkout = Checkout(tmp_path / "checkout", tmp_path / "cache")
    results, compiled, said = checkout.call(limit, GPU_CEP_QUIET="")
    assert (results, compiled) == ("11 2", "first second")
    assert said.count("File too large; each process compiles its kernels again") == 1
    assert [path.name for path in (tmp_path / "cache" / "gpu_cep").iterdir() if not path.name.startswith("said-")] == []


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "shorter than what it begins with": lambda whole: whole[:20],
    "cut": lambda whole: whole[: len(whole) // 2],
    "random": lambda whole: random.Random(0).randbytes(len(whole)),
    "a flipped bit": lambda whole: whole[:5_000] + bytes([whole[5_000] ^ 1]) + whole[5_001:],
    "a pickle of something else": lambda whole: pickle.dumps({"of": "something else"}),
    "a pickle of what is not there": lambda whole: whole[:32] + b"cno_module\nno_name\n.",
}


@pytest.fixture
def unsaid(monkeypatch):
    """A process that has said nothing yet."""
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv(notices.QUIET, raising=False)


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_not_read(unsaid, capsys, tmp_path, damage):
    path, payload = tmp_path / "a.kernel", {"code": bytes(10_000)}
    kernel_cache._write(path, payload)
    assert kernel_cache._read(path) == payload
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    for _ in range(2):
        assert kernel_cache._read(path) is None
    assert capsys.readouterr().err == f"gpu_cep: {tmp_path}: damaged files; their kernels are compiled again\n"


def test_what_cannot_be_read_is_told(unsaid, capsys, tmp_path):
    assert kernel_cache._read(tmp_path) is None
    assert capsys.readouterr().err == f"gpu_cep: {tmp_path.parent}: Is a directory; each process compiles its kernels again\n"


def test_a_folder_that_cannot_be_looked_into_is_told_once_and_another_one_taken(unsaid, monkeypatch, capsys, tmp_path):
    """The system refuses so long a name, as it does what lies in a folder that may not be searched."""
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path / ("a" * 300))
    monkeypatch.setattr(kernel_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    assert not kernel_cache.is_kept("a.kernel")
    assert kernel_cache._read_wanted("a.kernel") is None
    (other,) = tmp_path.iterdir()
    (other / "a.kernel").touch()
    assert kernel_cache.is_kept("a.kernel")
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith(f"File name too long; compiled kernels are kept in {other}")


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    """A checkout whose kernels are compiled, and a cache of its own."""
    folder = tmp_path_factory.mktemp("damaged")
    checkout = Checkout(folder / "checkout", folder / "cache")
    assert checkout.call()[1] == "first second"
    return checkout


def test_damaged_files_are_compiled_again_which_is_told_once(damaged):
    one, other = damaged.files()
    one.write_bytes(DAMAGES["random"](one.read_bytes()))
    other.write_bytes(one.read_bytes())
    results, compiled, said = damaged.call(GPU_CEP_QUIET="")
    assert (results, compiled) == ("11 2", "first second")
    assert said.count("damaged files") == 1
    assert damaged.call(GPU_CEP_QUIET="") == ("11 2", "", "")


def test_the_form_of_another_kernel_is_not_taken_for_it(damaged):
    first, second = damaged.files()
    first_form = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(first_form)
    assert damaged.call() == ("11 2", "first second", "")


def test_machines_with_different_processors_share_a_folder(tmp_path):
    """Both compile at once, and then each finds its own forms."""
    checkout = Checkout(tmp_path / "checkout", tmp_path / "cache")
    machines: tuple[dict[str, str], ...] = ({}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""})
    with ThreadPoolExecutor(2) as threads:
        calls = list(threads.map(lambda machine: checkout.call(**machine), machines))
    assert calls == [("11 2", "first second", "")] * 2
    assert len(checkout.files()) == 4
    assert [checkout.call(**machine)[1] for machine in machines] == ["", ""]


def test_machines_that_are_given_a_processor_find_the_same_forms(tmp_path):
    """Of an image, say: nothing of what a machine itself has is asked for."""
    checkout, named = Checkout(tmp_path / "checkout", tmp_path / "cache"), {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    another = "import llvmlite.binding as llvm; llvm.get_host_cpu_name = llvm.get_host_cpu_features = lambda: 1 / 0\n"
    assert checkout.call(**named) == ("11 2", "first second", "")
    assert checkout.call(another, **named) == ("11 2", "", "")


def test_processes_that_need_the_same_form_compile_it_once(warm, tmp_path):
    checkout = Checkout(tmp_path / "checkout", tmp_path / "cache")
    with ThreadPoolExecutor(2) as threads:
        calls = list(threads.map(lambda _: checkout.call(), range(2)))
    assert {results for results, _, _ in calls} == {"11 2"}
    assert sorted(name for _, compiled, _ in calls for name in compiled.split()) == ["first", "second"]
    assert not list((tmp_path / "cache" / "gpu_cep").glob("*.lock"))


def test_no_key_says_where_a_file_is():
    descriptions = (text for kernel in kernels().values() for text in _descriptions(kernel.body, _source_of))
    assert [text for text in descriptions if os.path.dirname(np.__file__) in text or str(ROOT) in text] == []
