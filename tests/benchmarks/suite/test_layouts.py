"""The page on layouts of files: each has the same matches, and the figures say what was read."""

from __future__ import annotations

from pathlib import Path

from benchmarks.suite import layouts
from benchmarks.suite.files import made
from gpu_cep.engine.input import readers


def test_layouts_have_the_same_matches(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(layouts, "GROUP", 2_000)
    # one row group of all rows must fit twice
    monkeypatch.setattr(layouts, "BYTES_PER_EVENT", 80)
    monkeypatch.setattr(readers, "_MANY_ROWS", 0)
    events = made(60_000)
    found = {name: layouts.measured(name, events, tmp_path, 1) for name in layouts.LAYOUTS}
    assert len({each.matches for each in found.values()}) == 1
    first = found[next(iter(found))]
    assert first.matches > 0
    assert first.day is not None
    assert first.day[0] * 10 < first.day[1]
    assert first.slices is not None
    assert first.slices[0] > 1
    for whole in ("in no order", "no statistics"):
        assert found[whole].day is None or found[whole].day[0] == found[whole].day[1]
    page = layouts.markdown(list(found.values()), "here", 60_000, 1)
    assert all(f"| {name} |" in page for name in layouts.LAYOUTS)
