"""``gpu-cep warmup`` compiles what queries need then, in the folder that it names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper

import pytest

from benchmarks.gpu.device_code import missing_wheels
from gpu_cep import api
from gpu_cep.cli import main, warmup
from gpu_cep.errors import CepError
from gpu_cep_kernels.compile import ahead, jit, notices
from gpu_cep_kernels.compile.forms import Form
from tests.cli.deaths import compile_or_die

# A query that labels decide, whose kernels are quick to compile.
QUERIES = [warmup.SmallQuery("PATTERN SEQ(A a, B b) WITHIN 100", {"partition_by": ["k"], "output": "count"})]
ASK = """
import sys
from numba.core import event
from gpu_cep.cli import warmup
compiled = []
class Heard(event.Listener):
    def on_start(self, each): compiled.append(each.data["dispatcher"].__name__)
    def on_end(self, each): pass
event.register("numba:compile", Heard())
warmup.run_query(warmup.SmallQuery("PATTERN SEQ(C first, D second) WITHIN 70", {"partition_by": ["k"], "output": "count"}))
print(*compiled)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """What the command has said, and the folder that it has filled."""
    folder, said = tmp_path_factory.mktemp("warm"), TextIOWrapper(BytesIO())
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(said):
        patched.setattr(warmup, "small_queries", lambda: QUERIES)
        patched.setenv("NUMBA_CACHE_DIR", "")
        assert main(["warmup", "--cache", str(folder), "--json"]) == 0
        said.flush()
    return json.loads(said.buffer.getvalue()), folder


def test_a_query_compiles_nothing_after_warmup(warm):
    said, folder = warm
    files = list((folder / "gpu_cep").glob("*.kernel"))
    assert said == {"folder": str(folder / "gpu_cep"), "kernels": len(files), "bytes": sum(path.stat().st_size for path in files)}
    assert len(files) > 5
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True).stdout == "\n"


@pytest.mark.parametrize("small", {each.query: each for each in warmup.small_queries()}.values(), ids=lambda small: small.query[:40])
def test_what_is_run_is_a_query(small):
    api.explain(warmup.events_of(small).slice(0, 0), small.query)


@pytest.mark.parametrize("small", [each for each in warmup.small_queries() if each.time != "int64"], ids=lambda small: small.time)
def test_times_of_every_type_are_answered(small):
    api.explain(warmup.events_of(small).slice(0, 0), small.query, engine="cpu", **small.asked)


def test_most_of_what_is_run_can_be_answered(monkeypatch):
    # none of them is looked at
    monkeypatch.setattr(warmup, "_EVENTS", 1)

    def is_answered(small: warmup.SmallQuery) -> bool:
        # explain tells of a match's plan, with timeouts or without
        asked = {name: value for name, value in small.asked.items() if name != "timeouts"}
        try:
            api.explain(warmup.events_of(small).slice(0, 0), small.query, engine="cpu", **asked)
        except CepError:
            return False
        return True

    queries = warmup.small_queries()
    assert sum(map(is_answered, queries)) > 0.95 * len(queries)


def test_where_nothing_can_be_kept_warmup_fails(monkeypatch, capsys):
    monkeypatch.setattr(warmup, "small_queries", lambda: QUERIES)
    monkeypatch.setattr(warmup, "warm_up", lambda chosen, card: iter([1]))
    monkeypatch.setattr(warmup, "writable_folder", lambda wanted: None)
    assert main(["warmup"]) == 4
    assert capsys.readouterr().err.startswith("gpu-cep: compiled kernels can be kept nowhere: ")


def test_a_card_may_be_named_where_there_is_none(monkeypatch, tmp_path, capsys):
    """As where an image is built."""
    if jit.simulated() or missing_wheels():
        pytest.skip("nothing compiles for a card here")
    served: list[ahead.Capability | None] = []
    monkeypatch.setattr(warmup, "card_capability", lambda: None)
    monkeypatch.setattr(warmup, "warm_up", lambda chosen, card: served.append(card) or iter([1]))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    for named in ([], ["--card", "9.0"], ["--card", "12.0"]):
        assert main(["warmup", "--cache", str(tmp_path), *named]) == 0
    assert served == [None, (9, 0), (12, 0)]
    for wrong in ("9", "sm_90", "0.1"):
        assert main(["warmup", "--card", wrong]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"gpu-cep: --card={wrong}: CUDA's compiler knows no such compute capability here; expected one of 7.5, 8.0,")


@pytest.mark.parametrize("fault", [ImportError("numba-cuda is not installed"), RuntimeError("libnvrtc was not found")])
def test_a_card_that_nothing_compiles_for_is_an_error(monkeypatch, capsys, fault):
    def fail():
        raise fault

    monkeypatch.setattr(warmup, "known_capabilities", fail)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert main(["warmup", "--card", "9.0"]) == 4
    assert capsys.readouterr().err == f"gpu-cep: nothing here compiles for a card: {fault}\n"


def test_kernels_for_a_card_are_compiled_beside_queries(monkeypatch, tmp_path, capsys, warm):
    """Those that cannot be compiled give a notice."""
    if jit.simulated() or missing_wheels():
        pytest.skip("nothing compiles for a card here")
    # all kernels for the CPU are there but one
    shutil.copytree(warm[1], tmp_path, dirs_exist_ok=True)
    lacking = min((tmp_path / "gpu_cep").glob("*.kernel"), key=lambda path: path.stat().st_size)
    lacking.unlink()
    listed = [*[form for form in ahead.forms() if not form.on_cpu][-2:], Form("gpu_cep_kernels.phase_one.windows:nowhere", [])]
    monkeypatch.setattr(warmup, "forms", lambda: listed)
    monkeypatch.setattr(warmup, "card_capability", lambda: (9, 0))
    monkeypatch.setattr(warmup, "small_queries", lambda: QUERIES[:1])
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv(notices.QUIET, raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert main(["warmup", "--cache", str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    assert lacking.exists()
    assert len(list((tmp_path / "gpu_cep").glob("*.cuda"))) == 2
    assert json.loads(said.out)["kernels"] == 2 + len(list((tmp_path / "gpu_cep").glob("*.kernel")))
    assert len(list((tmp_path / "gpu_cep").glob("ahead-*"))) == 2
    assert "1 of 3 kernels for the card are left to queries: nowhere: AttributeError" in said.err


def test_a_killed_process_costs_its_own_kernels_alone(monkeypatch, capsys):
    """Its neighbour's are compiled: both end with it, and run again."""
    texts = ["ends well", "is killed", "comes later"]
    monkeypatch.setattr(warmup, "_compile", compile_or_die)
    monkeypatch.setattr(warmup, "available_threads", lambda: 2)
    monkeypatch.setattr(notices, "_said", set())
    monkeypatch.delenv(notices.QUIET, raising=False)
    assert list(warmup.warm_up([warmup.SmallQuery(text) for text in texts])) == [1, 2, 3]
    assert capsys.readouterr().err == (
        "gpu_cep: 1 of 3 sets of kernels for the CPU are left to queries: 'is killed': the system ended the process that compiled this;"
        " is there too little memory?\n"
    )
