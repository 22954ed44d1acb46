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
from tests.requirements import require_modules

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
ahead.main(["9", "0", *sys.argv[1:]])
"""


@pytest.fixture(scope="module", autouse=True)
def numba_cuda():
    require_modules("numba_cuda")
    if missing := missing_wheels():
        pytest.skip(f"not installed: {', '.join(missing)}")


def helper(folder, processes: int) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HELPER, str(processes)]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


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


@pytest.mark.parametrize("forking", [False, True])
def test_processes_side_by_side_compile_each_form_once_and_leave_what_fails(tmp_path, forking):
    helpers = [helper(tmp_path, 2)] if forking else [helper(tmp_path, 1) for _ in range(2)]
    said = [each.stdout.readline() + each.stdout.read() for each in helpers if each.stdout]
    assert not any(each.wait() for each in helpers)
    on_card, on_cpu = ([form for form in forms() if form.on_cpu == each] for each in (False, True))
    expected = [form.kernel.split(".")[-1].replace(":", ".") for form in (*on_card[-2:], on_cpu[-1])]
    assert Counter("".join(said).split()) == Counter([*expected, "nvvm", "nvvm"])
    names = Counter(path.suffix for path in (tmp_path / "gpu_cep").iterdir() if not path.name.startswith("said-"))
    (done,) = (tmp_path / "gpu_cep").glob("ahead-*")
    assert names == {".cuda": 2, ".kernel": 1, done.suffix: 1}


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


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """What is started where there is a card, and its folder."""
    started: list[tuple[ahead.Capability, int]] = []
    monkeypatch.setattr(ahead, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kernel_cache, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(ahead, "card_capability", lambda: (9, 0))
    monkeypatch.setattr(ahead, "available_threads", lambda: 16)
    monkeypatch.setattr(ahead, "start", lambda capability, processes: started.append((capability, processes)))
    ahead.compile_ahead.cache_clear()
    yield started
    ahead.ahead_turn.give_up()
    ahead.compile_ahead.cache_clear()


@pytest.mark.parametrize(("forks", "expected"), [(True, ["9 0 3"]), (False, ["9 0 1"] * 3)])
def test_one_process_is_started_which_forks_the_others_if_it_can(monkeypatch, forks, expected):
    if not forks:
        monkeypatch.delattr(os, "fork")
    started: list[str] = []
    monkeypatch.setattr(ahead, "start_beside", lambda module, arguments: started.append(" ".join(map(str, arguments))))
    ahead.start((9, 0), 3)
    ahead.start((9, 0), 0)
    assert started == expected


def test_processes_are_started_once_on_the_cores_that_are_left(begun):
    ahead.compile_ahead()
    ahead.compile_ahead()
    assert begun == [((9, 0), 15)]


def test_nothing_is_started_where_all_is_compiled(begun, tmp_path):
    ahead._done(tmp_path, (9, 0)).touch()
    ahead.compile_ahead()
    assert begun == []


def test_nothing_is_started_where_all_is_compiled_in_a_folder_that_cannot_be_written(begun, monkeypatch, tmp_path):
    ahead._done(tmp_path, (9, 0)).touch()
    (tmp_path / "other").mkdir()
    for module in (ahead, kernel_cache):
        monkeypatch.setattr(module, "writable_folder", lambda _: tmp_path / "other")
    ahead.compile_ahead()
    assert begun == []


def test_nothing_is_started_while_another_process_has_started_some(begun, tmp_path):
    other = turns.Turn()
    assert other.take_free(ahead._done(tmp_path, (9, 0)).with_suffix(".lock"))
    ahead.compile_ahead()
    assert begun == []
    other.give_up()


@pytest.mark.parametrize("name", ["card_capability", "writable_folder"])
def test_nothing_is_started_without_a_card_or_a_folder(begun, monkeypatch, name):
    monkeypatch.setattr(ahead, name, lambda *_: None)
    ahead.compile_ahead()
    assert begun == []


@pytest.mark.parametrize(("module", "name", "found"), [(jit, "simulated", True), (ahead, "can_start", False)])
def test_nothing_is_started_in_the_simulator_or_where_the_application_is_not_python(begun, monkeypatch, module, name, found):
    monkeypatch.setattr(module, name, lambda: found)
    ahead.compile_ahead()
    assert begun == []
