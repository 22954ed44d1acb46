"""Pass named tuples to kernels, and on to rules, by their place in memory.

Numba passes a named tuple by value: each call hands over every field of every
array in it, a hundred values or more. Here a call hands over one address. A
rule loads from there what it reads, which is as quick, and several times
quicker to compile.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.extending import NativeValue, lower_builtin, unbox
from numba.core.imputils import lower_getattr_generic


class Bundle(types.NamedTuple):
    """The type of a named tuple that lies in memory and does not change while a kernel runs."""

    def __init__(self, members: tuple[Any, ...], named: type) -> None:
        super().__init__(members, named)
        # short, for it is part of the name of each function that takes one
        self.name = f"Bundle({named.__name__}, {hashlib.sha256(self.name.encode()).hexdigest()[:16]})"
        self._hash = hash((named, members))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or super().__eq__(other)

    def __reduce__(self) -> Any:
        """Make it anew when it is read from disk: the hash is another in each process."""
        return Bundle, (self.types, self.instance_class)


@cache
def bundled(given: Any) -> Any:
    """Return the type of an argument of a kernel: named tuples, and those inside them, become bundles."""
    if not isinstance(given, (types.NamedTuple, types.NamedUniTuple)):
        return given
    return Bundle(tuple(map(bundled, given)), given.instance_class)


class _BundleModel(models.PrimitiveModel):
    """Represent a bundle by its address; the bundles in it lie inside it."""

    def __init__(self, manager: Any, kind: Bundle) -> None:
        parts = [manager.lookup(each).get_value_type() for each in kind.types]
        inside = [part.pointee if isinstance(each, Bundle) else part for each, part in zip(kind.types, parts, strict=True)]
        super().__init__(manager, kind, ir.LiteralStructType(inside).as_pointer())


register_default(Bundle)(_BundleModel)


def _load(builder: Any, place: Any) -> Any:
    """Return code that loads the value at a place, which never changes: number by number, as LLVM optimises it best."""
    kind = place.type.pointee
    if not isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
        value = builder.load(place)
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value
    whole = ir.Constant(kind, ir.Undefined)
    for part in range(len(kind.elements) if isinstance(kind, ir.LiteralStructType) else kind.count):
        whole = builder.insert_value(whole, _load(builder, cgutils.gep_inbounds(builder, place, 0, part)), part)
    return whole


def _member(builder: Any, kind: Bundle, bundle: Any, index: int) -> Any:
    """Return code that gives one member of a bundle: a bundle's address, or a value."""
    place = cgutils.gep_inbounds(builder, bundle, 0, index)
    return place if isinstance(kind.types[index], Bundle) else _load(builder, place)


@lower_getattr_generic(Bundle)
def _member_by_name(context: Any, builder: Any, kind: Bundle, bundle: Any, name: str) -> Any:
    """Return code for ``bundle.name``."""
    return _member(builder, kind, bundle, kind.fields.index(name))


@lower_builtin("static_getitem", Bundle, types.IntegerLiteral)
def _member_by_number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return code for ``first, second = bundle``."""
    return _member(builder, signature.args[0], arguments[0], arguments[1])


@unbox(Bundle)
def _from_python(kind: Bundle, given: Any, c: Any) -> NativeValue:
    """Return code that lays a Python tuple's members side by side in memory."""
    place = cgutils.alloca_once(c.builder, c.context.get_value_type(kind).pointee)
    failed = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    for number, each in enumerate(kind.types):
        native = c.unbox(each, c.pyapi.tuple_getitem(given, number))
        value = c.builder.load(native.value) if isinstance(each, Bundle) else native.value
        c.builder.store(value, cgutils.gep_inbounds(c.builder, place, 0, number))
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(cgutils.true_bit, failed)
    return NativeValue(place, is_error=c.builder.load(failed))
