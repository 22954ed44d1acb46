"""Convert results into other libraries' tables, with exact types, and without a copy where that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.readable import check_zones
from gpu_cep.errors import Diagnostic, EngineUnavailable, UnsupportedError

Faults = tuple[type[BaseException], ...]

_HINT = "name other columns in columns= or RETURN, or take result='arrow'"


def frame_maker(library: str) -> Callable[[pa.Table], Any]:
    """Return the function that converts an Arrow table into a table of `library`, a key of :data:`FRAMES`.

    Raises
    ------
    EngineUnavailable
        The library is not installed.
    """
    try:
        return FRAMES[library]()
    except ImportError as fault:
        raise EngineUnavailable(f"result={library!r} needs {library}, which is not installed: pip install {library}") from fault


def _pandas() -> Callable[[pa.Table], Any]:
    import pandas as pd

    # columns stay Arrow's, because pandas' own types would turn numbers with NULLs into floats
    return _with_known_zones(lambda table: table.to_pandas(types_mapper=pd.ArrowDtype))


def _polars() -> Callable[[pa.Table], Any]:
    import polars as pl
    from polars.exceptions import PanicException, PolarsError

    return _with_known_types("polars", _with_known_zones(pl.DataFrame), (PolarsError, PanicException))


def _duckdb() -> Callable[[pa.Table], Any]:
    import duckdb

    return _with_known_types("duckdb", duckdb.from_arrow, (duckdb.Error,))


def _with_known_zones(convert: Callable[[pa.Table], Any]) -> Callable[[pa.Table], Any]:
    """Return `convert` with a check of the zones of times, which these libraries look up: EventError if one is unknown."""

    def checked(table: pa.Table) -> Any:
        check_zones(table.schema)
        return convert(table)

    return checked


def _with_known_types(library: str, convert: Callable[[pa.Table], Any], faults: Faults) -> Callable[[pa.Table], Any]:
    """Return `convert` with an UnsupportedError in place of the library's `faults`; it names the column that the library refuses."""

    def checked(table: pa.Table) -> Any:
        try:
            return convert(table)
        except faults as fault:
            refused = [field for number, field in enumerate(table.schema) if not _takes(convert, table.select([number]), faults)]
            what = f"column {refused[0].name!r} of type {refused[0].type}" if refused else str(fault)
            raise UnsupportedError([Diagnostic(f"{what} is not supported with result={library!r}", hint=_HINT)]) from fault

    return checked


def _takes(convert: Callable[[pa.Table], Any], table: pa.Table, faults: Faults) -> bool:
    """Return whether a table is converted without one of the faults."""
    try:
        convert(table)
    except faults:
        return False
    return True


FRAMES: dict[str, Callable[[], Callable[[pa.Table], Any]]] = {"pandas": _pandas, "polars": _polars, "duckdb": _duckdb}
