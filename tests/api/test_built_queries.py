"""match and explain take queries built in Python, and answer as to their text."""

from __future__ import annotations

from datetime import timedelta

import pytest

import gpu_cep as cep
from examples.chemo import P1, chemo
from gpu_cep.errors import PatternError, PatternSyntaxError

OPTIONS = {"timestamp": "T", "type_column": "L"}

c, p, d, b = cep.var("c", "C"), cep.var("p", "P").plus(), cep.var("d", "D"), cep.var("b", "B")
TREATMENT = (
    cep.seq(cep.all_of(c, p, d), b).where(c.PID == p.PID, p.PID == d.PID, d.PID == b.PID, cep.prev(p.V) < p.V).within(timedelta(days=15))
)


@pytest.mark.parametrize("algorithm", ["auto", "brute_force"])
@pytest.mark.parametrize("output", ["matches", "events", "indices", "count"])
def test_a_built_query_finds_what_its_text_finds(algorithm: str, output: str) -> None:
    found = cep.match(chemo(), TREATMENT, algorithm=algorithm, output=output, **OPTIONS)
    assert found.equals(cep.match(chemo(), str(TREATMENT), algorithm=algorithm, output=output, **OPTIONS))
    assert found.num_rows


def test_it_finds_the_thesis_matches() -> None:
    written = cep.match(chemo(), P1, output="indices", timestamp="T")
    assert cep.match(chemo(), TREATMENT, output="indices", **OPTIONS).equals(written)


@pytest.mark.parametrize("pattern", [cep.seq(c, b), cep.seq(c, b).ast, cep.parse("PATTERN SEQ(C c, B b)")])
def test_a_pattern_alone_is_a_query(pattern: object) -> None:
    text = "PATTERN SEQ(C c, B b)"
    found = cep.match(chemo(), pattern, partition_by="PID", **OPTIONS)
    assert found.equals(cep.match(chemo(), text, partition_by="PID", **OPTIONS))
    assert str(cep.explain(pattern)) == text


def test_a_single_variable_is_a_query() -> None:
    assert cep.match(chemo(), c, output="count", **OPTIONS).to_pydict() == {"count": [2]}


def test_explain_shows_the_canonical_text() -> None:
    assert str(cep.explain(chemo(), TREATMENT, **OPTIONS)) == str(cep.explain(chemo(), str(TREATMENT), **OPTIONS))


def test_faults_are_those_of_the_text() -> None:
    with pytest.raises(PatternError, match=r"unknown attribute 'PIDD'\n  hint: did you mean 'PID'\?"):
        cep.match(chemo(), c.where(c.PIDD == 1), **OPTIONS)
    with pytest.raises(PatternError, match="partition_by"):
        cep.match(chemo(), c.partition_by("PID"), partition_by="V", **OPTIONS)


@pytest.mark.parametrize("pattern", [c.PID == 1, p[1], [c, b], None])
def test_what_is_no_query(pattern: object) -> None:
    with pytest.raises(PatternSyntaxError, match=r"a query is text, or built by seq\(…\) and its like"):
        cep.match(chemo(), pattern, **OPTIONS)
