"""Compile the reading and writing of single elements of arrays to few instructions.

Numba lays an array's numbers out in memory, and loads from there the address, the shape and the
strides, twice: forty instructions for an element, of which LLVM leaves two. Kernels do little else
than read tables, so that most of what was generated, parsed and optimised for them was of that kind.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from numba.core import cgutils, types


def direct_access(registry: Any, arrayobj: Any, is_ours: Callable[[Any, Any], bool]) -> Any:
    """Enter in a new registry how elements of arrays are compiled in code of this package, and return the registry.

    ``is_ours(context, builder)`` says whether code is that. Other code is compiled as in `arrayobj`, the module of numba or of
    numba-cuda; the registry is of the same one.
    """

    def is_direct(context: Any, builder: Any, array: Any, index: Any) -> bool:
        # NUMBA_BOUNDSCHECK=1 asks for numba's own code, which looks at each index
        return is_ours(context, builder) and not context.enable_boundscheck and _is_element(array, index)

    def read(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = signature.args
        if not is_direct(context, builder, array, index):
            standard = arrayobj.getitem_array_tuple if isinstance(index, types.BaseTuple) else arrayobj.getitem_arraynd_intp
            return standard(context, builder, signature, arguments)
        return arrayobj.load_item(context, builder, array, _place(context, builder, signature.args, arguments))

    def write(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, given = signature.args
        if not is_direct(context, builder, array, index):
            return arrayobj.setitem_array(context, builder, signature, arguments)
        value = context.cast(builder, arguments[2], given, array.dtype)
        return arrayobj.store_item(context, builder, array, value, _place(context, builder, signature.args, arguments))

    for index in (types.Integer, types.BaseTuple):
        registry.lower(operator.getitem, types.Array, index)(read)
        registry.lower(operator.setitem, types.Array, index, types.Any)(write)
    return registry


def _indexes(index: Any) -> Sequence[Any]:
    """Return the types of the numbers in an index."""
    return index.types if hasattr(index, "types") else (index,)


def _is_element(array: Any, index: Any) -> bool:
    """Return whether an index gives one element of an array, and no part of it."""
    return len(_indexes(index)) == array.ndim and all(isinstance(each, types.Integer) for each in _indexes(index))


def _place(context: Any, builder: Any, kinds: Any, values: Any) -> Any:
    """Return code for the address of an element of an array; its index counts from the array's start."""
    (array, index), numbers = kinds[:2], [values[1]]
    if isinstance(index, types.BaseTuple):
        numbers = cgutils.unpack_tuple(builder, values[1], len(index))
    numbers = [context.cast(builder, number, kind, types.intp) for number, kind in zip(numbers, _indexes(index), strict=True)]
    position = context.data_model_manager[array].get_field_position
    data = builder.extract_value(values[0], position("data"))
    if array.ndim == 1 and array.layout == "C":
        return builder.gep(data, numbers)
    shape, strides = (cgutils.unpack_tuple(builder, builder.extract_value(values[0], position(name))) for name in ("shape", "strides"))
    return cgutils.get_item_pointer2(context, builder, data, shape, strides, array.layout, numbers)
