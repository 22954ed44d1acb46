"""Whatever allocation fails, only a CepError leaves the call, and the next run gives the same."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import gpu_cep as cep
from gpu_cep.cli import main
from tests.faults.steps import Steps, each_step

# What makes arrays. Methods of arrays do, too, and cannot be made to fail from here; an address space that ends does that.
MAKERS: list[tuple[Any, str]] = [
    *((np, name) for name in ("empty", "zeros", "ones", "full", "arange", "concatenate", "repeat", "flatnonzero")),
    *((np, name) for name in ("cumsum", "searchsorted", "argsort", "unique", "where")),
    *((pa, name) for name in ("array", "chunked_array", "concat_arrays", "concat_tables", "table")),
    *((pc, name) for name, each in vars(pc).items() if isinstance(each, FunctionType) and not name.startswith("_")),
]
ROWS = 60
EVENTS = pa.table(
    {
        "ts": np.arange(ROWS) // 2,
        "type": [("A", "B", "C")[n % 3] for n in range(ROWS)],
        "k": [f"n{n % 4}" for n in range(ROWS)],
        "v": pa.array([n * 7 % 11 / 2 for n in range(ROWS)], mask=np.arange(ROWS) % 11 == 10),
        "i": np.arange(ROWS),
    }
)
TREND = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].v >= b[i-1].v AND c.v <> a.v WITHIN 12"
PAIRS = "PATTERN SEQ(A a, B b, C c) WHERE a.v < b.v AND c.v < b.v WITHIN 12"
COMPUTED = (
    "PATTERN SEQ(A a, NOT(C n), B b) WHERE a.v * 2 > sqrt(a.i) AND b.k LIKE 'n%' AND upper(b.k) <> 'N2' AND a.i <> b.i WITHIN 12"
    " RETURN a.v + b.v AS v, upper(a.k) AS k"
)
SITUATIONS = "PARTITION BY k DEFINE low AS v < 3, high AS v > 2 PATTERN low overlaps high; low meets high WITHIN 20"
ANY = {"strategy": "skip_till_any_match"}
RUNS: dict[str, dict[str, Any]] = {
    **{output: {"pattern": TREND, "output": output} for output in ("matches", "events", "indices", "count", "compressed")},
    "keys": {"pattern": TREND, "partition_by": "k", "order_by": "i", "after_match": "skip_past_last"},
    "keys, count": {"pattern": TREND, "partition_by": "k", "output": "count", "after_match": "skip_to_next"},
    "pandas": {"pattern": TREND, "output": "events", "result": "pandas"},
    "computed": {"pattern": COMPUTED},
    "absent": {"pattern": "PATTERN SEQ(A a, X x) WHERE a.k = 'zz' WITHIN 3"},
    "brute_force": {"pattern": PAIRS, "algorithm": "brute_force"},
    **{each: {"pattern": TREND, "algorithm": each} | ANY for each in ("nfab", "lazy_chain", "backtracking")},
    **{each: {"pattern": PAIRS, "algorithm": each} | ANY for each in ("join_tree", "lazy_tree", "auto")},
    "robust": {"pattern": TREND, "strategy": "robust_skip_till_next_match"},
    "situations": {"pattern": f"{SITUATIONS} RETURN avg(low.v) AS v, start(high) AS since"},
    "early": {"pattern": SITUATIONS, "detect": "early", "output": "events"},
}


@contextmanager
def failing_allocations(steps: Steps) -> Iterator[Steps]:
    """Inside, each call of a function that makes an array is a step."""

    def taking(name: str, make: Any) -> Any:
        def made(*given: Any, **named: Any) -> Any:
            steps.take(name)
            return make(*given, **named)

        return made

    with pytest.MonkeyPatch.context() as patched:
        for module, name in MAKERS:
            patched.setattr(module, name, taking(name, getattr(module, name)))
        yield steps


def no_memory() -> None:
    raise MemoryError("a planted fault")


def found(options: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cep.AbsentValueWarning)
        answer = cep.match(EVENTS, **options, threads=1, engine="cpu")
    return answer.table if options.get("output") == "compressed" else answer


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.full), 37])
@pytest.mark.parametrize("run", RUNS)
def test_the_error_says_that_memory_is_short(run, stride):
    options = RUNS[run]
    whole = found(options)
    for steps in each_step(no_memory, stride):
        with failing_allocations(steps):
            told = told_of(lambda: found(options))
        assert told is None or "out of memory" in told
        assert (told is None) != steps.reached
        assert found(options).equals(whole)


def told_of(action: Any) -> str | None:
    """The message of the CepError that an action raises, None if it raises none."""
    try:
        action()
    except cep.CepError as fault:
        return str(fault)
    return None


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.full), 61])
def test_a_command_says_that_memory_is_short(tmp_path, capsys, stride):
    events, target = tmp_path / "events.csv", tmp_path / "found.jsonl"
    pa.csv.write_csv(EVENTS, events)
    for steps in each_step(no_memory, stride):
        target.write_text("what was there before")
        with failing_allocations(steps):
            code = main(["match", TREND, str(events), "-o", str(target), "--threads", "1"])
        # 3 while events are read, 4 behind that
        assert code in ((3, 4) if steps.reached else (0,))
        assert ("emory" in capsys.readouterr().err) == steps.reached
        assert (target.read_text() == "what was there before") == steps.reached


LIMITED = """
import resource
import numpy as np, pyarrow as pa
import gpu_cep as cep
from gpu_cep.engine.accounting.host_memory import address_space

rows = 200_000
kinds = pa.array(np.array(list("ABC"))[np.arange(rows) % 3])
events = pa.table({"ts": np.arange(rows) // 2, "type": kinds, "v": np.arange(rows) * 7 % 11 / 2})
query = "PATTERN SEQ(A a, B b+, C c) WHERE b[i].v >= b[i-1].v AND c.v <> a.v WITHIN 12"
whole = cep.match(events, query, threads=1, order_by="v")
limit, most = resource.getrlimit(resource.RLIMIT_AS)
for mebibytes in range(0, 64, 4):
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + (mebibytes << 20), most))
    try:
        print(cep.match(events, query, threads=1, order_by="v").equals(whole))
    except cep.CepError as fault:
        print(fault)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
"""


@pytest.mark.full
def test_an_address_space_that_ends_anywhere():
    """The system itself refuses memory; with a little more at each run, up to one that has enough."""
    ran = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True, timeout=120)
    told = ran.stdout.splitlines()
    assert "out of memory" in told[0]
    assert told[-1] == "True"
    assert {line for line in told if "memory" not in line and "takes more than" not in line} == {"True"}
