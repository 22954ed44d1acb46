"""Mistakes that newcomers make over data of their own; each message says what to write instead."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gpu_cep as cep
from gpu_cep.errors import CepError, DiagnosedError

CLICKS = pd.DataFrame(
    {
        "time": pd.to_datetime(["2026-03-01 10:00", "2026-03-01 10:01", "2026-03-01 10:02"]),
        "user": ["ann", "ann", "bob"],
        "action": ["view", "cart", "view"],
        "page": ["/p/1", "/p/1", "/p/2"],
        "amount": [0.0, 9.5, 0.0],
    }
)
WIDE = CLICKS.assign(**{f"sensor_{number}": 0 for number in range(80)}, **{f"note_{number}": "" for number in range(20)})
ROLES = {"timestamp": "time", "type_column": "action"}
FUNNEL = "PATTERN SEQ(view v, cart c) WITHIN 5 minutes"


def told(error: Exception) -> str:
    """All that an error says: messages and hints."""
    if isinstance(error, DiagnosedError):
        return "\n".join(f"{each.message}; {each.hint}" for each in error.diagnostics)
    return str(error)


# What stands behind PATTERN, or a whole query, and what its message says to write.
QUERIES = {
    "SEQ(view v, cart c) WHERE v.pge = c.page WITHIN 5 minutes": "did you mean 'page'?",
    "SEQ(view v, cart c) WHERE page = '/p/1' WITHIN 5 minutes": "write v.page",
    "SEQ(view v, cart c) WHERE v.user = ann WITHIN 5 minutes": "a text stands in single quotes: 'ann'",
    'SEQ(view v, cart c) WHERE v.user = "ann" WITHIN 5 minutes': "a text stands in single quotes: 'ann'",
    "SEQ(view v, cart c) WHERE v.user = “ann” WITHIN 5 minutes": "with straight quotes",
    "SEQ(view v, cart c) WHERE v.page = /p/1 WITHIN 5 minutes": "a text stands in single quotes",
    "SEQ(view v, cart c) WHERE v.user === 'ann' WITHIN 5 minutes": "equality is written =",
    "SEQ(view v, cart c) WHERE v.user = 'ann' && c.amount > 1 WITHIN 5 minutes": "write AND",
    "SEQ(view v, cart c) WHERE v.page ~ '/p/.*' WITHIN 5 minutes": "write regexp_like(v.page, '/p/.*')",
    "SEQ(view v, cart c) v.page = c.page WITHIN 5 minutes": "conditions stand behind WHERE: WHERE [key] AND a.x > 1",
    "SEQ(view v, cart c) [user] WITHIN 5 minutes": "conditions stand behind WHERE: WHERE [key] AND a.x > 1",
    "SEQ(view v, cart c) WHER v.page = c.page WITHIN 5 minutes": "did you mean 'WHERE'?",
    "SEQ(view v, cart c) WITHIN 5 minutes WHERE v.page = c.page": "WHERE must stand before WITHIN",
    "SEQ(view v, cart c) PARTITION BY user WITHIN 5 minutes": "PARTITION BY must stand before PATTERN",
    "SEQ(view v, cart c) WITHIN 5 minutes GROUP BY user": "PARTITION BY k, before PATTERN",
    "SEQ(view v, cart c) WITHIN 5 minutes HAVING count(c) > 1": "conditions on aggregates stand in WHERE",
    "SEQ(view v, cart c) WITHIN 5 minutes LIMIT 3": "there is no LIMIT: limit_per_start=",
    "SEQ(view v, cart c) WITHIN 5": "write WITHIN 5 seconds",
    "SEQ(view v, cart c) WITHIN 5 min.": "a unit has no dot: WITHIN 5 min",
    "SEQ(view v, cart c) WITHIN '5 minutes'": "a length is a number and a unit, above 0 and without quotes",
    "SEQ(view v, cart c) WITHIN five minutes": "a length is a number and a unit, above 0 and without quotes",
    "SEQ(view v, cart c) WITHIN minutes 5": "a length is a number and a unit, above 0 and without quotes",
    "SEQ(view v, cart c) WITHIN -5 minutes": "a length is a number and a unit, above 0 and without quotes",
    "SEQ(view v, cart c) WITHIN 1:30:00": "a length of time is a number and a unit: WITHIN 90 minutes",
    "SEQ(view v, cart c) WITHIN 5 months": "say it in days",
    "SEQ(view v, cart c) IN 5 minutes": "write WITHIN: WITHIN 5 minutes",
    "SEQ(view v, cart c) RETURN v.page WITHIN 5 minutes": "WITHIN must stand before RETURN",
    "SEQ(view v, cart c) WITHIN 5 minutes RETURN *": "RETURN names what it returns",
    "SEQ(view v, cart c) WITHIN 5 minutes RETURN v.*": "RETURN v holds the events of v",
    "SEQ(view v, cart c) WITHIN 5 minutes RETURN page": "write v.page",
    "SEQ(view v, cart c) WITHIN 5 minutes RETURN count(*)": "the events of one variable are counted: count(v)",
    "SEQ(view v, cart c+) WHERE count(*) > 3 WITHIN 5 minutes": "the events of one variable are counted: count(v)",
    "SEQ(view v, cart c+) WHERE c[0].page = v.page WITHIN 5 minutes": "counted from 1",
    "SEQ(view v, cart c+) WHERE c[-1].page = v.page WITHIN 5 minutes": "the last event of a binding is v[v.LEN]",
    "SEQ(view v, cart+ c) WITHIN 5 minutes": "a quantifier stands behind its variable: A a+, or A+ a[]",
    "view v, cart c WITHIN 5 minutes": "events one after the other are SEQ(A a, B b)",
    "view v AND cart c WITHIN 5 minutes": "events in any order are AND(A a, B b)",
    "view v -> cart c WITHIN 5 minutes": "A -> B is written PATTERN SEQ(A a, B b)",
    "view cart* buy WITHIN 5 minutes": "events one after the other are SEQ(A a, B b)",
    "SEQ(view v, cart|search c) WITHIN 5 minutes": "OR(A a, B b) between events",
    "SEQ(view v, .*, cart c) WITHIN 5 minutes": "other events may lie in between",
    "SEQ(view v, cart c) WHERE NOT(buy b) WITHIN 5 minutes": "stands in the pattern: SEQ(A a, NOT(B b), C c)",
    "SEQ(v: view, c: cart) WITHIN 5 minutes": "a variable stands behind its event type: A a",
    "SEQ('view' v, 'cart' c) WITHIN 5 minutes": "an event type is a name: view a",
    "SEQ(view v, cart c WITHIN 5 minutes": "column 12 is not closed",
    "SEQ view v, cart c WITHIN 5 minutes": "SEQ(A a, B b)",
    "SEQ(404 v, cart c)": 'an event type that is no word is quoted: "404" a',
    "SEQ(view v, cart c) STRATEGY skip_till_any_match": "the keyword strategy= of the call",
    "SEQ(view v, cart c) // a comment": "a comment is written -- …",
    "SEQ(view v, cart c) # a comment": "a comment is written -- …",
    "SEQ(view v, cart c) RETURN v.page first": "named with AS: v.price AS price",
    "SEQ(view v, cart c) WHERE [v.page]": "[user], without a variable",
    "SEQ(view v, cart c) WHERE [page][user]": "[a] AND [b]",
    "SEQ(view v, cart c) WHERE [page, user]": "[a] AND [b]",
    "SEQ(view v, cart c) WHERE [user id]": '["a b"]',
    "SEQ(view v, cart c) WHERE v.page = 'a', c.page = 'b'": "joined with AND",
    "SEQ(view v, cart c) WHERE v.page = 'a' AND WITHIN 5 minutes": "a condition is missing",
    "SEQ(view v, cart c) WHERE c.amount > 1 AND < 9": "a.x > 1 AND a.x < 9",
    "SEQ(view v, cart c) WHERE c.amount > 1,000": "1000.5",
    "SEQ(view v, cart c) WHERE c.amount IS None": "write IS NULL",
    "SEQ(view v, cart c) WHERE v.page IN ['/a', '/b']": "IN ('a', 'b')",
    "SEQ(view v, cart c) WHERE v.page CONTAINS 'a'": "write v.page LIKE '%a%'",
    "SEQ(view v, cart c) WHERE v.page MATCHES 'a.*'": "write regexp_like(v.page, 'a.*')",
    "SEQ(view v, cart c) WHERE v.page.lower() = 'a'": "lower(v.attr)",
    "SEQ(view v, cart c) WHERE v['page'] = 'a'": "v.price",
    "SEQ(view v, cart c) WHERE v[0].page = 'a'": "v[1]",
    "SEQ(view v, cart c) WHERE c.amount = TRUE": "a number compares with a number: c.amount <> 0",
    "SEQ(view v, cart c) WHERE FALSE = c.amount": "a number compares with a number: c.amount = 0",
    "SEQ(view v, cart c) WHERE c.page <> TRUE": "a text compares with a text: c.page = 'false'",
    "SEQ(view v, cart c) WHERE c.time = TRUE": "c.time is no truth value",
    "SEQ(view v, cart c) WHERE c.amount = 'much'": "a number compares with a number, a text with a text",
    "SEQ(view v, cart c) WHERE c.amount = v.page": "cast one of the columns before they are matched",
    "SEQ(view v, cart c) WHERE c.amount AND v.amount = 1": "compare it: c.amount = 1",
    "SEQ(view v, cart c) WHERE NOT c.page": "compare it: c.page = '…'",
    "SEQ(view v, cart c) WHERE (c.amount > 1) IS TRUE": "write v.attr",
    "SEQ(view v, cart c) WHERE c.amount IS FALSE": "write NOT c.amount",
    "SEQ(view v, cart c) WHERE c.amount IS UNKNOWN": "write c.amount IS NULL",
    "SEQ(view v, cart c) WHERE c.amount IS NOT TRUE": "NOT a.x OR a.x IS NULL",
    "SEQ(view v, cart c) WHERE c.amount IS NOT FALSE": "a.x OR a.x IS NULL",
    "SEQ(view v, cart c) WHERE 'a' IN c.tags": "lists in a column are not read",
    "SEQ(view v, cart c) WHERE c.tags[1] = 'a'": "lists in a column are not read",
    "SEQ(view v, cart c) WHERE c.page IN ()": "IN takes one value or more",
    "SEQ(view v, cart c) WHERE c.page = 'it\\'s'": "a quote in a text is doubled",
    "SEQ(view v, cart c) WHERE EXTRACT(hour FROM c.time) = 1": "hour(v.attr)",
    "SEQ(view v, view v)": "give each its own name",
    "SEQ(view v, cart c) RETURN v.page AS match_end": "each result has that column",
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query(query: str) -> None:
    with pytest.raises(CepError) as caught:
        cep.match(CLICKS, f"PATTERN {query}", **ROLES)
    assert QUERIES[query] in told(caught.value)


OTHER_TYPES = {
    "uuid": (pa.array([b"0" * 16], pa.uuid()), "CAST(id AS VARCHAR) in SQL"),
    "sixteen bytes": (pa.array([b"0" * 16], pa.binary(16)), "CAST(id AS VARCHAR) in SQL"),
    "bytes": (pa.array([b"0"]), "such as to text"),
    "time of day": (pa.array([time(1)]), "such as to text"),
    "list": (pa.array([["a"]]), "such as an element or the length"),
    "struct": (pa.array([{"a": 1}]), "table.flatten()"),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "table.flatten()"),
}


@pytest.mark.parametrize("kind", OTHER_TYPES)
def test_a_column_of_a_type_that_nothing_compares(kind: str) -> None:
    column, hint = OTHER_TYPES[kind]
    events = pa.table({"ts": [1], "type": ["view"], "k": column})
    for query, keys in (("PATTERN view v WHERE v.k = v.k", None), ("PATTERN view v WHERE [k]", None), ("PATTERN view v", "k")):
        with pytest.raises(CepError) as caught:
            cep.match(events, query, partition_by=keys)
        assert hint in told(caught.value)
    with pytest.raises(CepError) as caught:
        cep.match(events, "MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts PATTERN (A))")
    assert hint in told(caught.value)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SEQ(view page, cart c)", "rename the variable page, since keys of streams are columns, too"),
        ("SEQ(view v, cart c) RETURN first(v.page) AS page", "the key of the stream is a column of each result"),
        ("SEQ(view v, cart c) RETURN v.user AS u, c.user AS u", "name one of them with AS"),
        ("SEQ(view match_start, cart c)", "rename the variable match_start"),
    ],
)
def test_two_columns_of_one_name(query: str, hint: str) -> None:
    with pytest.raises(CepError) as caught:
        cep.match(CLICKS, f"PATTERN {query}", partition_by="page", **ROLES)
    assert hint in told(caught.value)


def test_a_query_of_vertica() -> None:
    with pytest.raises(CepError, match=r"of Vertica's MATCH is MATCH_RECOGNIZE \(… PATTERN \(A B\* C\) DEFINE …\)"):
        cep.match(CLICKS, "MATCH (PARTITION BY user ORDER BY time DEFINE A AS action = 'view' PATTERN P AS (A) RESULTS ALL ROWS)", **ROLES)


@pytest.mark.parametrize("query", ["SEQ(view v, cart c) WITHIN 5 minutes", "view v", "MATCH SEQ(view v, cart c)"])
def test_a_query_without_its_first_word(query: str) -> None:
    with pytest.raises(CepError, match=r"a query begins with PATTERN: PATTERN SEQ\(A a, B b\)"):
        cep.match(CLICKS, query, **ROLES)


@pytest.mark.parametrize(
    ("events", "keywords", "message"),
    [
        (CLICKS, {}, "there are time"),
        (CLICKS, {"timestamp": "time"}, "columns of text are user, action, page"),
        (CLICKS, ROLES | {"timestamp": "tme"}, "did you mean 'time'?"),
        (CLICKS, ROLES | {"type_column": "acton"}, "did you mean 'action'?"),
        (CLICKS, ROLES | {"type_column": "amount"}, "type_column= says which column holds the event types"),
        (CLICKS, ROLES | {"partition_by": "usr"}, "did you mean 'user'?"),
        (CLICKS, ROLES | {"partition_by": "user, page"}, "several columns are a list, ['user', 'page']"),
        (CLICKS, ROLES | {"output": "match"}, "did you mean 'matches'?"),
        (CLICKS, ROLES | {"engine": "cuda"}, "did you mean 'gpu'?"),
        *((CLICKS, ROLES | {"columns": ["usr"], "output": output}, "did you mean 'user'?") for output in ("matches", "indices", "count")),
        (WIDE, ROLES | {"columns": ["X9"]}, "there are note_9, note_19, sensor_9, sensor_79, sensor_69 and 100 more"),
        (WIDE, ROLES | {"partition_by": "x9"}, "there are note_9, note_19, sensor_9, sensor_79, sensor_69 and 100 more"),
        (WIDE, {"timestamp": "time"}, "columns of text are page, note_9, note_8, note_7, note_6 and 18 more"),
        (CLICKS, ROLES | {"strategy": "any"}, "skip_till_any_match"),
        (CLICKS, ROLES | {"time_unit": "milliseconds"}, "write time_unit='ms'"),
        (CLICKS.assign(time=["10:00", "10:01", "10:02"]), ROLES, "pandas.to_datetime(df['time'], format='ISO8601')"),
        (CLICKS.assign(time=[time(10), time(10, 1), time(10, 2)]), ROLES, "a time of day tells no day: combine it with a column of days"),
        (
            CLICKS.assign(x=["a", 1, None]),
            ROLES,
            "cannot read column 'x' of type object: Expected bytes, got a 'int' object; give df['x'].astype(str)",
        ),
        (CLICKS.assign(x=[object()] * 3), ROLES, "or leave it out: df.drop(columns='x')"),
        (CLICKS.set_index("time").rename_axis(None), ROLES, "df.reset_index()"),
        (CLICKS.to_dict("records"), ROLES, "give pyarrow.Table.from_pylist(events)"),
        (iter(CLICKS.to_dict("records")), ROLES, "for rows give pyarrow.Table.from_pylist(list(events))"),
        (CLICKS.to_dict("list"), ROLES, "give pyarrow.table(events)"),
        (pa.Table.from_pandas(CLICKS).to_batches(), ROLES, "give pyarrow.Table.from_batches(events)"),
        ((pa.Table.from_pandas(CLICKS),), ROLES, "give pyarrow.concat_tables(events)"),
        (["clicks-1.csv", CLICKS], ROLES, "all of a list must be paths, which may be globs or folders"),
        (["clicks-1.csv", "clicks-2.csv"], ROLES, "cannot read clicks-1.csv: there is no such file or folder"),
        ([], ROLES, "give pyarrow.Table.from_pylist(events)"),
        (CLICKS.to_numpy(), ROLES, "give pandas.DataFrame(events)"),
        (CLICKS["action"], ROLES, "give the whole DataFrame"),
        (duckdb.connect(), ROLES, "give one of its relations, connection.table('events')"),
        (CLICKS.groupby("user"), ROLES, "partition_by= for its keys"),
        ("clicks.csv", ROLES, "there is no such file or folder"),
        ("clicks.xlsx", ROLES, "there is no such file or folder"),
        (__file__, ROLES, "expected one of .parquet"),
        (pd.DataFrame(), ROLES, "columns of text are none"),
    ],
)
def test_a_call(events: Any, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(CepError) as caught:
        cep.match(events, FUNNEL, **keywords)
    assert message in told(caught.value)


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("ts", "timestamp= names the column of times"),
        ("time_column", "timestamp= names the column of times"),
        ("group_by", "partition_by= names the keys of streams"),
        ("type", "type_column= names the column of event types"),
        ("within", "WITHIN 5 minutes"),
        ("limit", "limit_per_start="),
        ("column", "did you mean 'columns'?"),
    ],
)
def test_a_keyword(keyword: str, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        cep.match(CLICKS, FUNNEL, **{keyword: "x"}, **ROLES)


def test_a_path_for_a_pattern() -> None:
    with pytest.raises(CepError, match=r"this is a file's name: give its text, such as Path\(name\).read_text\(\)"):
        cep.match(CLICKS, "funnel.cep", **ROLES)
    with pytest.raises(CepError, match=r"give what it holds, pattern.read_text\(\)"):
        cep.match(CLICKS, Path("funnel.cep"), **ROLES)  # type: ignore[arg-type]


def test_events_and_pattern_in_each_others_place() -> None:
    with pytest.raises(CepError, match=r"match\(events, pattern\)"):
        cep.match(FUNNEL, CLICKS, **ROLES)  # type: ignore[arg-type]


def test_another_case_of_letters() -> None:
    with pytest.warns(cep.AbsentValueWarning, match="no event has action 'View'; did you mean 'view'"):
        assert cep.match(CLICKS, "PATTERN SEQ(View v, cart c) WITHIN 5 minutes", **ROLES).num_rows == 0


def test_what_is_right_is_taken() -> None:
    for events in (CLICKS, pa.Table.from_pandas(CLICKS), CLICKS.set_index("time")):
        assert cep.match(events, FUNNEL, **ROLES).num_rows == 1
    assert np.isclose(cep.match(CLICKS, f"{FUNNEL} RETURN c.amount AS a", **ROLES)["a"][0].as_py(), 9.5)
