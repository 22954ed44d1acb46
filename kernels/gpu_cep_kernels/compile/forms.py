"""Name kernels with the types of their arguments, as text: what a process tells another one to compile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import types

from gpu_cep_kernels.compile import jit
from gpu_cep_kernels.compile.bundles import bundled

_BOOLEAN = str(types.boolean)


class Form(NamedTuple):
    """Name a kernel, and the types for which it is compiled: those of the size and of the tuple of all arguments.

    `on_cpu` says that it is the CPU's form, whose types are those of its arguments.
    """

    kernel: str
    types: list[Any]
    on_cpu: bool = False


def form_of(kernel: jit.Kernel[..., Any], signature: Sequence[Any], on_cpu: bool = False) -> Form:
    """Return the form of a kernel for numba types."""
    return Form(name_of(kernel), [text_of(each) for each in signature], on_cpu)


def read_forms(path: Path) -> list[Form]:
    """Return the forms that a file lists."""
    return [Form(**each) for each in json.loads(path.read_text(encoding="utf-8"))]


def write_forms(path: Path, listed: Sequence[Form]) -> None:
    """Write a file that lists forms, one a line."""
    lines = [json.dumps(form._asdict()) for form in listed]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def text_of(kind: Any) -> Any:
    """Return a numba type as text, a tuple as a list, and a named one as its class with a list."""
    if hasattr(kind, "types"):
        members = [text_of(each) for each in kind.types]
        named = getattr(kind, "instance_class", None)
        return members if named is None else {f"{named.__module__}:{named.__qualname__}": members}
    return f"{kind.dtype} {kind.ndim} {kind.layout}" if isinstance(kind, types.Array) else str(kind)


def type_of(text: Any) -> Any:
    """Return the numba type that :func:`text_of` gives so."""
    if isinstance(text, dict):
        ((named, members),) = text.items()
        return types.BaseTuple.from_types(tuple(map(type_of, members)), object_named(named))
    if isinstance(text, list):
        return types.BaseTuple.from_types(tuple(map(type_of, text)))
    kind, *array = text.split()
    number = types.boolean if kind == _BOOLEAN else getattr(types, kind)
    return types.Array(number, int(array[0]), array[1]) if array else number


def name_of(kernel: jit.Kernel[..., Any]) -> str:
    """Return a kernel's name with its module's."""
    return f"{kernel.body.__module__}:{kernel.__name__}"


def object_named(text: str) -> Any:
    """Return what ``module:name`` names."""
    module, name = text.split(":")
    return getattr(import_module(module), name)


def signature_of(form: Form) -> tuple[Any, ...]:
    """Return the numba types for which the CPU's form is compiled."""
    return tuple(bundled(type_of(each)) for each in form.types)


def compile_for_cpu(form: Form, wait: bool) -> None:
    """Compile the CPU's form and keep it on disk, unless it is there; if another process compiles it, `wait` for that, or leave it."""
    dispatcher, signature = object_named(form.kernel).compiled, signature_of(form)
    if dispatcher._cache.begin(signature, dispatcher.targetctx.codegen(), wait):
        dispatcher.compile(signature)
