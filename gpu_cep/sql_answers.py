"""Answer statements of SQL in which MATCH_RECOGNIZE stands: its rows are matched here, the rest is for Spark or DuckDB."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from gpu_cep.analysis.faults import Faults
from gpu_cep.analysis.windows import check_time_unit
from gpu_cep.api import match
from gpu_cep.errors import CepError, EngineUnavailable, EventError, PatternError, ending_in, list_choices, nearest
from gpu_cep.queries.runs import as_reader
from gpu_cep.sql_statements import Clause, Statement, bare_name, input_of, places_in, refuse_command, refuse_relation, take_apart, written

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from gpu_cep.choices import TimeUnit

# Variables of Python are no tables; times have the zone in which they are given.
_SETTINGS = ("SET python_enable_replacements = false", "SET TimeZone = 'UTC'")
# How DuckDB begins the line of the query that an error is about.
_EXCERPT = "\nLINE "
# What it says of a table that is not there; the nearest that it names may be one of its own catalog.
_ABSENT = re.compile(r"(?s)(?<=Table with name )(.+?)( does not exist)!.*")


@overload
def sql(
    statement: str, tables: Mapping[str, Any] | None = None, /, *, spark: None = None, time_unit: TimeUnit | None = None, **named: Any
) -> pa.Table: ...
@overload
def sql(
    statement: str,
    tables: Mapping[str, DataFrame] | None = None,
    /,
    *,
    spark: SparkSession,
    time_unit: TimeUnit | None = None,
    **named: DataFrame,
) -> DataFrame: ...
@overload
def sql(
    statement: str, tables: SparkSession, /, *, spark: None = None, time_unit: TimeUnit | None = None, **named: DataFrame
) -> DataFrame: ...


def sql(
    statement: str,
    tables: Mapping[str, Any] | SparkSession | None = None,
    /,
    *,
    spark: SparkSession | None = None,
    time_unit: TimeUnit | None = None,
    **named: Any,
) -> pa.Table | DataFrame:
    """Answer a statement of SQL with any number of ``MATCH_RECOGNIZE (…)`` in it.

    Each stands behind a table, a view or a subquery in FROM, also in a join, in
    WITH, or in a subquery. The relation before it is evaluated, matched by
    :func:`match` or :func:`gpu_match`, and the result stands in its place. All
    else is left as it is written to Spark, if `spark` is given, or to DuckDB.

    Examples
    --------
    >>> import gpu_cep as cep
    >>> import pyarrow as pa
    >>> ticks = pa.table({"ts": [1, 2, 3, 4], "symbol": ["A", "A", "A", "A"], "price": [5, 3, 4, 2]})
    >>> cep.sql('''
    ...     SELECT m.symbol, m.low FROM ticks MATCH_RECOGNIZE (
    ...       PARTITION BY symbol ORDER BY ts
    ...       MEASURES LAST(D.price) AS low
    ...       PATTERN (S D U)
    ...       DEFINE D AS price < PREV(price), U AS price > PREV(price)
    ...     ) AS m WHERE m.low < 4''', ticks=ticks).to_pylist()
    [{'symbol': 'A', 'low': 3}]

    Parameters
    ----------
    statement
        One statement, in Spark's SQL or in DuckDB's. What stands in the
        brackets of MATCH_RECOGNIZE is SQL's standard (docs/row-patterns.md).
    tables
        Tables by their names in the statement. Without `spark`: anything that
        :func:`match` takes as events, such as a pyarrow.Table, a frame of
        pandas or polars, or a path. With `spark`: DataFrames. A session may
        stand in this place, too.
    spark
        The session whose tables and views the statement names; classic or
        Spark Connect.
    time_unit
        The unit of a bare number in every MATCH_RECOGNIZE, as for :func:`match`.
        ``WITHIN 5 MINUTES`` needs it where times are numbers, and ``WITHIN 5``
        where they are dates or timestamps.
    **named
        Further tables by their names, as keywords. A table that is called like
        a parameter stands in `tables`.

    Returns
    -------
    pyarrow.Table or DataFrame
        A DataFrame with `spark`; no job runs until an action needs its rows.

    Raises
    ------
    PatternSyntaxError, PatternError, UnsupportedError
        The statement has an error; the message shows its place. Errors that
        only Spark finds are Spark's own. PatternError also says what is wrong
        with `spark`, `time_unit` or the names of tables.
    EventError
        A table cannot be read.
    EngineUnavailable
        sqlglot, DuckDB or PySpark is not installed.
    """
    session: Any = tables if spark is None and hasattr(tables, "sql") and hasattr(tables, "conf") else spark
    given = _by_name(None if session is tables else tables, named)
    _check_unit(time_unit)
    if session is not None:
        from gpu_cep_spark.statements import answer_on_spark

        return answer_on_spark(statement, session, given, time_unit)
    with ending_in(CepError, "answering sql()", "give it fewer rows or columns"):
        read = take_apart(statement, "duckdb")
        refuse_command(read)
        return _answer_on_duckdb(read, given, time_unit)


def _by_name(tables: object, named: Mapping[str, Any]) -> dict[str, Any]:
    """Return all tables by their names, or raise PatternError for a name that is no text or is given twice, in whatever case."""
    given = {} if tables is None else tables
    if not isinstance(given, Mapping):
        raise PatternError(f"sql() takes tables by name, sql(statement, name=table), not {type(tables).__name__}")
    for name in given:
        if not isinstance(name, str) or not name:
            raise PatternError(f"sql() takes tables by names that are text, not {name!r}")
        if name in named:
            raise PatternError(f"table {name} is given twice: in the mapping, and as a keyword")
    found = {**given, **named}
    known: dict[str, str] = {}
    for name in found:
        before = known.setdefault(name.lower(), name)
        if before != name:
            raise PatternError(f"tables {before} and {name} have one name in SQL, which does not tell upper from lower case")
    return found


def _check_unit(time_unit: object) -> None:
    """Raise PatternError unless `time_unit` is None or a unit of time."""
    if time_unit is None:
        return
    if not isinstance(time_unit, str):
        hint = "a table of this name is given as sql(statement, {'time_unit': table})"
        raise PatternError(f"time_unit= takes a unit of time such as 's', not {type(time_unit).__name__}; {hint}")
    faults = Faults()
    check_time_unit(time_unit, faults)
    faults.raise_any(None)


def _answer_on_duckdb(statement: Statement, tables: Mapping[str, Any], time_unit: TimeUnit | None) -> pa.Table:
    tables = {name: _read_once(name, table) if _is_named(name, statement.text) else table for name, table in tables.items()}
    given = {name.lower(): table for name, table in tables.items()}
    with _connection() as connection:
        names: list[str] = []
        for clause in statement.clauses:
            whole = None if clause.name is None else given.get(bare_name(clause.name).lower())
            rows = _evaluated(connection, statement, clause, names, tables) if whole is None else whole
            name = _unused(f"match_recognize_{len(names) + 1}", statement.text, given)
            connection.register(name, _matched(statement, clause, rows, time_unit))
            names.append(name)
        return _run(connection, written(statement, (0, len(statement.text)), names), tables)


def _matched(statement: Statement, clause: Clause, rows: Any, time_unit: TimeUnit | None) -> pa.Table:
    """Return what a clause returns for the rows of its relation; errors show the place in the statement."""
    with places_in(statement.text):
        found: pa.Table = match(rows, clause.text, time_unit=time_unit)
        return found


def _evaluated(
    connection: duckdb.DuckDBPyConnection, statement: Statement, clause: Clause, names: list[str], tables: Mapping[str, Any]
) -> pa.Table:  # fmt: skip
    """Return the rows of the relation before a clause, or raise PatternError that shows the clause and says why there are none."""
    try:
        return _run(connection, input_of(statement, clause, names), tables)
    except PatternError as fault:
        raise refuse_relation(statement, clause, str(fault)) from fault


def _run(connection: duckdb.DuckDBPyConnection, query: str, tables: Mapping[str, Any]) -> pa.Table:
    """Return DuckDB's answer to a query, for which the tables that it names are read."""
    import duckdb
    import pyarrow as pa

    for name, table in tables.items():
        if _is_named(name, query):
            connection.register(name, _read(name, table))
    try:
        answer = connection.sql(query)
        # COPY and its like answer nothing
        return pa.table({}) if answer is None else answer.to_arrow_table()
    except duckdb.ProgrammingError as fault:
        raise PatternError(_told(fault, tables)) from fault
    except duckdb.Error as fault:
        raise EventError(_told(fault, tables)) from fault


