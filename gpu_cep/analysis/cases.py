"""Bind CASE: give its values one type, and move tests of a CASE of texts into its branches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpu_cep.analysis.bound_expressions import Bound, Constant, Operation, split_case
from gpu_cep.analysis.types import BOOLEAN, Kind


def apply_to_branches(value: Bound, test: Callable[[Bound], Bound]) -> Bound:
    """Return the truth value ``test(value)``; of a CASE of texts, a CASE of its branches' truth values.

    Kernels know the texts of columns only, so that they cannot compute a text.
    """
    if not (isinstance(value, Operation) and value.name == "case" and value.type.kind is Kind.STRING):
        return test(value)
    conditions, values = split_case(value)
    return Operation("case", (*conditions, *(apply_to_branches(each, test) for each in values)), BOOLEAN)


def is_null(value: Bound) -> Bound:
    """Return whether a value is NULL; of a constant that is known."""
    return Constant(value.value is None, BOOLEAN) if isinstance(value, Constant) else Operation("is_null", (as_cell(value),), BOOLEAN)


def as_cell(value: Bound) -> Bound:
    """Return a value of which is asked only whether it is NULL: a list as a value without numbers."""
    return replace(value, type=replace(value.type, length=0)) if value.type.length else value
