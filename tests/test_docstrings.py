"""What a function's docstring begins with: a verb that says what comes out or what happens."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("gpu_cep", "kernels", "spark_glue", "benchmarks", "examples")
# Words with which a noun, a question or a comparison begins, but no order.
NO_VERBS = frozenset(
    "a about after all an another any as at before both by each every everything few for from how if in into it its many more most no none"
    " of on one only other others several so some such that the their there these they this those to two under until what when where"
    " whether which while who whose why with without".split()
)


def docstrings_without_verb(source: str) -> list[str]:
    """Return the name and the first line of each function's docstring that begins with no verb."""
    found = []
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        if text and text.split()[0].strip(",:;").lower() in NO_VERBS:
            found.append(f"{node.name}: {text.splitlines()[0]}")  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_of_functions_begin_with_a_verb(folder: str) -> None:
    sources = [path for path in sorted((ROOT / folder).rglob("*.py")) if ".environments" not in path.parts]
    assert sources
    found = {str(path.relative_to(ROOT)): docstrings_without_verb(path.read_text(encoding="utf-8")) for path in sources}
    assert not {name: texts for name, texts in found.items() if texts}


@pytest.mark.parametrize("text", ["Whether it rains.", "The rain.", "As :func:`f`, but wet.", "How much it rains."])
def test_docstrings_without_a_verb_are_found(text: str) -> None:
    assert docstrings_without_verb(f'def f():\n    """{text}"""') == [f"f: {text}"]


def test_an_order_is_none_of_them() -> None:
    assert not docstrings_without_verb('def f():\n    """Return whether it rains."""')
