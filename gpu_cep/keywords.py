"""The keywords of the public calls, checked and brought together: those that bear on a query's meaning, and the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gpu_cep.analysis.options import Options
from gpu_cep.errors import Diagnostic, PatternError
from gpu_cep.plan.settings import Settings, memory_bytes, pruning_steps

Names = str | Sequence[str] | None
Functions = Mapping[str, Callable[..., Any]] | None


def make_settings(
    output: str,
    engine: str,
    gpu_memory: int | str | None,
    algorithm: str,
    after_match: str,
    columns: Names,
    prune: bool | Iterable[str],
) -> Settings:
    """The keywords of a call that bear on the plan, without bounds."""
    return Settings(
        output=output,
        engine=engine,
        gpu_memory=memory_bytes(gpu_memory),
        algorithm=algorithm,
        after_match=after_match,
        prune=pruning_steps(prune),
        columns=None if columns is None else name_tuple(columns),
    )


def check_threads(threads: object) -> None:
    """Refuse a number of threads that is none."""
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise PatternError(f"threads must be a whole number of at least 1, not {threads!r}")


def name_tuple(names: Names, argument: str = "columns") -> tuple[str, ...]:
    """One name or several, as a tuple; `argument` is the keyword that gives them."""
    if names is None:
        return ()
    chosen = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in chosen):
        raise PatternError(f"{argument} must be the name of a column or a sequence of names, not {names!r}")
    return chosen


def make_options(
    timestamp: str,
    partition_by: Names,
    order_by: Names,
    type_column: str,
    strategy: str | None,
    ties: str,
    time_unit: str | None,
    functions: Functions = None,
    detect: str = "final",
    allen: str = "paper",
    gap: float | str | None = None,
) -> Options:
    """The keywords of a call as options, a single name as a tuple of one."""
    from gpu_cep.engine.lowering.user_functions import result_type, scalar_functions

    required = {"timestamp": timestamp, "type_column": type_column, "ties": ties, "detect": detect, "allen": allen}
    optional = {"strategy": strategy, "time_unit": time_unit}
    _check_texts(required | {argument: value for argument, value in optional.items() if value is not None})
    return Options(
        timestamp=timestamp,
        partition_by=None if partition_by is None else name_tuple(partition_by, "partition_by"),
        order_by=name_tuple(order_by, "order_by"),
        type_column=type_column,
        strategy=strategy,
        ties=ties,
        time_unit=time_unit,
        allen=allen,
        detect=detect,
        gap=gap,
        functions=scalar_functions(functions),
        result_type=result_type,
    )


def _check_texts(arguments: Mapping[str, object]) -> None:
    faults = [Diagnostic(f"{name} must be text, not {value!r}") for name, value in arguments.items() if not isinstance(value, str)]
    if faults:
        raise PatternError(faults)