def _is_named(name: str, query: str) -> bool:
    """Return whether a name may stand in a query, where a quote within a quoted name is doubled."""
    written_so = re.escape(name).replace('"', '""?')
    return re.search(rf"(?<!\w){written_so}(?!\w)", query, re.IGNORECASE) is not None


def _read_once(name: str, table: Any) -> Any:
    """Return batches that come once as a table, which a statement may name several times; and any other table as it is."""
    return _read(name, table) if isinstance(table, Iterator) else table


def _told(fault: Exception, tables: Collection[str]) -> str:
    """Return what DuckDB says of an error, without its excerpt of the query, which is not as the user has written it.

    Of a table that is not there it says which of the given `tables` has the nearest name.
    """
    said = f"DuckDB: {str(fault).partition(_EXCERPT)[0].strip()}"
    return _ABSENT.sub(lambda absent: f"{absent[1]}{absent[2]}; {nearest(absent[1], tables) or _given(absent[1], tables)}", said)


def _given(absent: str, tables: Collection[str]) -> str:
    """Return which tables are given, or how one of the name `absent` would be."""
    return f"given are {list_choices(absent, tables)}" if tables else f"no table is given: tables are given by name, {absent}=…"


def _read(name: str, table: Any) -> pa.Table:
    """Return a table by its name in the statement as Arrow's, or raise EventError that names it."""
    from gpu_cep.engine.input.read_tables import read_events, to_host
    from gpu_cep.engine.input.sources import source_of

    try:
        table = as_reader(table)
        source = source_of(table)
        return to_host(read_events(table)) if source is None else source.read(source.schema.names)
    except EventError as fault:
        raise EventError(f"table {name}: {fault}") from fault


def _unused(name: str, text: str, taken: Collection[str]) -> str:
    """Return a name that stands nowhere in a text, and is none of those that are taken, which are in lower case."""
    while name in text.lower() or name in taken:
        name += "_"
    return name


@contextmanager
def _connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB of its own in memory, or raise EngineUnavailable."""
    try:
        import duckdb
    except ImportError as fault:
        missing = "sql() without spark= needs DuckDB, which is not installed: pip install 'gpu_cep[sql]'"
        raise EngineUnavailable(missing) from fault
    with duckdb.connect() as connection:
        for setting in _SETTINGS:
            connection.execute(setting)
        yield connection
