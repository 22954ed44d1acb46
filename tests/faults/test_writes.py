"""Whatever step of writing fails, the old file or the new one is there whole, nothing else is left, and the next run is right."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import CepError
from gpu_cep_kernels.compile import kernel_cache, turns
from tests.faults.steps import each_step, failing_writes, full_disk
from tests.requirements import require_modules

EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "v": [1.0, 2.0, 3.0, 4.5]})
QUERY = "PATTERN SEQ(A a, B b) WHERE a.v < b.v WITHIN 5"
SITUATIONS = "DEFINE low AS v < 2, high AS v > 1.5 PATTERN low meets high WITHIN 9"
OLD = b"what was there before"

SAVED: dict[str, Callable[[], Any]] = {
    "plan.mmd": lambda: cep.explain(EVENTS, QUERY),
    "situations.svg": lambda: cep.explain(EVENTS, SITUATIONS),
    "waterfall.svg": lambda: cep.waterfall(cep.explain(EVENTS, QUERY, run=True)),
    "match.svg": lambda: cep.plot(EVENTS, QUERY),
    "report.html": lambda: cep.report(EVENTS, QUERY, timelines=0),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_picture_a_plan_and_a_report_are_saved_whole(tmp_path, name):
    require_modules("matplotlib")
    made, target = SAVED[name](), tmp_path / name
    for steps in each_step(full_disk):
        target.write_bytes(OLD)
        with failing_writes(tmp_path, steps):
            told = told_while_saving(made, target)
        assert (target.read_bytes() == OLD) == steps.reached
        assert told == (f"cannot write {target}: No space left on device" if steps.reached else None)
        assert os.listdir(tmp_path) == [name]
    assert target.read_bytes() == made.render(target.suffix) if hasattr(made, "render") else made.html.encode()
    assert steps.taken[-1] == "replace"


def test_a_picture_that_cannot_be_saved_leaves_no_file(tmp_path):
    plan, target = cep.explain(EVENTS, QUERY), tmp_path / "plan.mmd"
    for steps in each_step(full_disk):
        with failing_writes(tmp_path, steps):
            told_while_saving(plan, target)
        assert os.listdir(tmp_path) == ["plan.mmd"] * (not steps.reached)


def told_while_saving(made: Any, target: Path) -> str | None:
    """Save a picture, and return the message of the error, None if there is none."""
    try:
        made.save(target)
    except CepError as fault:
        return str(fault)
    return None


@pytest.mark.parametrize("where", ["none/plan.svg", "folder.svg"])
def test_where_no_file_can_be_saved_the_reason_is_told(tmp_path, where):
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(CepError, match=r"cannot write .*\.svg: (No such file|Is a directory)"):
        cep.explain(EVENTS, QUERY).save(tmp_path / where)
    assert os.listdir(tmp_path) == ["folder.svg"]


@pytest.mark.parametrize("old", [{"code": "old"}, None], ids=["over a file", "anew"])
def test_a_compiled_kernel_is_kept_whole_or_not_at_all(tmp_path, old):
    path, new = tmp_path / "a.kernel", {"code": bytes(100)}
    for steps in each_step(full_disk):
        path.unlink(missing_ok=True) if old is None else kernel_cache._write(path, old)
        with failing_writes(tmp_path, steps):
            kernel_cache._write(path, new)
        assert kernel_cache._read(path) == (old if steps.reached else new)
        assert os.listdir(tmp_path) == ["a.kernel"] * path.exists()
    assert steps.taken == ["open", "write", "close", "replace"]


def test_without_a_lock_kernels_are_compiled_all_the_same(tmp_path):
    turn = turns.Turn()
    for steps in each_step(full_disk):
        with failing_writes(tmp_path, steps):
            turn.take(tmp_path / "a.kernel.lock")
            turn.give_up()
        assert os.listdir(tmp_path) == []
