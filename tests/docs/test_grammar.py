"""The page of the grammar is the parser's grammar, and the reference says of every keyword what it means."""

from __future__ import annotations

import re

import pytest

from examples.grammar_page import PAGE, WORDS, page

DOCS = PAGE.parent
# By heading of the page, where the constructs are explained.
REFERENCES = {
    "## Queries over events and situations": ("language.md", "intervals.md"),
    "## MATCH_RECOGNIZE": ("row-patterns.md", "language.md"),
}


def test_the_page_is_the_grammar() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_rule_that_is_named_is_there() -> None:
    rules = "\n".join(rule for part in REFERENCES for rule in blocks(part))
    assert {*re.findall(r"\b[a-z_]{2,}\b", rules)} == {*re.findall(r"^(\w+) +:=", rules, re.MULTILINE)}


@pytest.mark.parametrize("part", REFERENCES)
def test_the_reference_has_every_keyword(part: str) -> None:
    keywords = {*re.findall(r"\b[A-Z_]{2,}\b", " ".join(blocks(part)))} - {*WORDS}
    prose = " ".join((DOCS / name).read_text(encoding="utf-8") for name in REFERENCES[part])
    assert len(keywords) > 30
    assert [keyword for keyword in sorted(keywords) if not re.search(rf"\b{keyword}\b", prose)] == []


def blocks(part: str) -> list[str]:
    """The rules that stand under a heading of the page."""
    return re.findall(r"^```text\n(.*?)^```$", page().partition(f"{part}\n")[2].partition("\n## ")[0], re.MULTILINE | re.DOTALL)
