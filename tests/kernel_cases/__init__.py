"""The table of kernel cases: at least one for every registered kernel.

Tests run each case in every way in which its kernel can run; benchmarks time
those with `reads` against the speed of memory. A kernel without a case fails
a test.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import gpu_cep_kernels
from gpu_cep_kernels.compile.jit import Kernel
from tests.kernel_cases.automata import AUTOMATON_CASES
from tests.kernel_cases.calls import Call, KernelCase, bytes_moved
from tests.kernel_cases.chain_windows import CHAIN_WINDOW_CASES
from tests.kernel_cases.events import EVENT_CASES
from tests.kernel_cases.interval_joins import INTERVAL_JOIN_CASES
from tests.kernel_cases.joins import JOIN_CASES
from tests.kernel_cases.lazy import LAZY_CASES
from tests.kernel_cases.longest_runs import LONGEST_RUN_CASES
from tests.kernel_cases.matches import MATCH_CASES
from tests.kernel_cases.nfab import NFAB_CASES
from tests.kernel_cases.row_matches import ROW_MATCH_CASES
from tests.kernel_cases.row_reach import ROW_REACH_CASES
from tests.kernel_cases.row_searches import ROW_SEARCH_CASES
from tests.kernel_cases.row_totals import ROW_TOTAL_CASES
from tests.kernel_cases.runs import RUN_CASES
from tests.kernel_cases.situations import SITUATION_CASES
from tests.kernel_cases.states import STATE_CASES
from tests.kernel_cases.text import TEXT_CASES
from tests.kernel_cases.tiles import TILE_CASES
from tests.kernel_cases.window_searches import WINDOW_SEARCH_CASES
from tests.kernel_cases.windows import WINDOW_CASES

__all__ = ["CASES", "Call", "KernelCase", "bytes_moved", "kernels"]

CASES: tuple[KernelCase, ...] = (
    *EVENT_CASES, *TEXT_CASES, *TILE_CASES, *WINDOW_CASES, *MATCH_CASES, *AUTOMATON_CASES, *CHAIN_WINDOW_CASES, *WINDOW_SEARCH_CASES,
    *LONGEST_RUN_CASES, *LAZY_CASES, *NFAB_CASES, *JOIN_CASES, *STATE_CASES, *SITUATION_CASES, *INTERVAL_JOIN_CASES, *RUN_CASES,
    *ROW_MATCH_CASES, *ROW_REACH_CASES, *ROW_SEARCH_CASES, *ROW_TOTAL_CASES,
)  # fmt: skip


def kernels() -> dict[str, Kernel[..., Any]]:
    """Every kernel declared in gpu_cep_kernels (and not the rules inlined into them), by name."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(gpu_cep_kernels.__path__, "gpu_cep_kernels.")]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Kernel) and value.body.__module__ == module.__name__
    }
