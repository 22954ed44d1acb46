"""How docstrings read: a function's begins with a verb that says what comes out, and lines of public ones are short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import getdoc, isclass, isfunction
from pathlib import Path

import pytest

import gpu_cep as cep

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("gpu_cep", "kernels", "spark_glue", "benchmarks", "examples")
# Words with which a noun or a question begins, but no order.
NO_VERBS = frozenset(
    "a about after all an another any at before both by each every everything few for from how if in into it its many more most no none"
    " of on one only other others several so some such that the their there these they this those to two under until what when where"
    " whether which while who whose why with without".split()
)


def docstrings_without_verb(source: str) -> list[str]:
    """Return the name and the first line of each function's docstring that begins with no verb."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if text and text.split()[0].strip(",:;").lower() in NO_VERBS:
            found.append(f"{node.name}: {text.splitlines()[0]}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_of_functions_begin_with_a_verb(folder: str) -> None:
    sources = [path for path in sorted((ROOT / folder).rglob("*.py")) if ".environments" not in path.parts]
    assert sources
    found = {str(path.relative_to(ROOT)): docstrings_without_verb(path.read_text(encoding="utf-8")) for path in sources}
    assert not {name: texts for name, texts in found.items() if texts}


def public_docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstring of each public name, and of each public method."""
    for name in cep.__all__:
        found = getattr(cep, name)
        yield name, getdoc(found) or ""
        for method, value in vars(found).items() if isclass(found) else ():
            function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
            if isfunction(function) and not method.startswith("_"):
                yield f"{name}.{method}", getdoc(function) or ""


def test_public_names_are_described_in_short_lines() -> None:
    """A summary may be one long line, and so may code."""
    found = dict(public_docstrings())
    assert not [name for name, text in found.items() if not text]
    long = [(name, line) for name, text in found.items() for line in text.splitlines()[1:] if len(line) > 100]
    assert not [name for name, line in long if not line.lstrip().startswith((">>>", "...", "{", "["))]


@pytest.mark.parametrize("text", ["Whether it rains.", "The rain.", "How much it rains."])
def test_docstrings_without_a_verb_are_found(text: str) -> None:
    assert docstrings_without_verb(f'def f():\n    """{text}"""') == [f"f: {text}"]


def test_an_order_is_none_of_them() -> None:
    assert not docstrings_without_verb('def f():\n    """Return whether it rains."""')
