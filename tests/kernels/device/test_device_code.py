"""Every kernel compiles to PTX and machine code for CUDA with no device and no driver, contracts nothing, and spills nothing."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from time import process_time

import pytest

from benchmarks.gpu.device_code import CAPABILITIES, distinct_cases, forbidden, machine_code, missing_wheels, parameter_bytes, ptx, types_of
from benchmarks.gpu.kernel_resources import key_of
from tests.kernel_cases import kernels
from tests.requirements import require

RECORD = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "kernel-resources.json"

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
    "count_matches",
    "enumerate_chain",
    "enumerate_iterations",
    "enumerate_matches",
    "enumerate_negated_chain",
    "enumerate_paths",
    "filter_partners",
    "find_longest_runs",
    "grow_runs",
    "judge_rows",
    "order_matches",
    "rule_out_runs",
    "search_row_matches",
    "search_windows",
    "walk_chain_windows",
    "walk_chains",
    "walk_compared_chains",
    "walk_compared_windows",
    "walk_negated_robust_windows",
    "walk_restricted_windows",
    "walk_robust_windows",
    "walk_row_matches",
    "walk_windows",
}


@pytest.fixture(scope="module")
def wheels():
    require(missing_wheels())


@cache
def record():
    return json.loads(RECORD.read_text(encoding="utf-8"))["kernels"]


@cache
def recorded_registers():
    """What the record has, by kernel, variant and architecture."""
    return {
        (row["kernel"], row["variant"], name): found["registers"] for row in record() for name, found in row["resources"].items()
    }  # fmt: skip


def compilations():
    """Each case and architecture; the fast suite compiles one, and what the record does not have as it is.

    The record has compiled the others from the same sources, with the same versions. Of each kernel that changed
    the fast suite compiles the case of most types, for the newest architecture.
    """
    cases = distinct_cases()
    recorded = {row["key"] for row in record()}
    widest = {case.kernel.__name__: case.name for case in sorted(cases, key=lambda case: len(str(types_of(case))))}
    for number, case in enumerate(cases):
        for capability in CAPABILITIES:
            changed = case.name == widest[case.kernel.__name__] and key_of(case) not in recorded
            fast = capability == CAPABILITIES[-1] and (changed or number == 0)
            architecture = "sm_{}{}".format(*capability)
            yield pytest.param(case, capability, id=f"{case.name}-{architecture}", marks=() if fast else pytest.mark.full)


def most_registers(kernel):
    return 255 if kernel in SEARCHES else MOST_REGISTERS


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize(("case", "capability"), [*compilations()])
def test_kernels_compile_for_cuda(case, capability):
    begin = process_time()
    text = ptx(case, capability)
    assert ".target sm_{}{}".format(*capability) in text
    assert not forbidden(text)
    code = machine_code(text, capability)
    assert code.cubin.startswith(ELF)
    resources = code.resources
    assert (resources.stack, resources.spill_stores, resources.spill_loads) == (0, 0, 0)
    assert 0 < resources.registers <= most_registers(case.kernel.__name__)
    recorded = recorded_registers().get((case.kernel.__name__, case.variant, "sm_{}{}".format(*capability)), 255)
    assert resources.registers <= recorded + UNRECORDED
    if case.kernel.parallel:
        assert parameter_bytes(text) <= MOST_PARAMETERS
        assert process_time() - begin <= MOST_SECONDS


@pytest.mark.usefixtures("wheels")
def test_kernels_on_cuda_take_indexes_as_they_are():
    """An index that counts from an array's end if it is negative begins with a copy of its sign to all 64 bits."""
    case = next(case for case in distinct_cases() if case.kernel.__name__ == "next_occurrences")
    assert ", 63;" not in ptx(case, CAPABILITIES[-1])


def test_parameters_are_counted():
    text = ".visible .entry k(\n .param .u64 k_0,\n .param .align 8 .b8 k_1[24],\n .param .f32 k_2\n)\n{ .param .b64 other; }"
    assert parameter_bytes(text) == 8 + 24 + 4


def test_what_may_not_be_compiled_is_found():
    assert forbidden("fma.rn.f64 %fd3, %fd1, %fd2, %fd0;\nmul.f64 %fd3, %fd1, %fd2;\ncall NRT_incref, (%rd1);") == {"fma.", "mul.f", "NRT_"}
    assert forbidden("cvt.rn.f64.u64 %fd1, %rd1;") == {"cvt.rn.f64.u64"}
    assert not forbidden("mul.rn.f64 %fd3, %fd1, %fd2;\nmul.f64 %fd3, %fd1, 0d4350000000000000;\ncvt.rn.f64.s64 %fd1, %rd1;")


def test_what_every_kernel_takes_is_recorded():
    assert {row["kernel"] for row in record()} == kernels().keys()


def test_no_kernel_of_the_record_takes_too_much():
    for row in record():
        for found in row["resources"].values():
            assert (found["stack"], found["spill_stores"], found["spill_loads"]) == (0, 0, 0), row["kernel"]
            assert 0 < found["registers"] <= most_registers(row["kernel"]), row["kernel"]
