"""Compile functions of this package for a card with numba-cuda's pipeline, less what they do not need.

Other packages' functions are compiled as numba-cuda compiles them.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from numba.core import types
from numba.cuda import compiler, lowering  # type: ignore[attr-defined]
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.core.compiler_machinery import PassManager, register_pass
from numba.cuda.core.imputils import Registry
from numba.cuda.core.typed_passes import NopythonTypeInference
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.np import arrayobj

from gpu_cep_kernels.compile.elements import direct_access
from gpu_cep_kernels.compile.indexes import count_from_start
from gpu_cep_kernels.compile.kernel_cache import compiling
from gpu_cep_kernels.compile.known_calls import remembering
from gpu_cep_kernels.compile.pipelines import PASSES_LEFT_OUT, PlainVariables, SharedValues, collecting_nothing
from gpu_cep_kernels.compile.source_keys import PACKAGE
from gpu_cep_kernels.compile.turns import cuda_turn

_MANGLED = f"{len(PACKAGE)}{PACKAGE}"


def _is_compiling(_: Any, builder: Any) -> bool:
    """Return whether code of this package is being generated: numba-cuda names functions after it."""
    return _MANGLED in builder.function.name


count_from_start(arrayobj, _is_compiling)
_ELEMENTS = direct_access(Registry("elements"), arrayobj, _is_compiling)


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


@register_pass(mutates_CFG=True, analysis_only=False)
class CudaTypeInference(NopythonTypeInference):  # type: ignore[misc]
    """Find the types of a function's variables; what operators return is remembered."""

    _name = "cuda_kernel_type_inference"

    def run_pass(self, state: Any) -> bool:
        """Find the types."""
        with remembering(state.typingctx):
            return bool(super().run_pass(state))


class _PlainLower(PlainVariables, lowering.CUDALower):  # type: ignore[misc]
    """Generate LLVM code for a card."""


@register_pass(mutates_CFG=True, analysis_only=False)
class CudaKernelLowering(compiler.CUDANativeLowering):  # type: ignore[name-defined, misc]
    """Lower functions that count no references."""

    _name = "cuda_kernel_lowering"

    @property
    def lowering_class(self) -> type[lowering.CUDALower]:
        """Return the class that generates LLVM code."""
        return _PlainLower


# What takes the place of numba-cuda's passes.
_OUR_PASSES = {
    compiler.CreateLibrary: CreateDistinctLibrary,
    NopythonTypeInference: CudaTypeInference,
    compiler.CUDANativeLowering: CudaKernelLowering,  # type: ignore[attr-defined]
}


class CudaKernelCompiler(compiler.CUDACompiler):
    """Run numba-cuda's pipeline without the passes that kernels do not need."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state.flags = SharedCudaFlags(self.state.flags)

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; a notice is given if it takes long, and the turn is given up if it fails."""
        try:
            with compiling, collecting_nothing():
                self.state.targetctx.install_registry(_ELEMENTS)
                return super().compile_extra(func)
        except BaseException:
            cuda_turn.give_up()
            raise

    def define_pipelines(self) -> list[Any]:
        """Return numba-cuda's pipeline without some passes, and with this module's in the place of others."""
        (pipeline,) = super().define_pipelines()
        lean = PassManager("gpu_cep")
        for each, about in pipeline.passes:
            if each.__name__ not in PASSES_LEFT_OUT:
                lean.add_pass(_OUR_PASSES.get(each, each), about)
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


def share_forms_of_rules() -> None:
    """Let calls of a rule of this package that differ in the numbers in the source share one form; to be called once.

    NVVM puts the numbers in once it inlines the rule.
    """
    standard = CUDADispatcher.get_call_template

    def get_call_template(dispatcher: Any, args: Any, kws: Any) -> Any:
        if (dispatcher.py_func.__module__ or "").partition(".")[0] == PACKAGE:
            args = [types.unliteral(each) for each in args]
        return standard(dispatcher, args, kws)

    CUDADispatcher.get_call_template = get_call_template  # type: ignore[method-assign]
