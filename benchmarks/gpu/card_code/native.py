"""Compile for this CPU what numba-cuda generates for a card."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from benchmarks.gpu.card_code.instructions import INSTRUCTIONS, portable

_LIBRARY = re.compile(r'^declare \w+ @"(__nv_\w+)"', re.MULTILINE)
# Bytes of stack that are spoilt before each lane.
_SPOILT = 1 << 16

# Runs lanes one after another, each on a stack of arbitrary bytes.
_DRIVER = """
define void @card.spoil(i8 %byte) noinline {
  %room = alloca [{spoilt} x i8]
  call void @llvm.memset.p0.i64(ptr %room, i8 %byte, i64 {spoilt}, i1 true)
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @card.run(ptr %words, ptr %lanes, i64 %count, i32 %threads, i32 %blocks, i8 %byte) {
  store i32 %threads, ptr @card.ntid.x
  store i32 %blocks, ptr @card.nctaid.x
  br label %test
test:
  %number = phi i64 [ 0, %0 ], [ %next, %lane ]
  %more = icmp slt i64 %number, %count
  br i1 %more, label %lane, label %end
lane:
  %place = getelementptr i32, ptr %lanes, i64 %number
  %which = load i32, ptr %place
  %thread = urem i32 %which, %threads
  %block = udiv i32 %which, %threads
  store i32 %thread, ptr @card.tid.x
  store i32 %block, ptr @card.ctaid.x
  call void @card.spoil(i8 %byte)
"""


class Unknown(Exception):
    """Say that code calls what a CPU has nothing for; the message names it."""


def compiled(texts: list[str], entry: str, level: int) -> Callable[..., None]:
    """Return machine code of this CPU for the modules that NVVM takes of a kernel.

    Parameters
    ----------
    texts
        The modules, as numba-cuda generates them.
    entry
        A part of the name of the function that a launch runs, and of no other.
    level
        0 compiles each instruction as it stands, 2 optimises as for a card.

    Returns
    -------
    Callable
        ``run(words, lanes, count, threads, blocks, byte)``: addresses of the entry's parameters, a word of eight bytes each, and
        of the numbers of the lanes, of type uint32, which run in their order. The stack is filled with `byte` before each.

    Raises
    ------
    Unknown
        The code calls what is in neither libdevice nor :data:`benchmarks.gpu.card_code.instructions.INSTRUCTIONS`.
    """
    _initialise()
    module = _parsed(INSTRUCTIONS)
    for text in (*texts, _libdevice(frozenset(_LIBRARY.findall("\n".join(texts))))):
        module.link_in(_parsed(portable(text)))
    (kernel,) = (each for each in module.functions if not each.is_declaration and entry in each.name)
    kernel.add_function_attribute("noinline")
    module.link_in(_parsed(_driver(kernel)))
    module.verify()
    if unknown := [each.name for each in module.functions if each.is_declaration and not each.name.startswith("llvm.")]:
        raise Unknown(f"{entry} calls {', '.join(unknown)}")
    return _machine_code(module, level)


@cache
def _initialise() -> None:
    """Let LLVM compile for this CPU."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _parsed(text: str) -> Any:
    """Return a text as a module that is laid out as for this CPU."""
    return llvm.parse_assembly(f'target datalayout = "{_layout()}"\n{text}')


@cache
def _layout() -> str:
    """Return how this CPU lays values out in memory, in LLVM's words."""
    return str(_machine(0)[0].target_data)


def _driver(kernel: Any) -> str:
    """Return the text of what runs a kernel's lanes, with its parameters loaded from words."""
    kinds = [str(each.type) for each in kernel.arguments]
    declared = _heads() + f'declare void @"{kernel.name}"({", ".join(kinds)})'
    loads = "".join(
        f"  %at{number} = getelementptr i64, ptr %words, i64 {number}\n  %given{number} = load {kind}, ptr %at{number}\n"
        for number, kind in enumerate(kinds)
    )
    given = ", ".join(f"{kind} %given{number}" for number, kind in enumerate(kinds))
    call = f'  call void @"{kernel.name}"({given})\n  %next = add i64 %number, 1\n  br label %test\nend:\n  ret void\n}}\n'
    return declared + _DRIVER.replace("{spoilt}", str(_SPOILT)) + loads + call


def _heads() -> str:
    """Return the declarations of where a lane finds its place in the grid."""
    return "".join(f"@card.{name}.x = external global i32\n" for name in ("tid", "ntid", "ctaid", "nctaid"))


@cache
def _libdevice(names: frozenset[str]) -> str:
    """Return the text of libdevice's functions of these names, and of what they call."""
    if not names:
        return ""
    _initialise()
    from numba.cuda.cudadrv.libs import open_libdevice

    module = llvm.parse_bitcode(open_libdevice())
    for each in module.functions:
        if not each.is_declaration and each.name not in names:
            each.linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, _machine(0)[1])
    return str(module)


def _machine(level: int) -> tuple[Any, Any]:
    """Return what compiles for this CPU at a level of optimisation, and what makes lists of LLVM's passes for it."""
    machine = llvm.Target.from_default_triple().create_target_machine(opt=level, jit=True)
    return machine, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))


def _machine_code(module: Any, level: int) -> Callable[..., None]:
    """Return the driver's function in a module, compiled."""
    machine, builder = _machine(level)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = engine.get_function_address("card.run")
    word, number = ctypes.c_void_p, ctypes.c_int32
    run = ctypes.CFUNCTYPE(None, word, word, ctypes.c_int64, number, number, ctypes.c_uint8)(address)
    # the code lives as long as what runs it
    run.engine = engine  # type: ignore[attr-defined]
    return run
