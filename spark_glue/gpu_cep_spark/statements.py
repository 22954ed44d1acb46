"""Answer statements of SQL in which MATCH_RECOGNIZE stands: gpu_match finds its rows, and Spark does the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from gpu_cep.choices import TimeUnit
from gpu_cep.errors import Diagnostic, EventError, PatternError, UnsupportedError
from gpu_cep.sql_statements import Clause, Statement, input_of, places_in, refuse_relation, take_apart, with_queries, written
from gpu_cep_spark.matching import gpu_match
from gpu_cep_spark.narrowing.pushdown import quote

# How statements begin that may have queries listed before them.
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "INSERT"})


def answer_on_spark(statement: str, session: SparkSession, tables: Mapping[str, DataFrame], time_unit: TimeUnit | None) -> DataFrame:
    """Return the DataFrame of a statement; `tables` are DataFrames by their names in it.

    `time_unit`: what a bare number counts in each clause.

    Raises
    ------
    PatternSyntaxError, PatternError, UnsupportedError
        A clause has an error, or the relation that it reads.
    pyspark.errors.PySparkException
        Spark finds another error in the statement.
    EventError
        A table is no DataFrame.
    """
    _check(session, tables)
    read = take_apart(statement, "spark")
    if read.clauses or tables:
        _refuse_views(read)
    if tables and not _QUERIES.issuperset(read.words[:1]):
        hint = "table.createOrReplaceTempView(name) names a DataFrame for statements of every kind"
        raise UnsupportedError([Diagnostic(f"sql() takes DataFrames by name in queries, not in {read.words[0]} …", hint=hint)])
    given = {f"table_{number}": table for number, table in enumerate(tables.values())}
    # Spark puts names for DataFrames where a text has their keywords in braces, and forgets these names by itself
    queries = [f"{_plain(quote(name))} AS (SELECT * FROM {{{key}}})" for name, key in zip(tables, given, strict=True)]
    found: dict[str, DataFrame] = {}
    for number, clause in enumerate(read.clauses):
        rows = _rows(session, read, clause, queries, given | found)
        with places_in(read.text):
            found[f"rows_{number}"] = gpu_match(rows, clause.text, time_unit=time_unit)
    names = _in_braces(found)
    if not queries and not names:
        return session.sql(statement)
    if not queries:
        return _ask(session, written(read, (0, len(statement)), names, _plain), found)
    return _ask(session, with_queries(read, queries, names, _plain), given | found)


def _ask(session: Any, query: str, known: Mapping[str, DataFrame]) -> DataFrame:
    """Return Spark's answer to a query that names DataFrames in braces."""
    answer: DataFrame = session.sql(query, **known)
    return answer


def _refuse_views(read: Statement) -> None:
    """Raise UnsupportedError for a statement that keeps a query, whose DataFrames Spark knows by name only while it reads the query."""
    kept = read.words[:1] == ("CACHE",) or (read.words[:1] == ("CREATE",) and "VIEW" in read.words)
    if kept:
        message = f"{read.words[0]} … AS cannot keep a query with MATCH_RECOGNIZE or with DataFrames in it"
        hint = "sql(…).createOrReplaceTempView(name) and .cache() keep a result; CREATE TABLE … AS writes it"
        raise UnsupportedError([Diagnostic(message, hint=hint)])


def _rows(session: SparkSession, read: Statement, clause: Clause, queries: Sequence[str], known: Mapping[str, DataFrame]) -> DataFrame:
    """Return the rows of the relation before a clause, or raise PatternError that shows the clause and says why there are none."""
    found = {name: frame for name, frame in known.items() if name.startswith("rows_")}
    query = input_of(read, clause, _in_braces(found), _plain if known else str)
    if queries:
        query = f"WITH {', '.join(queries)} SELECT * FROM ({query})"
    try:
        rows = _ask(session, query, known)
        # a client of Spark Connect learns of errors with the schema
        _ = rows.schema
    except AnalysisException as fault:
        raise refuse_relation(read, clause, _told(fault)) from fault
    return rows


def _told(fault: AnalysisException) -> str:
    """Return what Spark says of an error, without the query, which is not as the user has written it."""
    return str(fault.getMessage() or fault).split(" SQLSTATE")[0].split(";")[0].splitlines()[0]


def _in_braces(names: Mapping[str, Any]) -> list[str]:
    return [f"{{{name}}}" for name in names]


def _plain(text: str) -> str:
    """Return a text as Spark reads it as it is beside names in braces."""
    return text.replace("{", "{{").replace("}", "}}")


def _check(session: object, tables: Mapping[str, object]) -> None:
    if not hasattr(session, "sql") or not hasattr(session, "conf"):
        raise PatternError(f"spark= takes a session of Spark, not {session!r}")
    for name, table in tables.items():
        if not isinstance(table, DataFrame):
            kind = f"{type(table).__module__}.{type(table).__qualname__}"
            raise EventError(f"table {name}: sql(…, spark=…) takes DataFrames, not {kind}; spark.createDataFrame makes one")
