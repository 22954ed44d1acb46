"""List the large kernels that a run may launch, so that they are compiled while it prepares its events."""

from __future__ import annotations

from typing import Any

from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.engine.matchers.automaton.walks import chain_kernel, walks, walks_chains, window_kernel
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.automaton.enumeration import enumerate_matches
from gpu_cep_kernels.compile.jit import Kernel
from gpu_cep_kernels.joins.table_joins import filter_partners, judge_rows
from gpu_cep_kernels.lazy.chain import enumerate_chain, enumerate_negated_chain
from gpu_cep_kernels.lazy.iterations import enumerate_iterations
from gpu_cep_kernels.nfab.buffer_paths import enumerate_paths
from gpu_cep_kernels.nfab.growth import grow_runs

_AnyKernel = Kernel[..., Any]
_NFAB: tuple[_AnyKernel, ...] = (grow_runs, enumerate_paths)


def large_kernels(plan: EventPlan, tables: tuple[MatcherTables, ...]) -> tuple[_AnyKernel, ...]:
    """Return the large kernels of the plan's first contender, those that it launches first in front.

    It is the one that most batches take. None are returned where labels decide matches, as they mostly do where they may.
    """
    by_branch = (_branch_kernels(plan, each) for each in tables)
    return tuple(dict.fromkeys(kernel for kernels in by_branch for kernel in kernels))


def _branch_kernels(plan: EventPlan, tables: MatcherTables) -> tuple[_AnyKernel, ...]:
    """Return the large kernels that find the matches of a branch."""
    match plan.contenders[0]:
        case "lazy_chain" | "lazy_tree":
            return _lazy_kernels(tables)
        case "nfab":
            return _NFAB
        case "join_tree":
            return (filter_partners, judge_rows) if tables.branch.negations else (filter_partners,)
    labels_decide = tables.reads_directly or ("lift" in plan.pruning and tables.branch.lifted is not None)
    return () if labels_decide else (_first_search(plan, tables),)


def _first_search(plan: EventPlan, tables: MatcherTables) -> _AnyKernel:
    """Return the kernel with which the automaton begins."""
    if not walks(plan, tables):
        return enumerate_matches
    return chain_kernel(tables) if walks_chains(plan, tables) else window_kernel(plan, tables)


def _lazy_kernels(tables: MatcherTables) -> tuple[_AnyKernel, ...]:
    """Return the kernels of a lazy automaton: single variables are bound before quantified ones."""
    first: _AnyKernel = enumerate_negated_chain if tables.branch.negations else enumerate_chain
    return (first,) if (tables.pattern.maximum == 1).all() else (first, enumerate_iterations)
