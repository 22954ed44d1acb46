"""Compile indexes of arrays as they are: kernels never count from an array's end.

Numba adds the array's length to a negative index. For each index whose sign is not known that
takes a load and four instructions, and keeps many loops from being vectorised. On a card it takes
registers, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def count_from_start(arrayobj: Any, is_ours: Callable[[Any, Any], bool]) -> None:
    """Let a module `arrayobj`, numba's or numba-cuda's, take an integer index as it is in code of this package.

    ``is_ours(context, builder)`` says whether code that is generated is of this package. Elsewhere nothing changes.
    """
    standard, intp = arrayobj.fix_integer_index, arrayobj.types.intp

    def fix_integer_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        if is_ours(context, builder):
            return context.cast(builder, index, kind, intp)
        return standard(context, builder, kind, index, size)

    arrayobj.fix_integer_index = fix_integer_index
