"""Rules that differ in types and constants alone, which are matched together."""

from __future__ import annotations

import pyarrow as pa
import pytest

import gpu_cep as cep


@pytest.mark.parametrize("aggregate", ["sum(b[..i-1].x) <= 4", "max(b.s) > 'a'", "avg(b.x) < 3"])
def test_a_family_may_aggregate_beside_what_it_says_of_texts(aggregate):
    events = pa.table({"ts": range(9), "type": list("ABBCABBCB"), "x": [1, 2, 3, 4, 1, 2, 3, 1, 2], "s": list("abcdabcab")})
    text = "PATTERN SEQ({} a, {} b+) WHERE (a.s = 'a' OR b.x > 1) AND " + aggregate + " WITHIN 5"
    rules = {f"{one}{other}": text.format(one, other) for one, other in ("AB", "CB", "BC", "AC")}
    found = cep.match_all(events, rules, split=True)
    assert found == {name: cep.match(events, rule) for name, rule in rules.items()}
    assert sum(map(len, found.values())) > 4
