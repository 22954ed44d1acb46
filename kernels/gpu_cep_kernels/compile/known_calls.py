"""Find the types of calls of operators and functions of numba's own once, not for each call.

Numba tries every form that an operator may have, those of sets, texts and dates among them, and
catches the errors of those that do not fit. It does so several times for each operation of each rule. What it
finds depends on the types of the arguments alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from numba.core import types

# By the identities of a context and a function, and the arguments' types; both are kept, so that no others have their identities.
_known: dict[tuple[int, int, tuple[Any, ...]], tuple[Any, Any, Any]] = {}


@contextmanager
def remembering(context: Any) -> Iterator[None]:
    """Let a typing context of numba or numba-cuda remember what calls of its own functions return, as long as the block runs."""
    if "resolve_function_type" in vars(context):
        # within the types of a caller
        yield
        return
    standard = context.resolve_function_type

    def resolve_function_type(function: Any, arguments: Any, named: Mapping[str, Any]) -> Any:
        if named or not isinstance(function, types.Function):
            return standard(function, arguments, named)
        key = id(context), id(function), tuple(arguments)
        if key not in _known:
            signature = standard(function, arguments, named)
            if signature is None:
                return None
            _known[key] = context, function, signature
        return _known[key][-1]

    context.resolve_function_type = resolve_function_type
    try:
        yield
    finally:
        del context.resolve_function_type
