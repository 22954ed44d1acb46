"""What calls of operators return is found once, in code of this package alone."""

from __future__ import annotations

import operator

import pytest
from numba.core import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from gpu_cep_kernels.compile.known_calls import remembering


@pytest.fixture
def context():
    context = cpu_target.typing_context
    context.refresh()
    return context


def test_a_call_is_resolved_once_for_each_list_of_types(context, monkeypatch):
    asked = []
    resolved = type(context).resolve_function_type
    monkeypatch.setattr(type(context), "resolve_function_type", lambda *given: asked.append(given[2]) or resolved(*given))
    add = context.resolve_value_type(operator.pow)
    lists = [(types.int8, types.float32), (types.float32, types.int8)]
    expected = [resolved(context, add, each, {}) for each in lists]
    with remembering(context), remembering(context):
        found = [context.resolve_function_type(add, each, {}) for each in (*lists, *lists)]
    assert found == [*expected, *expected]
    assert [each for each in asked if each in lists] == lists


def test_other_code_is_not_touched_afterwards(context):
    with pytest.raises(TypingError), remembering(context):
        context.resolve_function_type(context.resolve_value_type(operator.add), (types.none, types.int64), {})
    assert "resolve_function_type" not in vars(context)
