"""Compile rules no further than their callers need them: to LLVM code, which is linked into the kernels.

By default numba optimises every function that a kernel calls, and makes machine
code of it. Then it links them, and optimises all of them once more. Here each
function is optimised once, in the kernel.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from llvmlite.binding import Linkage, parse_assembly
from numba.core import compiler, lowering, typed_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.imputils import Registry
from numba.np import arrayobj

from gpu_cep_kernels.compile.elements import direct_access
from gpu_cep_kernels.compile.indexes import count_from_start
from gpu_cep_kernels.compile.kernel_cache import compiling
from gpu_cep_kernels.compile.known_calls import remembering
from gpu_cep_kernels.compile.turns import turn

# Passes for what kernels never use; after each numba looks through the whole function.
PASSES_LEFT_OUT = {
    "WithLifting",
    "InlineClosureLikes",
    "RewriteDynamicRaises",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "InlineOverloads",
    "NopythonRewrites",
    "DumpParforDiagnostics",
}


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """Pause the garbage collector: the compiler keeps nearly all that it makes, and looking through it takes a sixth of its time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class SharedValues:
    """Make compiler flags compare at once: equal ones are one object, once copied. Numba looks up each operator's templates by them.

    Numba's own digest is the same for all flags, so that it compares them value by value.
    """

    __slots__ = ()
    # numba asks each base of a class of flags for these
    options: ClassVar[dict[str, Any]] = {}
    _hash: int
    _known: ClassVar[dict[str, Any]]

    def __hash__(self) -> int:
        return self._hash if hasattr(self, "_hash") else int(super().__hash__())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        shared = type(self) is type(other) and hasattr(self, "_hash") and hasattr(other, "_hash")
        return not shared and super().__eq__(other)

    def copy(self) -> Any:
        """Return the one object of these values, which never changes."""
        values = repr(self)
        if values not in self._known:
            shared = type(self)(self)  # type: ignore[call-arg]
            shared._hash = hash(self)  # type: ignore[misc]
            self._known[values] = shared
        return self._known[values]


class SharedFlags(SharedValues, compiler.Flags):
    """Hold the flags of numba's compiler such that equal ones are one object."""

    __slots__ = ("_hash",)
    _known: ClassVar[dict[str, Any]] = {}


class KernelCompiler(compiler.CompilerBase):
    """Run numba's pipeline without the passes that kernels do not need."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state.flags = SharedFlags(self.state.flags)

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; a notice is given if it takes long, and the turn is given up if it fails."""
        try:
            with compiling, collecting_nothing():
                self.state.targetctx.install_registry(_ELEMENTS)
                return super().compile_extra(func)
        except BaseException:
            turn.give_up()
            raise

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline without some passes, and with this class's in the place of others."""
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(self.pass_for(each), about) for each, about in pipeline.passes if each.__name__ not in PASSES_LEFT_OUT]
        pipeline.finalize()
        return [pipeline]

    @property
    def lowering(self) -> Any:
        """Return the pass that generates LLVM code, and compiles it."""
        return KernelLowering

    def pass_for(self, standard: Any) -> Any:
        """Return the pass that takes the place of one of numba's."""
        return {typed_passes.NopythonTypeInference: TypeInference, typed_passes.NativeLowering: self.lowering}.get(standard, standard)


class _UnoptimisedLibrary(JITCodeLibrary):
    """Hold LLVM code as numba generates it, and the libraries of the rules that it calls, directly or not."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave each function as it is: it is optimised once, in the kernel."""
        ll_module.data_layout = self._codegen._data_layout

    def add_linking_library(self, library: Any) -> None:
        """Add the library of a rule that is called, behind those that it needs itself."""
        library._ensure_finalized()
        needed = library._linking_libraries if isinstance(library, RuleLibrary) else []
        self._linking_libraries = list(dict.fromkeys([*self._linking_libraries, *needed, library]))


def _is_compiling(context: Any, builder: Any) -> bool:
    """Return whether code of this package is being generated."""
    return isinstance(context.active_code_library, _UnoptimisedLibrary)


