"""Compile functions of this package for a card with numba-cuda's pipeline, less what they do not need.

Other packages' functions are compiled as numba-cuda compiles them.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from numba.cuda import compiler
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core.compiler_machinery import PassManager, register_pass

from gpu_cep_kernels.compile.kernel_cache import compiling
from gpu_cep_kernels.compile.pipelines import PASSES_LEFT_OUT, SharedValues, collecting_nothing
from gpu_cep_kernels.compile.source_keys import PACKAGE
from gpu_cep_kernels.compile.turns import cuda_turn


class SharedCudaFlags(SharedValues, compiler.CUDAFlags):
    """Hold the flags of numba-cuda's compiler such that equal ones are one object."""

    __slots__ = ("_hash",)
    _known: ClassVar[dict[str, Any]] = {}


class DistinctLibrary(CUDACodeLibrary):
    """Hold the code of a function, and of the functions that it calls once each, on however many ways it reaches them."""

    @property
    def modules(self) -> list[Any]:
        """Return the modules of code, callers before those that they call: NVVM leaves out what nothing calls yet."""
        return list(dict.fromkeys(reversed(super().modules)))[::-1]


@register_pass(mutates_CFG=False, analysis_only=False)
class CreateDistinctLibrary(compiler.CreateLibrary):
    """Create a library that holds each function once."""

    _name = "create_distinct_library"

    def run_pass(self, state: Any) -> bool:
        """Create the library with the options of the flags."""
        flags = state.flags
        options = {"nvvm_options": flags.nvvm_options, "max_registers": flags.max_registers, "lto": flags.lto}
        state.library = DistinctLibrary(state.targetctx.codegen(), state.func_id.func_qualname, **options)
        state.library.enable_object_caching()
        return True


class CudaKernelCompiler(compiler.CUDACompiler):
    """Run numba-cuda's pipeline without the passes that kernels do not need."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state.flags = SharedCudaFlags(self.state.flags)

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; a notice is given if it takes long, and the turn is given up if it fails."""
        try:
            with compiling, collecting_nothing():
                return super().compile_extra(func)
        except BaseException:
            cuda_turn.give_up()
            raise

    def define_pipelines(self) -> list[Any]:
        """Return numba-cuda's pipeline without some passes."""
        (pipeline,) = super().define_pipelines()
        lean = PassManager("gpu_cep")
        for each, about in pipeline.passes:
            if each.__name__ not in PASSES_LEFT_OUT:
                lean.add_pass(CreateDistinctLibrary if each is compiler.CreateLibrary else each, about)
        lean.finalize()
        return [lean]


def compile_kernels_lean() -> None:
    """Let numba-cuda compile functions of this package by :class:`CudaKernelCompiler`; to be called once."""
    standard = compiler.compile_extra  # type: ignore[attr-defined]
    parameters = inspect.signature(standard)
    if not {"func", "pipeline_class"} <= parameters.parameters.keys():
        # a version that chooses its pipeline in another way keeps its own, which takes longer and gives the same code
        return

    def compile_extra(*args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(*args, **kwargs)
        # functions made by exec may name no module
        if (given.arguments["func"].__module__ or "").partition(".")[0] == PACKAGE:
            given.arguments["pipeline_class"] = CudaKernelCompiler
        return standard(*given.args, **given.kwargs)

    compiler.compile_extra = compile_extra  # type: ignore[attr-defined]
