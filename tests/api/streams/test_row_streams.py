"""A stream of MATCH_RECOGNIZE gives the rows of a run over all of them, however they are pushed, and keeps few of them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.engine.row_patterns import searching
from gpu_cep.engine.row_patterns.search_parts import room_for
from gpu_cep.errors import EventError, UnsupportedError
from tests.drawn.row_patterns import ALONE, BESIDE, READING, Drawn, clauses

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.string(), "x": pa.int64()})


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def pushed(live: cep.Stream, parts: list[pa.Table], *, saves: bool = False) -> list[pa.Table]:
    found = []
    for part in parts:
        found.append(live.push(part))
        if saves:
            live = cep.Stream.load(live.save())
    return [*found, live.finish()]


def table_of(text: str, values: list[int] | None = None) -> pa.Table:
    """Rows of one letter each, at times 0, 1, 2 …"""
    return pa.table({"ts": range(len(text)), "k": list(text), "x": values or [0] * len(text)}, schema=SCHEMA)


def ends(pattern: str, text: str, *, more: str = "", define: str = "A AS k = 'a', B AS k = 'b', C AS k = 'c'") -> dict[int, list[str]]:
    """What comes out with which row, of rows that are pushed one by one; −1: at the end."""
    used = ", ".join(each for each in define.split(", ") if each[0] in pattern)
    clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(ts) AS f, count(*) AS n {more} PATTERN ({pattern}) WITHIN 9 DEFINE {used})"
    live = cep.stream(clause, SCHEMA)
    rows = table_of(text)
    found = {ts: live.push(rows.slice(ts, 1)).to_pylist() for ts in range(len(text))} | {-1: live.finish().to_pylist()}
    assert rows_of(cep.match(rows, clause)) == sorted(repr(row) for rows in found.values() for row in rows)
    return {ts: [f"{row['f']}+{row['n']}" for row in rows] for ts, rows in found.items() if rows}


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("A B C", "xabcx", {3: ["1+3"]}),
        ("A B+?", "abbb", {1: ["0+2"]}),
        # the row that ends the run
        ("A B+", "xabbx", {4: ["1+3"]}),
        ("A B+ C", "abbbcx", {4: ["0+5"]}),
        ("A+", "aaaaaaaaaaaaa", {9: ["0+10"], -1: ["10+3"]}),
        # a preferred alternative that may still come
        ("A B C | A", "abxabc", {2: ["0+1"], 5: ["3+3"]}),
        ("A | A B C", "abxa", {0: ["0+1"], 3: ["3+1"]}),
        # the window is over
        ("A X* C | A", "axxxxxxxxxxx", {9: ["0+1"]}),
    ],
)
def test_a_match_comes_out_when_no_row_can_change_it(pattern, text, expected):
    assert ends(pattern, text) == expected


def streamed(drawn: Drawn) -> str:
    """The clause with what a stream needs: ORDER BY a time first, and WITHIN."""
    begin = drawn.clauses.index("MEASURES")
    keys, rest = drawn.clauses[:begin].partition("ORDER BY")[0], drawn.clauses[begin:]
    if "WITHIN" not in rest:
        rest = rest.replace(" SUBSET U", " WITHIN 3 SUBSET U")
    if keys.strip():
        rest = rest.replace(" EVENTS", "")
    return f"MATCH_RECOGNIZE ({keys} ORDER BY ts, n DESC {rest})"


def arrivals(table: pa.Table, lateness: int, chance: random.Random) -> list[pa.Table]:
    """The rows in any order in which none is late, cut anywhere."""
    order = sorted(range(len(table)), key=lambda row: table["ts"][row].as_py() + chance.random() * (lateness - 1))
    cuts = sorted(chance.randint(0, len(order)) for _ in range(chance.randint(0, 6)))
    return [table.take(pa.array(order[low:high], pa.int64())) for low, high in zip([0, *cuts], [*cuts, len(order)], strict=True)]


@given(clauses(ALONE + BESIDE + READING), st.randoms(use_true_random=False), st.integers(1, 4), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_a_stream_gives_what_a_run_over_all_rows_gives(drawn: Drawn, chance: random.Random, lateness: int, saves: bool):
    clause, size = streamed(drawn), drawn.table.num_rows
    table = drawn.table.append_column("ts", pa.array(np.cumsum([chance.choice([0, 0, 1, 2, 5]) for _ in range(size)]), pa.int64()))
    try:
        live = cep.stream(clause, table.schema, threads=1, lateness=lateness)
    except UnsupportedError:
        assume("NEXT" not in clause and "$" not in clause)
        raise
    parts = arrivals(table, lateness, chance)
    try:
        expected = cep.match(table, clause, threads=1)
    except EventError:
        with pytest.raises(EventError, match="AFTER MATCH SKIP TO"):
            pushed(live, parts, saves=saves)
        return
    assert rows_of(pa.concat_tables(pushed(live, parts, saves=saves))) == rows_of(expected)


def test_rows_are_kept_as_long_as_a_match_may_need_them():
    clause = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES count(*) AS n PATTERN (S B+) WITHIN 20 DEFINE B AS x > PREV(x, 2))"
    live = cep.stream(clause, SCHEMA)
    chance = np.random.default_rng(7)
    for begin in range(0, 20_000, 100):
        live.push(
            pa.table(
                {"ts": np.arange(begin, begin + 100), "k": chance.choice(list("abc"), 100), "x": chance.integers(0, 9, 100)}, schema=SCHEMA
            )
        )
        assert live.kept_events <= 20 + 3 * 2
    assert live.clock.reported > 1000


def test_keys_that_are_silent_keep_what_prev_reads():
    clause = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES MATCH_NUMBER() AS m, PREV(FIRST(x)) AS p PATTERN (A) WITHIN 5)"
    live = cep.stream(clause, SCHEMA)
    rows = pa.table({"ts": [1, 2, 100, 1000], "k": ["a", "b", "a", "b"], "x": [5, 6, 7, 8]}, schema=SCHEMA)
    found = [live.push(rows.slice(number, 1)).to_pylist() for number in range(4)]
    assert found == [[{"k": k, "m": m, "p": p}] for k, m, p in (("a", 1, None), ("b", 1, None), ("a", 2, 5), ("b", 2, 6))]
    assert live.kept_events == 2


def test_a_row_of_a_match_never_comes_out_as_unmatched():
    rows = "ALL ROWS PER MATCH WITH UNMATCHED ROWS AFTER MATCH SKIP TO NEXT ROW"
    clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES MATCH_NUMBER() AS m {rows} PATTERN (A B) WITHIN 9 DEFINE A AS k <> 'x', B AS k = 'b')"
    live, given = cep.stream(clause, SCHEMA), table_of("abxb")
    found = [[(row["ts"], row["m"]) for row in live.push(given.slice(ts, 1)).to_pylist()] for ts in range(4)]
    assert found == [[], [(0, 1), (1, 1)], [(2, None)], []]
    assert [row["ts"] for row in live.finish().to_pylist()] == [3]


def test_late_rows_come_out_or_are_counted():
    live = cep.stream("MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(ts) AS f PATTERN (A) WITHIN 1)", SCHEMA, late="rows")
    live.push(table_of("ab"))
    found = live.push(table_of("c")).to_pylist()
    assert [row["kind"] for row in found] == ["late"]
    assert live.clock.late == 1


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("ORDER BY ts MEASURES count(*) AS n PATTERN (A+)", "without WITHIN, .* WITHIN INTERVAL '5' MINUTE"),
        ("MEASURES count(*) AS n PATTERN (A+) WITHIN 3 EVENTS", "without ORDER BY"),
        ("ORDER BY k, ts MEASURES count(*) AS n PATTERN (A+) WITHIN 3 EVENTS", "line 1, column 27: .*ORDER BY k of type string first"),
        ("ORDER BY ts DESC MEASURES count(*) AS n PATTERN (A+) WITHIN 3 EVENTS", "ORDER BY ts in descending order first"),
        ("PARTITION BY k ORDER BY ts MEASURES count(*) AS n PATTERN (A+) WITHIN 3 EVENTS", "of which all keys would be kept"),
        ("ORDER BY ts MEASURES count(*) AS n PATTERN (A+ $) WITHIN 3", r"line 1, column 65: a stream with \$ is not supported"),
        ("ORDER BY ts MEASURES NEXT(x) AS n PATTERN (A+) WITHIN 3", r"line 1, column 39: a stream with NEXT\(…\), .* add a variable"),
        ("ORDER BY ts MEASURES x AS n PATTERN (A) WITHIN 3 DEFINE A AS NEXT(x) > 1", r"a stream with NEXT"),
    ],
)
def test_what_is_never_certain_is_refused(clause, message):
    with pytest.raises(UnsupportedError, match=f"(?s){message}"):
        cep.stream(f"MATCH_RECOGNIZE ({clause})", SCHEMA)


def test_faults_name_the_match_and_the_row():
    pattern = "PATTERN (A B?) WITHIN 1 DEFINE A AS k = 'a', B AS k = 'b'"
    live = cep.stream(f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n AFTER MATCH SKIP TO B {pattern})", SCHEMA)
    live.push(table_of("abxxabx"))
    with pytest.raises(EventError, match="match 3 of its partition, from row 7 on, has no row of B"):
        live.push(pa.table({"ts": [10, 20], "k": ["a", "x"], "x": [0, 0]}, schema=SCHEMA))


def test_rows_without_a_time_are_refused_with_what_to_do():
    live = cep.stream("MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A) WITHIN 9 DEFINE A AS x > 0)", SCHEMA)
    with pytest.raises(EventError, match=r"holds 1 NULL, of 2 events; push only rows that have a ts$"):
        live.push(pa.table({"ts": [1, None], "k": ["a", "b"], "x": [1, 2]}, schema=SCHEMA))


def test_other_algorithms_are_refused():
    clause = "MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A) WITHIN 1)"
    with pytest.raises(UnsupportedError, match="a stream with algorithm='brute_force' is not supported"):
        cep.stream(clause, SCHEMA, algorithm="brute_force")
    with pytest.raises(UnsupportedError, match="pattern 'a': a stream with algorithm='brute_force' is not supported"):
        cep.stream_all({"a": clause}, SCHEMA, algorithm="brute_force")


@pytest.mark.parametrize(
    ("argument", "values"),
    [("CLASSIFIER()", 3), ("CASE WHEN CLASSIFIER() = 'A' THEN x WHEN CLASSIFIER() = 'B' THEN x + 9 ELSE x - 9 END", 6)],
)
def test_values_that_are_counted_have_room_beside_few_rows(argument, values, monkeypatch):
    rooms = []
    monkeypatch.setattr(searching, "room_for", lambda *given: rooms.append(room_for(*given)) or rooms[-1])
    define = f"A AS count(DISTINCT {argument}) > 1, B AS k = 'b'"
    cep.match(table_of("cc", [1, 2]), f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n PATTERN (A | B | C) DEFINE {define})")
    # a kernel writes to the place of a value, without a look at how many there are
    assert rooms[0].places.shape[1] >= values
