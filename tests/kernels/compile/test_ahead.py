"""Processes that compile ahead of queries, for a card and what the CPU runs beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from benchmarks.gpu.device_code import missing_wheels, types_of
from gpu_cep_kernels.compile import ahead, jit, kernel_cache, turns
from gpu_cep_kernels.compile.ahead import forms
from gpu_cep_kernels.compile.bundles import bundled
from gpu_cep_kernels.compile.forms import form_of, object_named, text_of, type_of
from tests.kernel_cases import CASES
from tests.requirements import require, require_modules

pytestmark = pytest.mark.skipif(jit.simulated(), reason="the simulator compiles nothing")

# A helper process for few forms, one of them the CPU's, which tells what it compiled, and each time that NVVM did.
HELPER = """
import os
import sys
from gpu_cep_kernels.compile import ahead
from gpu_cep_kernels.compile.forms import Form
every = ahead.forms()
forms = [[each for each in every if each.on_cpu][-1], *[each for each in every if not each.on_cpu][-2:]]
forms.append(Form("gpu_cep_kernels.phase_one.windows:nowhere", []))
ahead.forms = lambda: forms
from numba.cuda import dispatcher
from numba.cuda.cudadrv import nvvm
compile_ir = nvvm.compile_ir
def told(modules, **options):
    os.write(1, b"nvvm\\n")
    return compile_ir(modules, **options)
nvvm.compile_ir = told
class Told(dispatcher._Kernel):
    def __init__(self, function, *given, **options):
        os.write(1, f"{function.__name__}\\n".encode())
        super().__init__(function, *given, **options)
dispatcher._Kernel = Told
from gpu_cep_kernels.compile.kernel_cache import KernelCache
save = KernelCache.save_overload
def saved(cache, signature, data):
    os.write(1, f"{cache._name}\\n".encode())
    save(cache, signature, data)
