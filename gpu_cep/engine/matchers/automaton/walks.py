"""Say whether the windows of a branch are walked rather than searched, and by which kernel."""

from __future__ import annotations

from typing import Any

from gpu_cep.engine.lowering.pattern_tables import MatcherTables
from gpu_cep.plan.event_plan import EventPlan
from gpu_cep_kernels.automaton.chain_runs import walk_chains, walk_compared_chains
from gpu_cep_kernels.automaton.single_runs import walk_restricted_windows, walk_windows
from gpu_cep_kernels.compile.jit import Kernel

# Strategies under which a window has a single run, unless an event leaves a choice.
_NEXT, ROBUST = "skip_till_next_match", "robust_skip_till_next_match"
_WALKED = (_NEXT, "partition_contiguity", "strict_contiguity")
# Strategies of which chains have a walk of their own.
_CHAINED = (_NEXT, ROBUST)


def walks_chains(plan: EventPlan, tables: MatcherTables) -> bool:
    """Return whether the windows that are walked are walked as a chain, until searches jump."""
    return tables.chain is not None and plan.strategy in _CHAINED


def walks(plan: EventPlan, tables: MatcherTables) -> bool:
    """Return whether each window has a single run that can be walked; under the robust strategy those of single events in a row."""
    if plan.strategy == ROBUST:
        return tables.chain is not None and tables.of_singles
    return walks_on(plan, tables)


def walks_on(plan: EventPlan, tables: MatcherTables) -> bool:
    """Return whether windows are walked that are not walked as a chain, as when searches jump; those of the robust strategy are not."""
    return tables.judgements is not None and plan.strategy in _WALKED


def chain_kernel(tables: MatcherTables) -> Kernel[..., Any]:
    """Return the kernel that walks a branch as a chain; it has no code for programs where none are needed."""
    return walk_compared_chains if tables.only_compares else walk_chains


def window_kernel(plan: EventPlan, tables: MatcherTables) -> Kernel[..., Any]:
    """Return the kernel that walks other branches; where nothing rules out a run, its code does not look for that."""
    return walk_restricted_windows if _restricts_walks(plan, tables) else walk_windows


def _restricts_walks(plan: EventPlan, tables: MatcherTables) -> bool:
    """Return whether a run that binds all variables may still be ruled out: by negations, conditions at its end, or a cut."""
    return bool(tables.branch.negations or len(tables.conditions.final) or "overlap" in plan.pruning)
