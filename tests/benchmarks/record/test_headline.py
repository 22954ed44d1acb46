"""The figures in the README and in docs/performance.md are those of the records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.record import headline
from benchmarks.record.pages import read


@pytest.mark.parametrize("page", headline.PAGES, ids=lambda page: page.name)
def test_pages_show_what_the_records_hold(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert headline.filled(text) == text
    assert text.count("<!-- figures: ") == text.count("<!-- end of figures -->") == len(headline._BLOCK.findall(text))


def test_the_readme_has_no_figure_of_its_own() -> None:
    readme, performance = (page.read_text(encoding="utf-8") for page in headline.PAGES[:2])
    shown = {name for _, name, _ in headline._BLOCK.findall(readme)}
    assert shown <= {name for _, name, _ in headline._BLOCK.findall(performance)}
    assert not re.search(r"\d (?:times|×|M events)", headline._BLOCK.sub("", readme))


def test_a_page_whose_figures_are_old_is_made_anew(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: floor -->\n9.9 times\n<!-- end of figures -->\nbehind\n")
    headline.main([page])
    assert page.read_text() == f"before\n<!-- figures: floor -->\n\n{headline.floor()}\n\n<!-- end of figures -->\nbehind\n"


def test_multiples_are_of_the_librarys_times() -> None:
    (row,) = (line for line in headline.rivals().splitlines() if line.startswith("| DuckDB"))
    found = {each["question"]: each for each in read(headline.RIVALS)["comparisons"] if each["rival"] == "DuckDB"}
    cells = [cell.strip().split(" / ") for cell in row.split("|")[2:-1]]
    for (cpu, clock), each in zip(cells, found.values(), strict=True):
        assert float(cpu) == pytest.approx(each["cpu_seconds"] / each["our_cpu_seconds"], rel=0.05)
        assert float(clock) == pytest.approx(each["seconds"] / each["our_seconds"], rel=0.05)
