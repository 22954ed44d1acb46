"""Patterns that are added to a stream of many, or removed from it, while events come."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from tests.effort import examples

SCHEMA = pa.schema({"ts": pa.int64(), "type": pa.string(), "k": pa.int64()})
RULES = {
    "bought": "PATTERN SEQ(View v, Buy b) WITHIN 5 RETURN v.ts AS at",
    "left": "PATTERN SEQ(View v, Leave x) WITHIN 5 RETURN v.ts AS at",
}
SHAPES = (
    "SEQ(A a, B b)", "SEQ(A a, B b+)", "SEQ(A a, NOT(C c))", "SEQ(NOT(C n), A a, B b)", "SEQ(A a, OR(B b, C c+))", "AND(A a, B b)",
    "SEQ(a, b)",
)  # fmt: skip
# Windows, and options beside them.
OWN = (
    ("4", {}), ("4", {"partition_by": "k"}), ("4", {"after_match": "skip_past_last"}), ("4", {"strategy": "skip_till_any_match"}),
    ("3 EVENTS", {}), ("3 EVENTS", {"after_match": "skip_past_last"}),
)  # fmt: skip
DRAWN = st.tuples(st.sampled_from(SHAPES), st.sampled_from(OWN))


def events(times: list[int], kinds: str) -> pa.Table:
    return pa.table({"ts": times, "type": [{"V": "View", "B": "Buy", "L": "Leave"}[kind] for kind in kinds], "k": [1] * len(times)}, SCHEMA)


def rows(found: Mapping[str, pa.Table]) -> dict[str, str]:
    return {name: str(table.to_pylist()) for name, table in found.items()}


@examples(25, 300)
@given(st.lists(DRAWN, min_size=2, max_size=4), st.sampled_from(("certain", "window")), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_a_pattern_that_is_added_has_the_matches_of_a_stream_that_begins_there(
    drawn: list[tuple[str, tuple[str, dict[str, str]]]], emit: str, lateness: int, seed: int
) -> None:
    """A pattern that is not removed goes on as if nothing had happened to the others."""
    random = np.random.default_rng(seed)
    rules = {str(number): cep.Rule(f"PATTERN {text} WITHIN {within}", own) for number, (text, (within, own)) in enumerate(drawn)}
    together, alone, waiting, time, reported = None, {}, [*rules], 0, 0
    for _ in range(8):
        if waiting and (together is None or random.random() < 0.5):
            name = waiting.pop(0)
            added = cep.stream(rules[name].pattern, SCHEMA, emit=emit, lateness=lateness, **rules[name].options)
            if together is None:
                together = cep.stream_all({name: rules[name]}, SCHEMA, emit=emit, lateness=lateness, split=True)
            else:
                together.add({name: rules[name]})
            if together.clock.watermark is not None:
                assert added.advance(together.clock.watermark).num_rows == 0
            alone[name] = added
        elif len(alone) > 1 and random.random() < 0.2:
            name = str(random.choice([*alone]))
            del alone[name]
            together.remove(name)
        times = time + random.integers(0, 6, 5)
        columns = {"ts": times, "type": random.choice(list("ABCZ"), 5), "k": random.integers(0, 2, 5)}
        time = max(time, int(times.max())) + int(random.choice([0, 1, 3, 20]))
        part = pa.table(columns, SCHEMA)
        found = together.push(part)
        assert rows(found) == rows({name: live.push(part) for name, live in alone.items()})
        reported += sum(table.num_rows for table in found.values())
        assert together.clock.reported == reported
        together = cep.stream_all.load(together.save()) if random.random() < 0.3 else together
    assert list(together.patterns) == list(alone)
    assert rows(together.finish()) == rows({name: live.finish() for name, live in alone.items()})


def test_one_table_has_the_rows_of_the_patterns_of_the_moment() -> None:
    live = cep.stream_all({"bought": RULES["bought"]}, SCHEMA)
    assert live.push(events([1, 2], "VL")).num_rows == 0
    live.add({"left": RULES["left"]})
    assert {name: text.replace("\n", " ") for name, text in live.patterns.items()} == RULES
    # the view at 1 came before there was a pattern for it
    assert live.push(events([3, 4], "LB")).to_pylist() == [{"pattern": "bought", "match_start": 1, "match_end": 4, "at": 1}]
    live.push(events([6, 7], "VV"))
    live.remove("bought")
    assert list(live.patterns) == ["left"]
    assert live.push(events([8, 9, 10], "BLV")).to_pylist() == [
        {"pattern": "left", "match_start": 6, "match_end": 9, "at": 6},
        {"pattern": "left", "match_start": 7, "match_end": 9, "at": 7},
    ]
    assert live.clock.reported == 3


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ({"left": RULES["left"]}, "the stream has a pattern 'left' already"),
        ({"other": "PATTERN SEQ(View v"}, "pattern 'other': "),
        ({"other": "PATTERN SEQ(View v) WITHIN 5"}, "have not the same columns"),
        ({"other": cep.Rule(RULES["left"], {"nulls": "drop"})}, "a stream has one watermark"),
        ({"other": cep.Rule(RULES["left"], {"output": "count"})}, "output= is the same for all rules"),
        ({}, "there is no pattern; give at least one"),
        (RULES["left"], "patterns must be a mapping of names to patterns"),
    ],
)
def test_patterns_that_cannot_be_added_change_nothing(added: object, message: str) -> None:
    live = cep.stream_all(RULES, SCHEMA)
    live.push(events([1], "V"))
    before = live.save()
    with pytest.raises(cep.CepError) as caught:
        live.add(added)
    assert message in str(caught.value)
    assert live.save() == before


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("bougt",), "the stream has no pattern 'bougt'\n  hint: did you mean 'bought'?"),
        ((["left"],), "the stream has no pattern ['left']"),
        (("left", "bought"), "a stream has at least one pattern; add() another one first"),
    ],
)
def test_patterns_that_cannot_be_removed_stay(names: tuple[object, ...], message: str) -> None:
    live = cep.stream_all(RULES, SCHEMA)
    with pytest.raises(cep.PatternError) as caught:
        live.remove(*names)
    assert message in str(caught.value)
    assert {name: text.replace("\n", " ") for name, text in live.patterns.items()} == RULES


def test_a_finished_stream_takes_no_patterns() -> None:
    live = cep.stream_all({"left": RULES["left"]}, SCHEMA)
    live.finish()
    with pytest.raises(cep.EventError, match="the stream is finished"):
        live.add({"bought": RULES["bought"]})
