"""Which functions and attributes of cuDF and RMM our sources use, and what their own sources say of these.

`python -m tests.cudf_signatures *.whl` writes what the wheels say to a file beside this one, by which
tests go. (`pip download --no-deps cudf-cu12 pylibcudf-cu12 rmm-cu12` brings the wheels.)
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from tests.cupy_signatures import Documented, refusal

TOLD = Path(__file__).with_suffix(".json")
ROOT = Path(__file__).resolve().parents[1]
SOURCES = [
    *(ROOT / "gpu_cep/engine/input/device" / name for name in ("cudf.py", "read_frames.py")),
    ROOT / "kernels/gpu_cep_kernels/device/rmm_pool.py",
]
# What a name stands for in our sources.
NAMES = {
    "cudf": "cudf",
    "series": "Series",
    "strings": "Index",
    "frame": "DataFrame",
    "pylibcudf": "pylibcudf",
    "column": "Column",
    "parquet": "pylibcudf.io.parquet",
    "builder": "ParquetReaderOptionsBuilder",
    "options": "ParquetReaderOptions",
    "rmm": "rmm",
    "pool": "PoolMemoryResource",
}
# What functions and attributes of cuDF give that is cuDF's again.
GIVEN = {
    "cudf.api": "cudf.api",
    "cudf.api.types": "cudf.api.types",
    "cudf.DataFrame": "DataFrame",
    "Series.cat": "CategoricalAccessor",
    "CategoricalAccessor.codes": "Series",
    "CategoricalAccessor.categories": "Index",
    "rmm.mr": "rmm.mr",
    "pylibcudf.io": "pylibcudf.io",
    "pylibcudf.io.parquet": "pylibcudf.io.parquet",
    "pylibcudf.io.parquet.ParquetReaderOptions": "ParquetReaderOptions",
    "ParquetReaderOptions.builder": "ParquetReaderOptionsBuilder",
    "ParquetReaderOptionsBuilder.use_pandas_metadata": "ParquetReaderOptionsBuilder",
    "ParquetReaderOptionsBuilder.allow_mismatched_pq_schemas": "ParquetReaderOptionsBuilder",
}
# Where the functions of modules are defined.
MODULES = {
    "cudf": ("cudf/__init__.py", "cudf/io/parquet.py"),
    "cudf.api": ("cudf/api/__init__.py",),
    "cudf.api.types": ("cudf/api/types.py",),
    "rmm": ("rmm/__init__.py",),
    "rmm.mr": ("rmm/mr/__init__.py",),
    "pylibcudf": ("pylibcudf/__init__.py",),
    "pylibcudf.io": ("pylibcudf/io/__init__.py",),
    "pylibcudf.io.parquet": ("pylibcudf/io/parquet.pyi",),
}
CLASSES = (
    "Series", "Index", "DataFrame", "CategoricalAccessor", "CategoricalDtype", "Column", "ParquetReaderOptions",
    "ParquetReaderOptionsBuilder", "PoolMemoryResource",
)  # fmt: skip
STUBS = ("pylibcudf/column.pyi", "pylibcudf/io/parquet.pyi", "rmm/pylibrmm/memory_resource/_memory_resource.pyi")


class Use(NamedTuple):
    """`name` is read of `owner`, a module or class of cuDF's; called with so many arguments and these keywords (None: not called)."""

    owner: str
    name: str
    arguments: int | None = None
    keywords: tuple[str, ...] = ()


def uses_of(source: str) -> Iterator[Use]:
    """What a text in Python uses of cuDF."""
    tree = ast.parse(source)
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        owner = _kind_of(node.value) if isinstance(node, ast.Attribute) else None
        if isinstance(node, ast.Attribute) and owner is not None:
            call = called.get(id(node))
            words = () if call is None else tuple(word.arg for word in call.keywords if word.arg)
            yield Use(owner, node.attr, None if call is None else len(call.args), words)


def _kind_of(node: ast.expr) -> str | None:
    """What of cuDF an expression is; None if it is nothing of cuDF's."""
    match node:
        case ast.Name(id=name):
            return NAMES.get(name)
        case ast.Call(func=ast.Name(id="require_cudf")):
            return "cudf"
        case ast.Call(func=ast.Attribute() as function):
            return _kind_of(function)
        case ast.Attribute(value=value, attr=name):
            return GIVEN.get(f"{_kind_of(value)}.{name}")
    return None


def fault_of(use: Use, told: dict[str, dict[str, str | None]]) -> str:
    """What is wrong with a use by what cuDF's sources say; empty if nothing is."""
    if use.name not in told[use.owner]:
        return f"{use.owner} has no {use.name}"
    signature = told[use.owner][use.name]
    if use.arguments is None or signature is None:
        # what modules have and is no function of theirs may be a class
        return "" if use.arguments is None or use.owner in MODULES else f"{use.owner}.{use.name} is no function"
    why = refusal(Documented(f"{use.name}({signature})"), use.arguments, use.keywords)
    return f"{use.owner}.{use.name}: {why}" if why else ""


def told_by(wheels: list[Path]) -> dict[str, dict[str, str | None]]:
    """What the wheels say of what our sources use: the parameters of functions, and None for what is none."""
    trees = {name: ast.parse(text) for name, text in _texts_of(wheels)}
    classes = {node.name: node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    known: dict[str, dict[str, str | None]] = {name: dict(_inherited(classes, name)) for name in CLASSES}
    for module, files in MODULES.items():
        known[module] = {name: told for file in reversed(files) for name, told in _members(trees[file].body)}
    used = {(use.owner, use.name) for path in SOURCES for use in uses_of(path.read_text(encoding="utf-8"))}
    return {owner: {name: told for name, told in sorted(members.items()) if (owner, name) in used} for owner, members in known.items()}


def _texts_of(wheels: list[Path]) -> Iterator[tuple[str, str]]:
    for wheel in wheels:
        with ZipFile(wheel) as held:
            for name in held.namelist():
                if (name.startswith(("cudf/", "pylibcudf/", "rmm/")) and name.endswith(".py")) or name in STUBS:
                    yield name, held.read(name).decode()


def _inherited(classes: dict[str, ast.ClassDef], name: str) -> Iterator[tuple[str, str | None]]:
    """The members of a class, behind those of its bases."""
    for base in reversed(classes[name].bases):
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _inherited(classes, base.id)
    yield from _members(classes[name].body)


def _members(body: list[ast.stmt]) -> Iterator[tuple[str, str | None]]:
    """What a class or module has: functions with their parameters, and all else."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name, decorator_list=marks):
                is_property = any(ast.unparse(mark).endswith(("property", ".setter")) for mark in marks)
                yield name, None if is_property else _parameters(node.args)
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                yield from ((each.asname or each.name.partition(".")[0], None) for each in names)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) | ast.ClassDef(name=name):
                yield name, None


def _parameters(given: ast.arguments) -> str:
    """The parameters without their types and defaults, of which only the presence counts."""
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))):
        each.annotation = None
    given.args = [each for each in given.args if each.arg not in ("self", "cls")]
    given.defaults = [ast.Constant(None) for _ in given.defaults]
    given.kw_defaults = [default and ast.Constant(None) for default in given.kw_defaults]
    return ast.unparse(given)


if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[1:]]
    said = {"wheels": [file.name for file in files], "told": told_by(files)}
    TOLD.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
