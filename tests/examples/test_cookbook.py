"""The cookbook: every page shows its recipe, and what the recipe prints."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "examples" / "cookbook").glob("*.py"))


@pytest.fixture
def recipe_pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return import_module("recipe_pages")


@pytest.mark.parametrize("recipe", RECIPES, ids=[recipe.stem for recipe in RECIPES])
def test_a_page_is_what_its_recipe_makes(recipe_pages: ModuleType, recipe: Path) -> None:
    assert recipe_pages.page_path(recipe).read_text(encoding="utf-8") == recipe_pages.page(recipe)


def test_every_page_has_a_recipe_and_is_listed(recipe_pages: ModuleType) -> None:
    folder = ROOT / "docs" / "cookbook"
    pages = {path.name for path in folder.glob("*.md")} - {"index.md"}
    assert pages == {recipe_pages.page_path(recipe).name for recipe in RECIPES}
    index = (folder / "index.md").read_text(encoding="utf-8")
    assert all(f"({name})" in index for name in pages)
