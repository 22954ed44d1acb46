"""Compile indexes of arrays as they are: kernels never count from an array's end.

Numba adds the array's length to a negative index. For each index whose sign is not known that
takes a load and four instructions, and keeps many loops from being vectorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.np import arrayobj


def count_from_start(is_ours: Callable[[Any], bool]) -> None:
    """Let numba take an integer index as it is, in code for the libraries that `is_ours` names; elsewhere nothing changes."""
    standard = arrayobj.fix_integer_index

    def fix_integer_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        if is_ours(context.active_code_library):
            return context.cast(builder, index, kind, types.intp)
        return standard(context, builder, kind, index, size)

    arrayobj.fix_integer_index = fix_integer_index