KernelCache.save_overload = saved
ahead.main(sys.argv[1:])
"""


@pytest.fixture(scope="module", autouse=True)
def numba_cuda():
    require_modules("numba_cuda")
    require(missing_wheels())


def helper(folder, processes: int, told: str = "9 0\n") -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HELPER, str(processes)]
    started = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdin is not None
    if told:
        started.stdin.write(told)
    started.stdin.flush()
    return started


def test_types_are_written_and_read():
    for case in CASES:
        for each in types_of(case).args:
            assert type_of(text_of(each)) == each


def test_what_is_listed_is_a_kernel_of_such_types():
    for form in forms():
        kernel = object_named(form.kernel)
        assert form == form_of(kernel, [type_of(each) for each in form.types], form.on_cpu)


# A process that has compiled nothing yet keeps a form, and tells what it kept and what a query would look for.
KEEPER = """
import sys
from pathlib import Path
from gpu_cep_kernels.compile import ahead, kernel_cache
from gpu_cep_kernels.compile.forms import object_named
kernel_cache.cache_folder = lambda: Path(sys.argv[1])
form = next(each for each in ahead.forms() if each.on_cpu and each.kernel.endswith(":count_labels"))
ahead.compile_form(form, (9, 0))
(kept,) = Path(sys.argv[1]).glob("*.kernel")
compiled = object_named(form.kernel).compiled
(signature,) = compiled.signatures
print(kept.name == compiled._cache.file_name(signature, compiled.targetctx.codegen()))
print(compiled._cache.begin(signature, compiled.targetctx.codegen(), wait=True))
"""


def test_the_form_that_is_kept_for_the_cpu_is_the_one_that_queries_look_for(tmp_path):
    told = subprocess.run([sys.executable, "-c", KEEPER, str(tmp_path)], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["True", "False"]


def test_a_form_that_another_process_compiles_is_left_to_it(monkeypatch, tmp_path):
    form = next(each for each in forms() if each.on_cpu)
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    compiled = object_named(form.kernel).compiled
    signature, codegen = tuple(bundled(type_of(each)) for each in form.types), compiled.targetctx.codegen()
    other = turns.Turn()
    assert other.take_free(tmp_path / f"{compiled._cache.file_name(signature, codegen)}.lock")
    assert not compiled._cache.begin(signature, codegen, wait=False)
    assert compiled._cache.begin(signature, codegen, wait=True)
    other.give_up()
    assert compiled._cache.begin(signature, codegen, wait=False)
    turns.turn.give_up()


# whether one is forked by the other or not, the lock of a form is a file
@pytest.mark.parametrize("forking", [pytest.param(False, marks=pytest.mark.full), True])
def test_processes_side_by_side_compile_each_form_once_and_leave_what_fails(tmp_path, forking):
    helpers = [helper(tmp_path, 4)] if forking else [helper(tmp_path, 1) for _ in range(2)]
    said = [each.stdout.readline() + each.stdout.read() for each in helpers if each.stdout]
    assert not any(each.wait() for each in helpers)
    on_card, on_cpu = ([form for form in forms() if form.on_cpu == each] for each in (False, True))
    expected = [form.kernel.split(".")[-1].replace(":", ".") for form in (*on_card[-2:], on_cpu[-1])]
    assert Counter("".join(said).split()) == Counter([*expected, "nvvm", "nvvm"])
    names = Counter(path.suffix for path in (tmp_path / "gpu_cep").iterdir() if not path.name.startswith("said-"))
    # for this card, and for some card
    done = Counter(path.suffix for path in (tmp_path / "gpu_cep").glob("ahead-*"))
    assert names == Counter({".cuda": 2, ".kernel": 1}) + done
    assert done.total() == 2


@pytest.mark.parametrize(("processes", "early"), [(2, 0), (4, 1), (15, 3), (63, 3)])
@pytest.mark.parametrize("forked", [0, 1, 2])
def test_some_processes_begin_with_what_the_cpu_runs_before_numba_cuda_is_imported(monkeypatch, processes, early, forked):
    """The fork of that number is the one that is looked at; 0: the one that forks all others."""
    done: list[object] = []

    def fork(others: int) -> list[int]:
        done.append(others)
        return [] if len(done) == 2 * forked - 1 else [1] * others

    monkeypatch.setattr(ahead, "fork_others", fork)
    monkeypatch.setattr(ahead, "import_for_card", lambda _: done.append("card"))
    found, listed = ahead._fork((9, 0), processes)
    begins_early = forked == 1 and early > 0
    assert done == [early, *([] if begins_early else ["card", processes - 1 - early])]
    assert found == ([] if forked == 2 or begins_early else [1] * (processes - 1))
    assert [form.on_cpu for form in listed[:3]] == ([True] * 3 if begins_early else [form.on_cpu for form in forms()[:3]])
    assert sorted(map(str, listed)) == sorted(map(str, forms()))


@pytest.mark.parametrize("processes", [1, 2])
def test_processes_end_with_the_one_that_started_them(tmp_path, processes):
    started = helper(tmp_path, processes)
    assert started.stdout is not None
    assert started.stdin is not None
    started.stdout.readline()
    started.stdin.close()
    # up to its end, which comes once the last of them has ended
    started.stdout.read()
    assert started.wait(10) == 1


def test_capabilities_are_known_where_there_is_no_card(monkeypatch):
    known = ahead.known_capabilities()
    assert known == sorted(known)
    assert {(8, 0), (9, 0)} <= set(known)
    monkeypatch.setattr(ahead.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="numba-cuda is not installed"):
        ahead.known_capabilities()
    monkeypatch.setattr(jit, "simulated", lambda: True)
    with pytest.raises(RuntimeError, match="the simulator, which compiles nothing"):
        ahead.known_capabilities()


def test_a_process_that_is_told_of_no_card_ends(tmp_path):
    started = helper(tmp_path, 2, told="")
    assert started.communicate() == ("", None)
    assert started.returncode == 0


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What is started where there is a card, and then told."""
    started: list[object] = []
    monkeypatch.setattr(ahead, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(ahead, "_driver", lambda: "a driver")
    monkeypatch.setattr(ahead, "card_capability", lambda: (9, 0))
    monkeypatch.setattr(ahead, "available_threads", lambda: 16)
    monkeypatch.setattr(ahead, "start", lambda processes: [started.append(processes)])
    monkeypatch.setattr(ahead, "tell", lambda _, line: started.append(line))
    ahead.compile_ahead.cache_clear()
    yield started
    ahead.ahead_turn.give_up()
    ahead.compile_ahead.cache_clear()


@pytest.mark.parametrize(("forks", "expected"), [(True, ["3"]), (False, ["1"] * 3)])
def test_one_process_is_started_which_forks_the_others_if_it_can(monkeypatch, forks, expected):
    if not forks:
        monkeypatch.delattr(os, "fork")
    monkeypatch.setattr(ahead, "start_beside", lambda module, arguments: " ".join(map(str, arguments)))
    assert ahead.start(3) == expected
    assert ahead.start(0) == []
    monkeypatch.setattr(ahead, "start_beside", lambda module, arguments: None)
    assert ahead.start(3) == []


def test_processes_are_started_once_on_the_cores_that_are_left(begun):
    ahead.compile_ahead()
    ahead.compile_ahead()
    assert begun == [15, "9 0\n"]


def test_a_process_that_was_started_where_there_is_no_card_ends(begun, monkeypatch):
    monkeypatch.setattr(ahead, "card_capability", lambda: None)
    ahead.compile_ahead()
    assert begun == [15, ""]


@pytest.mark.parametrize(("card", "expected"), [((9, 0), []), (None, []), ((8, 0), [15, "8 0\n"])])
def test_nothing_is_started_where_all_is_compiled_for_the_card(begun, monkeypatch, tmp_path, card, expected):
    monkeypatch.setattr(ahead, "card_capability", lambda: card)
    ahead.note_done((9, 0))
    ahead.compile_ahead()
    assert begun == expected


def test_nothing_is_started_where_all_is_compiled_in_a_folder_that_cannot_be_written(begun, monkeypatch, tmp_path):
    ahead.note_done((9, 0))
    (tmp_path / "other").mkdir()
    for module in (ahead, kernel_cache):
        monkeypatch.setattr(module, "writable_folder", lambda _: tmp_path / "other")
    ahead.compile_ahead()
    assert begun == []


@pytest.mark.parametrize(("card", "expected"), [((9, 0), []), ((8, 0), [15, "9 0\n"])])
def test_nothing_is_started_while_another_process_has_started_some_for_such_a_card(begun, tmp_path, card, expected):
    other = turns.Turn()
    assert other.take_free(ahead._done(tmp_path, card).with_suffix(".lock"))
    ahead.compile_ahead()
    assert begun == expected
    other.give_up()


def test_what_was_started_ends_where_another_process_was_sooner(begun, monkeypatch, tmp_path):
    other = turns.Turn()

    def start(processes: int) -> list[object]:
        assert other.take_free(ahead._done(tmp_path, (9, 0)).with_suffix(".lock"))
        return [begun.append(processes)]

    monkeypatch.setattr(ahead, "start", start)
    ahead.compile_ahead()
    assert begun == [15, ""]
    other.give_up()


@pytest.mark.parametrize("name", ["_driver", "writable_folder"])
def test_nothing_is_started_without_a_driver_or_a_folder(begun, monkeypatch, name):
    monkeypatch.setattr(ahead, name, lambda *_: None)
    ahead.compile_ahead()
    assert begun == []


@pytest.mark.parametrize(("module", "name", "found"), [(jit, "simulated", True), (ahead, "can_start", False)])
def test_nothing_is_started_in_the_simulator_or_where_the_application_is_not_python(begun, monkeypatch, module, name, found):
    monkeypatch.setattr(module, name, lambda: found)
    ahead.compile_ahead()
    assert begun == []
