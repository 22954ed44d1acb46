"""Every kernel compiles to PTX and machine code for CUDA with no device and no driver, contracts nothing, and spills nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.gpu.device_code import CAPABILITIES, distinct_cases, machine_code, missing_wheels, ptx
from tests.kernel_cases import kernels
from tests.requirements import require

RECORD = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "kernel-resources.json"

# A product that was, or may be, contracted with a sum; libdevice's fmod multiplies by 2**54, which is exact.
FUSIBLE = re.compile(r"fma\.|mul\.f(?!.* 0d4350000000000000;)")
ELF = b"\x7fELF"
# Three blocks of 256 threads fit a multiprocessor of 65,536 registers.
MOST_REGISTERS = 80
# One thread runs a whole search, or a program: their registers are recorded (benchmarks/results/kernel-resources.md), not bounded.
SEARCHES = {
    "count_buffer",
    "count_matches",
    "enumerate_chain",
    "enumerate_iterations",
    "enumerate_matches",
    "enumerate_negated_chain",
    "enumerate_paths",
    "evaluate_rows",
    "filter_partners",
    "grow_graph",
    "grow_runs",
    "judge_rows",
    "order_matches",
}


@pytest.fixture(scope="module")
def wheels():
    require(missing_wheels())


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize("case", distinct_cases(), ids=lambda case: case.name)
def test_kernels_compile_for_cuda(case):
    for major, minor in CAPABILITIES:
        text = ptx(case, (major, minor))
        assert f".target sm_{major}{minor}" in text
        assert not FUSIBLE.search(text)
        assert "NRT_" not in text
        code = machine_code(text, (major, minor))
        assert code.cubin.startswith(ELF)
        resources = code.resources
        assert (resources.stack, resources.spill_stores, resources.spill_loads) == (0, 0, 0)
        assert 0 < resources.registers <= (255 if case.kernel.__name__ in SEARCHES else MOST_REGISTERS)


def test_what_every_kernel_takes_is_recorded():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {row["kernel"] for row in record["kernels"]} == kernels().keys()
