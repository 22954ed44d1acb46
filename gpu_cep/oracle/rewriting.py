"""Replace parts of expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from gpu_cep.lang import ast


def rewritten(node: ast.Expression, change: Callable[[ast.Expression], ast.Expression | None]) -> ast.Expression:
    """Return the expression with each part replaced for which `change` returns another one."""

    def part(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(part, value))
        return rewritten(value, change) if isinstance(value, ast.Expression) else value

    changed = change(node)
    if changed is not None:
        return changed
    return replace(node, **{each.name: part(getattr(node, each.name)) for each in fields(node)})
