"""The pruning waterfall: its stages and shares, and the picture of them."""

from __future__ import annotations

from xml.etree import ElementTree

import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.display.plotting.waterfall import Stage, stages

SVG = "{http://www.w3.org/2000/svg}"
EVENTS = pa.table({"ts": range(8), "type": list("AXBXXAXX")})
QUERY = "PATTERN SEQ(A a, B b) WITHIN 5"


def bars(picture: cep.Picture) -> dict[str, float]:
    """The length of each stage's bar."""
    drawn = ElementTree.fromstring(picture.svg)
    return {bar.get("data-name", ""): float(bar.get("width", "")) for bar in drawn.iter(f"{SVG}rect")}


def test_stages_are_in_the_order_of_the_run_with_their_shares() -> None:
    assert stages({"matches": 1, "events": 8, "steps": 99, "filtered": 4}) == (
        Stage("events", 8, None),
        Stage("filtered", 4, 0.5),
        Stage("matches", 1, 0.25),
    )


def test_of_nothing_there_is_no_share() -> None:
    assert [stage.share for stage in stages({"events": 0, "filtered": 0, "matches": 0})] == [None, None, None]


def test_a_run_has_a_bar_for_each_stage() -> None:
    profile = cep.Profile()
    cep.match(EVENTS, QUERY, profile=profile)
    drawn = bars(cep.waterfall(profile))
    assert list(drawn) == [stage.name for stage in stages(profile.counts)]
    assert drawn["events"] == max(drawn.values())
    assert 0 < drawn["matches"] < drawn["filtered"] < drawn["events"]


def test_an_explanation_of_a_run_is_drawn_as_its_profile() -> None:
    for query in (QUERY, "DEFINE P AS type = 'A', Q AS type = 'B' PATTERN P before Q"):
        profile = cep.Profile()
        cep.match(EVENTS, query, profile=profile)
        assert cep.waterfall(cep.explain(EVENTS, query, run=True)) == cep.waterfall(profile)


def test_situations_are_a_stage() -> None:
    explained = cep.explain(EVENTS, "DEFINE P AS type = 'A', Q AS type = 'B' PATTERN P before Q", run=True)
    assert list(bars(cep.waterfall(explained))) == ["events", "situations", "pairs", "matches"]


def test_small_shares_are_told_from_none() -> None:
    drawn = cep.waterfall(cep.Profile(counts={"events": 10_000_000, "filtered": 3, "matches": 0})).svg
    assert "3e-07" in drawn
    assert "0.00%" in drawn
    assert "10,000,000" in drawn


def test_an_empty_table_can_be_drawn() -> None:
    profile = cep.Profile()
    cep.match(EVENTS.slice(0, 0), QUERY, profile=profile)
    assert set(bars(cep.waterfall(profile)).values()) == {0.0}


@pytest.mark.parametrize("run", [cep.Profile(), cep.explain(EVENTS, QUERY)], ids=["profile", "explanation"])
def test_what_was_not_run_cannot_be_drawn(run) -> None:
    with pytest.raises(cep.PatternError, match="needs the counts of a run"):
        cep.waterfall(run)


def test_a_picture_is_saved_and_shown(tmp_path) -> None:
    picture = cep.waterfall(cep.Profile(counts={"events": 1}))
    picture.save(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text() == picture.svg == picture._repr_svg_()
    with pytest.raises(cep.CepError, match=r"run\.gif from its suffix; expected one of \.png, \.svg, \.pdf"):
        picture.save(tmp_path / "run.gif")
