"""Streams are saved and loaded: by this release, an earlier or a later one, and with the functions of their query."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import gpu_cep as cep
from tests.api.streams.test_stream import EVENTS, PAIRS, SITUATIONS, TRADES


@pytest.mark.parametrize("load", [cep.stream.load, cep.stream_all.load])
def test_only_saved_streams_are_loaded(load):
    other = pa.BufferOutputStream()
    with pa.ipc.new_stream(other, EVENTS) as writer:
        writer.write_table(TRADES)
    stream = other.getvalue().to_pybytes()
    path = r"takes the bytes that save\(\) gave, not str; of a file give Path\(name\)\.read_bytes\(\)"
    own = cep.stream_all({"pairs": PAIRS}, EVENTS) if load == cep.stream.load else cep.stream(PAIRS, EVENTS)
    other_kind = (own.save(), rf"not one that save\(\) of {'stream' if load == cep.stream.load else 'stream_all'}\(\) made")
    for wrong, message in [(b"nothing", "no state that save"), (stream, "not one that save"), ("text", path), other_kind]:
        with pytest.raises(cep.EventError, match=message):
            load(wrong)


@pytest.mark.parametrize(
    ("rows", "again"),
    [(0, "make a new stream$"), (2, "make a new stream and push the events from 3 ticks on; what was certain before comes out again")],
)
def test_a_stream_of_another_plan_says_how_to_go_on(monkeypatch, rows, again):
    live = cep.stream(PAIRS, EVENTS, lateness=1)
    live.push(TRADES.slice(2, rows))
    saved = live.save()
    monkeypatch.setattr("gpu_cep.plan.event_plan.Plan.fingerprint", lambda plan: "another")
    told = "this release plans the query in another way; load it with the build of gpu_cep "
    with pytest.raises(cep.EventError, match=f"{told}{re.escape(cep.__version__)} that saved it, or {again}"):
        cep.stream.load(saved)


def test_a_state_of_another_format_names_the_release_that_reads_it(monkeypatch):
    saved = cep.stream(PAIRS, EVENTS).save()
    monkeypatch.setattr("gpu_cep.engine.streaming.state.FORMAT", 9)
    told = "it has format 4, and this release reads 9; load it with the build of gpu_cep .* that saved it"
    with pytest.raises(cep.EventError, match=told):
        cep.stream.load(saved)
    # as long as the word that an earlier release did not write
    unnamed = saved.replace(b'"release"', b'"another"')
    with pytest.raises(cep.EventError, match="load it with the release that saved it"):
        cep.stream.load(unnamed)


def test_a_state_of_a_later_release_is_refused_by_what_it_tells():
    # as long as a name that this release knows
    later = cep.stream(PAIRS, EVENTS).save().replace(b'"expired"', b'"extreme"')
    told = "a later release wrote it, whose clock has 'extreme'; go on with the build of gpu_cep .* that saved it, or a later one, or begin"
    with pytest.raises(cep.EventError, match=told):
        cep.stream.load(later)


@pytest.mark.parametrize(("name", "later"), [("lateness", "latenes_"), ("emit", "emi_"), ("strategy", "strateg_")])
@pytest.mark.parametrize(("make", "query"), [(cep.stream, PAIRS), (cep.stream_all, {"pairs": PAIRS})])
def test_a_state_with_keywords_of_a_later_release_names_them(make, query, name, later):
    live = make(query, EVENTS, strategy="skip_till_any_match")
    told = f"state: a later release wrote it, which takes '{later}'; go on with the build of gpu_cep .* that saved it, or a later one"
    with pytest.raises(cep.EventError, match=told):
        type(live).load(live.save().replace(f'"{name}"'.encode(), f'"{later}"'.encode()))


@pytest.mark.parametrize("number", [np.int64(2), Decimal(2), np.float32(2)])
@pytest.mark.parametrize(("make", "query"), [(cep.stream, SITUATIONS), (cep.stream_all, {"levels": SITUATIONS})])
def test_numbers_of_any_library_are_saved(make, query, number):
    live = make(query, EVENTS, lateness=number, every=number, gap=number, detect="early")
    live.push(TRADES.slice(0, 3))
    again = type(live).load(live.save())
    assert again.push(TRADES.slice(3)) == live.push(TRADES.slice(3))
    assert (again.clock, again.clock.watermark) == (live.clock, 7)


def test_functions_are_given_again_when_a_stream_is_loaded():
    def near(left: int, right: int) -> bool:
        return abs(left - right) < 2

    live = cep.stream("PATTERN SEQ(A a, B b) WHERE near(a.k, b.k) WITHIN 5", EVENTS, functions={"near": near})
    live.push(TRADES.slice(0, 1))
    assert cep.stream.load(live.save(), functions={"near": near}).push(TRADES.slice(1, 1)).num_rows == 1