count_from_start(arrayobj, _is_compiling)
_ELEMENTS = direct_access(Registry("elements"), arrayobj, _is_compiling)


class KernelLibrary(_UnoptimisedLibrary):
    """Hold the code of a kernel and of the rules that it calls, which are optimised here for the first time."""

    def finalize(self) -> None:
        """Link the rules, each before those that it calls, and compile; LLVM leaves out what nothing calls yet."""
        self._linking_libraries.reverse()
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise; rules can be called from this kernel alone, so that LLVM inlines what is called once."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        if any(isinstance(library, RuleLibrary) for library in self._linking_libraries):
            # from the innermost rules outwards; numba's own cheap pass before that would inline them unoptimised
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)
        else:
            super()._optimize_final_module()

    def _get_module_for_linking(self) -> Any:
        """Return the names of the kernel's functions without their code: numba looks names up there, and keeps it on disk."""
        named = [each.name for each in self._final_module.functions if not each.is_declaration and each.linkage == Linkage.external]
        return parse_assembly("\n".join(f'define void @"{name}"() {{ unreachable }}' for name in named))


class RuleLibrary(_UnoptimisedLibrary):
    """Hold the code of one rule."""

    def finalize(self) -> None:
        """Close the library: nothing can be added from here on."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True


class RuleEntry:
    """Mark a rule as linkable for numba, in the place of the address of its machine code: a rule has none."""


@register_pass(mutates_CFG=True, analysis_only=False)
class TypeInference(typed_passes.NopythonTypeInference):
    """Find the types of a function's variables; what operators return is remembered."""

    _name = "kernel_type_inference"

    def run_pass(self, state: Any) -> bool:
        """Find the types."""
        with remembering(state.typingctx):
            return bool(super().run_pass(state))


class PlainVariables:
    """Generate LLVM code without what counts references: kernels and rules own no memory that a variable could let go.

    It is mixed into the class of numba, or of numba-cuda, that generates code.
    """

    _singly_assigned_vars: Any
    _disable_sroa_like_opt: bool
    _blk_local_varmap: dict[str, Any]
    _alloca_var: Any
    typeof: Any
    builder: Any
    getvar: Any

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Let a variable have a value; what it had before is not looked at."""
        self._alloca_var(name, self.typeof(name))
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Leave a variable that is no longer used as it is."""


class _PlainLower(PlainVariables, lowering.Lower):
    """Generate LLVM code for the CPU."""


class _PlainLowering(typed_passes.NativeLowering):
    """Lower functions that count no references."""

    _name: Any

    @property
    def lowering_class(self) -> type[lowering.Lower]:
        """Return the class that generates LLVM code."""
        return _PlainLower


@register_pass(mutates_CFG=False, analysis_only=False)
class KernelLowering(_PlainLowering):
    """Compile a kernel into a library of its own kind."""

    _name = "kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower and compile the kernel."""
        state.library = KernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=False, analysis_only=False)
class RuleLowering(_PlainLowering):
    """Lower a rule to LLVM code, and no further."""

    _name = "rule_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower the rule into a library of its own, and enter it among the functions that numba can link."""
        state.library = RuleLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        entry = RuleEntry()
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
        if state.pipeline.inlining:
            state.library._final_module.get_function(state.cr.fndesc.mangled_name).add_function_attribute(state.pipeline.inlining)
        state.reload_init.extend(state.library._reload_init)
        state.cr = state.cr._replace(cfunc=entry)
        return True


class RuleCompiler(KernelCompiler):
    """Run the pipeline of rules, which ends at LLVM code; `inlining` is LLVM's attribute for where that is put, if it may not choose."""

    inlining = ""

    @property
    def lowering(self) -> Any:
        """Return the pass that generates LLVM code."""
        return RuleLowering


class InlineRuleCompiler(RuleCompiler):
    """Run the pipeline of rules that are inlined in every caller."""

    inlining = "alwaysinline"


class ApartRuleCompiler(RuleCompiler):
    """Run the pipeline of rules that are inlined nowhere."""

    inlining = "noinline"
