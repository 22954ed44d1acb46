"""Convert results into other libraries' tables, with exact types, and without a copy where that works."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from gpu_cep.engine.input.readable import check_zones
from gpu_cep.errors import EngineUnavailable


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

    return _with_known_zones(pl.DataFrame)


def _duckdb() -> Callable[[pa.Table], Any]:
    import duckdb

    return duckdb.from_arrow


def _with_known_zones(convert: Callable[[pa.Table], Any]) -> Callable[[pa.Table], Any]:
    """Return `convert` with a check of the zones of times, which these libraries look up: EventError if one is unknown."""

    def checked(table: pa.Table) -> Any:
        check_zones(table.schema)
        return convert(table)

    return checked


FRAMES: dict[str, Callable[[], Callable[[pa.Table], Any]]] = {"pandas": _pandas, "polars": _polars, "duckdb": _duckdb}
