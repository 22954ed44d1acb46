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
from numba.core.cpu import CPUContext
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.extending import NativeValue, lower_builtin, unbox
from numba.core.imputils import lower_getattr_generic
from numba.np.numpy_support import as_dtype


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


def _load(context: Any, builder: Any, place: Any) -> Any:
    """Return code that loads the value at a place, which never changes: number by number, as LLVM optimises it best."""
    kind = place.type.pointee
    if not isinstance(kind, (ir.LiteralStructType, ir.ArrayType)):
        value = builder.load(place)
        if isinstance(context, CPUContext):
            # a card's thread lays the value there itself, so that it does change
            value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value
    whole = ir.Constant(kind, ir.Undefined)
    for part in range(len(kind.elements) if isinstance(kind, ir.LiteralStructType) else kind.count):
        whole = builder.insert_value(whole, _load(context, builder, cgutils.gep_inbounds(builder, place, 0, part)), part)
    return whole


def _load_array(context: Any, builder: Any, kind: types.Array, place: Any) -> Any:
    """Return code that loads the array at a place: as few of its numbers as tell the others, since each is code to optimise."""
    position = context.data_model_manager[kind].get_field_position
    given = {name: _load(context, builder, cgutils.gep_inbounds(builder, place, 0, position(name))) for name in _telling(kind)}
    whole = place.type.pointee
    size = ir.Constant(whole.elements[position("itemsize")], as_dtype(kind.dtype).itemsize)
    known = {"itemsize": size}
    if _is_dense(kind):
        given["nitems"] = builder.extract_value(given["shape"], 0)
        known["strides"] = ir.Constant(whole.elements[position("strides")], [size])
    # what owns its memory stays open: kernels count no references
    parts = [ir.Constant(each, ir.Undefined) for each in whole.elements]
    for name, number in known.items():
        parts[position(name)] = number
    value = ir.Constant(whole, parts)
    for name, number in given.items():
        value = builder.insert_value(value, number, position(name))
    return value


def _telling(kind: types.Array) -> list[str]:
    """Return the names of the numbers from which an array's others follow."""
    return ["data", "shape"] if _is_dense(kind) else ["data", "shape", "nitems", "strides"]


def _is_dense(kind: types.Array) -> bool:
    """Return whether an array's items lie side by side in one row."""
    return bool(kind.ndim == 1 and kind.layout == "C")


def _member(context: Any, builder: Any, kind: Bundle, bundle: Any, index: int) -> Any:
    """Return code that gives one member of a bundle: a bundle's address, or a value."""
    place, member = cgutils.gep_inbounds(builder, bundle, 0, index), kind.types[index]
    if isinstance(member, Bundle):
        return place
    return _load_array(context, builder, member, place) if isinstance(member, types.Array) else _load(context, builder, place)


@lower_getattr_generic(Bundle)
def _member_by_name(context: Any, builder: Any, kind: Bundle, bundle: Any, name: str) -> Any:
    """Return code for ``bundle.name``."""
    return _member(context, builder, kind, bundle, kind.fields.index(name))


@lower_builtin("static_getitem", Bundle, types.IntegerLiteral)
def _member_by_number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return code for ``first, second = bundle``."""
    return _member(context, builder, signature.args[0], arguments[0], arguments[1])


@unbox(Bundle)
def _from_python(kind: Bundle, given: Any, c: Any) -> NativeValue:
    """Return code that lays a Python tuple's members side by side in memory."""
    place = cgutils.alloca_once(c.builder, c.context.get_value_type(kind).pointee)
    failed = _unpack(kind, given, place, c)
    with c.builder.if_then(failed, likely=False), c.builder.if_then(c.builder.not_(c.pyapi.c_api_error())):
        c.pyapi.err_set_string("PyExc_TypeError", f"an array in {kind.instance_class.__name__} is not of its type")
    return NativeValue(place, is_error=failed)


def _unpack(kind: Bundle, given: Any, place: Any, c: Any) -> Any:
    """Return code that lays a tuple's members at a place, and gives the bit that says that one of them could not be read.

    Each is written where it stays: LLVM would take a copy on the way apart, number by number.
    """
    failed = cgutils.false_bit
    for number, each in enumerate(kind.types):
        member, part = cgutils.gep_inbounds(c.builder, place, 0, number), c.pyapi.tuple_getitem(given, number)
        if isinstance(each, Bundle):
            wrong = _unpack(each, part, member, c)
        elif isinstance(each, types.Array):
            wrong = _unpack_array(each, part, member, c)
        else:
            native = c.unbox(each, part)
            c.builder.store(native.value, member)
            wrong = native.is_error
        failed = c.builder.or_(failed, wrong)
    return failed


def _unpack_array(kind: types.Array, given: Any, place: Any, c: Any) -> Any:
    """Return code that lays an array's address and shape at a place, and gives the bit that says that it is no such array."""
    fault = c.pyapi.numba_array_adaptor(given, c.builder.bitcast(place, c.pyapi.voidptr))
    size = c.context.make_array(kind)(c.context, c.builder, ref=place).itemsize
    return c.builder.or_(
        cgutils.is_not_null(c.builder, fault),
        c.builder.icmp_unsigned("!=", size, size.type(as_dtype(kind.dtype).itemsize)),
    )


def lay_out(typing: Any, given: Any) -> Any:
    """Return the type of a tuple of arguments with bundles in the place of named tuples, and what generates code that lays those out.

    A card's entry calls it as an intrinsic. NVVM takes the memory apart again, once rules are inlined.
    """
    laid_out = types.BaseTuple.from_types(tuple(map(bundled, given.types)))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        members = cgutils.unpack_tuple(builder, values[0], len(given))
        return context.make_tuple(builder, laid_out, [_place_of(context, builder, *each) for each in zip(laid_out, members, strict=True)])

    return laid_out(given), generate


def _place_of(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the address at which code lays a named tuple's members side by side; other values as they are."""
    if not isinstance(kind, Bundle):
        return value
    place = cgutils.alloca_once(builder, context.get_value_type(kind).pointee)
    _lay(context, builder, kind, value, place)
    return place


def _lay(context: Any, builder: Any, kind: Any, value: Any, place: Any) -> None:
    """Generate code that writes a value to a place: of arrays what is loaded from there."""
    if isinstance(kind, Bundle):
        for number, each in enumerate(kind.types):
            _lay(context, builder, each, builder.extract_value(value, number), cgutils.gep_inbounds(builder, place, 0, number))
    elif isinstance(kind, types.Array):
        position = context.data_model_manager[kind].get_field_position
        for number in map(position, _telling(kind)):
            builder.store(builder.extract_value(value, number), cgutils.gep_inbounds(builder, place, 0, number))
    else:
        builder.store(value, place)
