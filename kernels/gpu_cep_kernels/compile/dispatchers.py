"""Choose the types for which rules and kernels are compiled on the CPU."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.registry import CPUDispatcher

from gpu_cep_kernels.compile.bundles import bundled

_NARROW = types.integer_domain - {types.int64, types.uint64}


def _widened(given: Any) -> Any:
    """Return the type that a rule takes for an argument: 64 bits for every integer, and for one that stands in the source."""
    kind = types.unliteral(given)
    return types.int64 if kind in _NARROW else kind


class RuleDispatcher(CPUDispatcher):
    """Hold a rule in two forms: kernels call the compiled one, Python calls the source."""

    _compiler: Any

    @property
    def compiled_how(self) -> str:
        """Return the options, and whether the rule is inlined."""
        return f"{sorted(self.targetoptions.items())}{self._compiler.pipeline_class.inlining}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.py_func(*args, **kwargs)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the form for a call; calls that differ in the widths of integers share one."""
        return super().get_call_template([_widened(each) for each in args], kws)

    def add_overload(self, cres: Any) -> None:
        """Keep a compiled form, which has no entry for Python."""
        self.overloads[tuple(cres.signature.args)] = cres


class KernelDispatcher(CPUDispatcher):
    """Hold a kernel's compiled forms, which take named tuples by their place in memory."""

    _cache: Any

    def typeof_pyval(self, val: Any) -> Any:
        """Return the type of an argument."""
        return bundled(super().typeof_pyval(val))
