"""Every kernel compiles to PTX and machine code for CUDA with no device and no driver, contracts nothing, and spills nothing."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from time import process_time

import pytest

from benchmarks.gpu.device_code import CAPABILITIES, distinct_cases, machine_code, missing_wheels, parameter_bytes, ptx, types_of
from benchmarks.gpu.kernel_resources import key_of
from tests.kernel_cases import kernels
from tests.requirements import require

RECORD = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "kernel-resources.json"

# A product that was, or may be, contracted with a sum; libdevice's fmod multiplies by 2**54, which is exact.
FUSIBLE = re.compile(r"fma\.|mul\.f(?!.* 0d4350000000000000;)")
ELF = b"\x7fELF"
# Three blocks of 256 threads fit a multiprocessor of 65,536 registers.
MOST_REGISTERS = 80
# Registers that a kernel may take more than its record says, before that is to be made anew.
UNRECORDED = 8
# Every card and driver takes so many bytes of parameters.
MOST_PARAMETERS = 4_096
# Seconds of the CPU's time that compiling a parallel kernel may take.
MOST_SECONDS = 10
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
    "find_longest_runs",
    "grow_graph",
    "grow_runs",
    "judge_rows",
    "mask_by_rows_beside",
    "order_matches",
    "search_row_matches",
    "walk_chain_windows",
    "walk_chains",
    "walk_row_matches",
    "walk_windows",
}


@pytest.fixture(scope="module")
def wheels():
    require(missing_wheels())


@cache
def recorded_registers():
    """What the record has, by kernel, variant and architecture."""
    rows = json.loads(RECORD.read_text(encoding="utf-8"))["kernels"]
    return {
        (row["kernel"], row["variant"], name): found["registers"] for row in rows for name, found in row["resources"].items()
    }  # fmt: skip


def compilations():
    """Each case and architecture; the fast suite compiles the case of most types of each kernel, for the newest architecture.

    A search takes up to half a minute; the fast suite compiles it unless the record has it as it is.
    """
    cases = distinct_cases()
    recorded = {row["key"] for row in json.loads(RECORD.read_text(encoding="utf-8"))["kernels"]}
    widest = {case.kernel.__name__: case.name for case in sorted(cases, key=lambda case: len(str(types_of(case))))}
    for case in cases:
        for capability in CAPABILITIES:
            known = case.kernel.__name__ in SEARCHES and key_of(case) in recorded
            fast = capability == CAPABILITIES[-1] and case.name == widest[case.kernel.__name__] and not known
            architecture = "sm_{}{}".format(*capability)
            yield pytest.param(case, capability, id=f"{case.name}-{architecture}", marks=() if fast else pytest.mark.full)


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize(("case", "capability"), [*compilations()])
def test_kernels_compile_for_cuda(case, capability):
    begin = process_time()
    text = ptx(case, capability)
    assert ".target sm_{}{}".format(*capability) in text
    assert not FUSIBLE.search(text)
    assert "NRT_" not in text
    code = machine_code(text, capability)
    assert code.cubin.startswith(ELF)
    resources = code.resources
    assert (resources.stack, resources.spill_stores, resources.spill_loads) == (0, 0, 0)
    assert 0 < resources.registers <= (255 if case.kernel.__name__ in SEARCHES else MOST_REGISTERS)
    recorded = recorded_registers().get((case.kernel.__name__, case.variant, "sm_{}{}".format(*capability)), 255)
    assert resources.registers <= recorded + UNRECORDED
    if case.kernel.parallel:
        assert parameter_bytes(text) <= MOST_PARAMETERS
        assert process_time() - begin <= MOST_SECONDS


def test_parameters_are_counted():
    text = ".visible .entry k(\n .param .u64 k_0,\n .param .align 8 .b8 k_1[24],\n .param .f32 k_2\n)\n{ .param .b64 other; }"
    assert parameter_bytes(text) == 8 + 24 + 4


def test_what_every_kernel_takes_is_recorded():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {row["kernel"] for row in record["kernels"]} == kernels().keys()
