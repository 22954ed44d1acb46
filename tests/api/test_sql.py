"""sql(): every MATCH_RECOGNIZE of a statement is matched here, and the rest is DuckDB's."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_cep as cep
from gpu_cep.errors import DiagnosedError, EngineUnavailable, EventError, PatternError, PatternSyntaxError, UnsupportedError
from gpu_cep.sql_statements import take_apart, written
from tests.statements import ALL, FALL, FALLS, STATEMENTS, TICKS


def rows(statement: str, **tables: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in cep.sql(statement, **({"ticks": TICKS} | tables)).to_pylist())


ONLY_DUCKDB = {
    "a list of columns": f'SELECT m."Key", b, c FROM ticks {FALL} m ("Key", b, c)',
    "FROM first": f"FROM ticks {FALL} AS m SELECT m.*",
    "a dollar text": f"SELECT m.* FROM ticks {FALL} AS m WHERE $$ t MATCH_RECOGNIZE ( $$ <> ''",
    "anchors like a dollar text": f"SELECT m.* FROM ticks {FALL} m, ticks MATCH_RECOGNIZE (MEASURES 1 AS b PATTERN (^D | $A$)) AS o",
    "another WITH": f"SELECT * FROM ticks {FALL} WHERE TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+00' > DATE '2000-01-01'",
}


@pytest.mark.parametrize("name", [*STATEMENTS, *ONLY_DUCKDB])
def test_a_clause_stands_for_its_rows(name: str) -> None:
    assert rows((STATEMENTS | ONLY_DUCKDB)[name]) == FALLS


@pytest.mark.parametrize("name", ["ticks", "TICKS", '"ticks"'])
def test_a_name_of_with_hides_a_table(name: str) -> None:
    assert rows(f"WITH {name} AS (SELECT * FROM base) SELECT * FROM ticks {FALL}", ticks=TICKS.slice(0, 0), base=TICKS) == FALLS


def test_other_statements_are_duckdbs() -> None:
    assert rows("WITH x AS (SELECT 1 AS a) SELECT a, count(*) FROM x, Ticks GROUP BY a") == [(1, 6)]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table, duckdb.from_arrow], ids=lambda make: make.__name__)
def test_tables_of_every_kind(make: Any) -> None:
    given = make(TICKS.to_pydict() if make is not duckdb.from_arrow else TICKS)
    assert rows(f"SELECT m.*, t.ts FROM ticks {FALL} AS m JOIN ticks t ON t.price = m.low", ticks=given) == [
        (*fall, ts) for fall, ts in zip(FALLS, (4, 2, 2), strict=True)
    ]


def test_paths(tmp_path: Path) -> None:
    pq.write_table(TICKS, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("ts,sym,price\n" + "\n".join(",".join(map(str, row.values())) for row in TICKS.to_pylist()))
    for path in (tmp_path / "t.parquet", str(tmp_path / "t.csv")):
        assert rows(f"SELECT a.* FROM ticks {FALL} AS a JOIN (SELECT max(ts) FROM ticks) ON true", ticks=path) == FALLS
    assert rows(f"SELECT * FROM '{tmp_path / 't.parquet'}' {FALL}") == FALLS


@pytest.mark.parametrize("make", [lambda batches: iter(batches), lambda batches: pa.RecordBatchReader.from_batches(TICKS.schema, batches)])
def test_batches_that_come_once_may_be_named_twice(make: Any) -> None:
    batches = make(TICKS.to_batches(max_chunksize=2))
    assert rows(f"SELECT m.* FROM ticks {FALL} AS m JOIN ticks ON ts = 4", ticks=batches) == FALLS
    with pytest.raises(EventError, match=r"^table ticks: events: the iterator gives no batch"):
        rows("SELECT * FROM ticks", ticks=iter([]))


def test_a_table_is_read_only_where_a_query_names_it() -> None:
    assert rows("SELECT 1", ticks="no/such/file.csv") == [(1,)]
    with pytest.raises(EventError, match=r"table ticks: .*no/such/file.csv"):
        rows("SELECT * FROM ticks", ticks="no/such/file.csv")


def test_variables_of_python_are_no_tables() -> None:
    clause = name = TICKS  # noqa: F841
    with pytest.raises(PatternError, match=r"Table with name clause does not exist; given are ticks$"):
        rows("SELECT * FROM clause")
    with pytest.raises(PatternError, match=r"given are a{b}, {}$"):
        cep.sql("SELECT * FROM nope", {"a{b}": TICKS, "{}": TICKS})
    with pytest.raises(PatternError, match=r"Table with name name does not exist; no table is given: tables are given by name, name=…$"):
        cep.sql("SELECT * FROM name")


def test_names_do_not_clash() -> None:
    taken = pa.table({"x": [7]})
    assert rows(f"SELECT sym, high, low FROM ticks {FALL}, match_recognize_1", match_recognize_1=taken) == FALLS
    assert rows(f"SELECT * FROM ticks {FALL}", match_recognize_1=taken) == FALLS
    assert rows(f"SELECT * FROM ticks {FALL}", MATCH_recognize_1=taken) == FALLS


def test_the_unit_of_numbers_holds_in_every_clause() -> None:
    two = FALL.replace("(S D)", "(S D) WITHIN 1 minute")
    statement = f"SELECT a.* FROM ticks {two} AS a JOIN ticks {two} AS b ON a.sym = b.sym AND a.high = b.high"
    assert rows(statement, time_unit="minutes") == FALLS
    assert rows(statement, time_unit="hours") == []
    with pytest.raises(PatternError, match="1 minute needs the length of its ticks"):
        rows(statement)


@pytest.mark.parametrize("name", ["statement", "tables", "spark", "time_unit", "named", "two words", "t!", "a{b}", 'a"b', '"a', "`"])
def test_tables_of_any_name(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    # a name without its quotes is another table's
    tables = {name.strip('"'): TICKS.slice(0, 0)} | {name: TICKS}
    for relation in (f"(SELECT * FROM {quoted})", quoted):
        found = cep.sql(f"SELECT m.* FROM {relation} {FALL} AS m JOIN {quoted} ON ts = 4", tables, time_unit="s")
        assert sorted(tuple(row.values()) for row in found.to_pylist()) == FALLS


UNFIT: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a table in the place of tables": ((TICKS,), {}, r"takes tables by name, sql\(statement, name=table\), not Table"),
    "a name that is none": (({1: TICKS},), {}, "by names that are text, not 1"),
    "a name twice": (({"t": TICKS},), {"t": TICKS}, "table t is given twice"),
    "names of one word": (({"t": TICKS},), {"T": TICKS}, "tables t and T have one name in SQL, which does not tell upper from lower case"),
    "names by keyword": ((), {"t": TICKS, "T": TICKS}, "tables t and T"),
    "a frame with settings": ((pd.DataFrame({"conf": [1]}),), {}, "takes tables by name, .* not DataFrame"),
    "a table in the place of a unit": ((), {"time_unit": TICKS}, r"sql\(statement, {'time_unit': table}\)"),
    "a unit that is none": ((), {"time_unit": "minuts"}, r"unknown time_unit 'minuts'\n.*did you mean 'minutes'"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_what_is_no_table_and_no_unit(name: str) -> None:
    given, keywords, message = UNFIT[name]
    with pytest.raises(PatternError, match=message):
        cep.sql("SELECT 1", *given, **keywords)


# § stands before what an error is about.
FAULTS: dict[str, tuple[Any, type[cep.CepError], str]] = {
    "a column": (f"SELECT *\nFROM ticks\t{FALL.replace('D.price', '§D.prize')}", PatternError, "unknown column 'prize'"),
    "a clause": (f"SELECT * FROM ticks {FALL.replace('MEASURES', '§MEASURE')}", PatternSyntaxError, "found 'MEASURE'"),
    "a second clause": (
        f"SELECT * FROM ticks {FALL} AS m,\n ticks {FALL.replace('D.price', '§D.x')}", PatternError, "unknown column 'x'"
    ),
    "a clause of a table that is not there": (
        f"SELECT * FROM tick {FALL} JOIN tick {FALL.replace('PATTERN', '§PATERN')}", PatternSyntaxError, "found 'PATERN'"
    ),
    "a table": (
        f"SELECT * FROM tick §{FALL}", PatternError, "the relation .*: Table with name tick does not exist; did you mean 'ticks'"
    ),
    "a table of another name": ("SELECT * FROM quotes", PatternError, "Table with name quotes does not exist; given are ticks$"),
    "a correlation": (
        f"SELECT (SELECT 1 FROM (SELECT * FROM ticks WHERE ts = o.ts) §{FALL}) FROM ticks o", PatternError,
        '(?s)"o" not found.*hint: .*no columns of what stands around',
    ),
    "lateral": (f"SELECT * FROM ticks a, LATERAL (SELECT a.ts) §{FALL}", UnsupportedError, "LATERAL lets it read columns"),
    "a recursion": (
        f"WITH RECURSIVE r AS (SELECT * FROM ticks UNION ALL SELECT * FROM r §{FALL}) SELECT * FROM r", UnsupportedError,
        "it names the recursive query R",
    ),
    "no relation": (f"SELECT * FROM §{FALL}", PatternSyntaxError, "MATCH_RECOGNIZE stands behind a table"),
    "in SELECT": (f"SELECT ts, ticks §{FALL} FROM ticks", PatternSyntaxError, "MATCH_RECOGNIZE stands behind a table"),
    "behind ON": (f"SELECT * FROM ticks a JOIN ticks b ON a.ts = b.ts §{FALL}", PatternSyntaxError, "MATCH_RECOGNIZE stands behind"),
    "in WHERE": (f"SELECT * FROM ticks WHERE ts IN (ticks §{FALL})", PatternSyntaxError, "MATCH_RECOGNIZE stands behind"),
    "a command": (f"§EXPLAIN ANALYZE SELECT * FROM ticks {FALL}", UnsupportedError, "MATCH_RECOGNIZE behind EXPLAIN is not supported"),
    "an open bracket": ("SELECT * FROM ticks MATCH_RECOGNIZE §(PATTERN (A)", PatternSyntaxError, "the bracket .* is not closed"),
    "two statements": ("SELECT 1§; SELECT 2", PatternSyntaxError, "takes one statement"),
    "an open text": ("SELECT 'a", PatternSyntaxError, "the statement cannot be read"),
    "what DuckDB finds": (f"SELECT nix FROM ticks {FALL} AS m", PatternError, 'DuckDB: Binder Error: Referenced column "nix" not found'),
    "no text": (None, PatternSyntaxError, "takes a statement as text, not NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_show_their_place_in_the_statement(name: str) -> None:
    statement, error, message = FAULTS[name]
    before, marked, behind = (statement or "").partition("§")
    with pytest.raises(error, match=message) as caught:
        cep.sql(before + behind if statement else statement, ticks=TICKS)
    assert type(caught.value) is error
    assert isinstance(caught.value, DiagnosedError)
    places = [(each.span.line, each.span.column) for each in caught.value.diagnostics if each.span is not None]
    assert places == ([(before.count("\n") + 1, len(before) - before.rfind("\n"))] if marked else [])
    assert not marked or caught.value.text == before + behind


def test_what_fails_in_the_data_is_an_event_error() -> None:
    with pytest.raises(EventError, match="DuckDB: Conversion Error"):
        rows("SELECT CAST(sym AS INTEGER) FROM ticks")


@pytest.mark.parametrize("package", ["sqlglot", "duckdb"])
def test_a_missing_package_is_told_with_its_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EngineUnavailable, match=r"pip install 'gpu_cep\[sql\]'"):
        rows("SELECT 1")


@pytest.mark.parametrize("spark", ["session", 1, TICKS])
def test_no_session(spark: Any) -> None:
    with pytest.raises(PatternError, match="spark= takes a session of Spark"):
        cep.sql("SELECT 1", spark=spark)


# Relations and statements around them, with a place for a clause or for the result of one.
RELATIONS = ["ticks {0}", "(SELECT * FROM ticks WHERE ts < 4) {0}", "(SELECT * FROM ticks {1} AS i) {0}", "ticks {1} {0}"]
AROUND = [
    "SELECT * FROM {}",
    "WITH x AS (SELECT * FROM {}), y AS (SELECT * FROM x) SELECT * FROM y",
    "SELECT * FROM (SELECT * FROM {} AS a) UNION ALL SELECT * FROM {} AS b",
    "SELECT m.* FROM ticks t JOIN {} AS m ON t.sym = m.sym",
]


@given(st.sampled_from([*product(RELATIONS, AROUND)]), st.sampled_from(["-- (\n", "/* ' */", " "]), st.sampled_from(["duckdb", "spark"]))
def test_only_clauses_and_their_relations_are_replaced(parts: tuple[str, str], blank: str, dialect: str) -> None:
    relation, around = parts
    text = around.replace(" ", blank + " ", 3).replace("{}", relation.format(f"{blank}{FALL}", ALL))
    statement = take_apart(text, dialect)
    assert len(statement.clauses) == around.count("{}") * (1 + relation.count("{1}"))
    expected = ([ALL] * relation.count("{1}") + [FALL]) * around.count("{}")
    assert [each.text.strip() for each in statement.clauses] == expected
    assert all(len(each.text) == each.end for each in statement.clauses), "places in a clause are those in the statement"
    names = [f"r{number}" for number in range(len(statement.clauses))]
    last = [name for name, each in zip(names, statement.clauses, strict=True) if each.text.strip() == FALL]
    assert written(statement, (0, len(text)), names) == around.replace(" ", blank + " ", 3).replace("{}", "{}").format(*last)


@given(st.sampled_from(RELATIONS), st.sampled_from(AROUND))
def test_a_statement_answers_as_its_parts_do(relation: str, around: str) -> None:
    found = rows(around.replace("{}", relation.format(FALL, ALL)))
    source = TICKS.filter(pa.compute.less(TICKS["ts"], 4)) if "WHERE" in relation else TICKS
    source = cep.match(source, ALL) if "{1}" in relation else source
    assert found == rows(around.replace("{}", "falls"), falls=cep.match(source, FALL))


FRAGMENTS = [
    *"();,'\"`$[]{}", "--", "/*", "*/", "\n", " ", "a", "SELECT", "FROM", "WITH", "RECURSIVE", "AS", "LATERAL", "MATCH_RECOGNIZE", FALL,
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS)).map(" ".join), st.sampled_from(["duckdb", "spark"]))
def test_any_text_is_taken_apart_or_refused(text: str, dialect: str) -> None:
    try:
        statement = take_apart(text, dialect)
    except cep.CepError:
        return
    names = [f"r{number}" for number in range(len(statement.clauses))]
    assert written(statement, (0, len(text)), []) == text
    assert sum(text.count(each.text.strip()) > 0 for each in statement.clauses) == len(names)
    assert "DEFINE D" not in written(statement, (0, len(text)), names) or text.count(FALL) > len(names)
