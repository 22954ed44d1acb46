"""What the docs show and name is there: pictures as queries find them, code as it stands, files and commands."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import gpu_cep
from tests.docs.blocks import BLOCK

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMED = re.compile(r"(?:benchmarks|examples|gpu_cep|kernels|spark_glue|tests|docs)/[\w./-]*\w")
COMMAND = re.compile(r"`make ([a-z-]+)")


def test_pictures_are_what_queries_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    drawn = import_module("pictures").pictures()
    assert {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").iterdir()} == drawn


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = {name for name in NAMED.findall(text) if not (ROOT / name).exists() and not any(ROOT.glob(f"{name}*"))}
    assert not missing
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(COMMAND.findall(text)) <= targets


@pytest.mark.parametrize("folder", ["gpu_cep", "kernels", "spark_glue"])
def test_pages_and_headings_that_sources_name_are_there(folder: str) -> None:
    """A page stands as ``docs/language.md``, and a heading of it in brackets: ``(docs/language.md, Ties)``."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*.py")]
    named = {each for text in sources for each in re.findall(r"docs/([\w-]+)\.md(?:, ([^).]+)\))?", text)}
    assert named
    for page, heading in named:
        headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
        assert not heading or any(each.startswith(heading) for each in headings), (page, heading)


def test_the_api_page_has_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    described = {*re.findall(r"^::: gpu_cep\.(\w+)$", text, re.MULTILINE), *re.findall(r"`cep\.(\w+)`", text)}
    assert set(gpu_cep.__all__) <= described


def test_the_typical_questions_fit_events() -> None:
    text = (ROOT / "docs" / "cookbook" / "index.md").read_text(encoding="utf-8")
    kinds = {"ts": pa.timestamp("us"), "type": pa.string(), "device": pa.string(), "amount": pa.float64(), "level": pa.float64()}
    queries = re.findall(r"`((?:PATTERN|DEFINE) [^`]+)`", text)
    assert len(queries) > 20
    for query in queries:
        gpu_cep.explain(pa.schema(kinds).empty_table(), query)


def test_the_kernel_that_is_shown_is_in_the_sources() -> None:
    (kernel,) = (
        code for language, code in BLOCK.findall((ROOT / "docs" / "extending.md").read_text(encoding="utf-8")) if language == "python"
    )
    assert kernel in (ROOT / "kernels" / "gpu_cep_kernels" / "phase_one" / "label_masks.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("parent", ["gpu_cep/engine", "kernels/gpu_cep_kernels", "spark_glue/gpu_cep_spark"])
def test_the_walk_through_the_sources_names_every_folder(parent: str) -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (table,) = re.findall(rf"^\| folder of `{parent}` \|.*\n((?:\|.*\n)*)", text, re.MULTILINE)
    listed = {name for row in table.splitlines()[1:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == {path.parent.name for path in (ROOT / parent).glob("*/__init__.py")}


def test_where_a_rule_stands_is_told_by_functions_of_the_sources() -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    _, _, answers = text.partition("## Where is …?")
    told = re.findall(r"`([\w/]+\.py)`((?:, `\w+`)+)", answers.partition("\n## ")[0])
    assert len(told) >= 15
    for path, names in told:
        source = (ROOT / path).read_text(encoding="utf-8")
        for name in re.findall(r"\w+", names):
            assert f"def {name}(" in source, (path, name)
