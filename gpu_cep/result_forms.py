"""Hand results over in the form that the caller asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from gpu_cep.choices import Result
from gpu_cep.errors import LESS_MEMORY, Diagnostic, MatchLimitExceeded, PatternError, UnsupportedError, ending_in, nearest

if TYPE_CHECKING:
    import pyarrow as pa

RESULTS = get_args(Result)


def result_form(result: object, output: str) -> Callable[[pa.Table], Any]:
    """Return the function that turns a table into what `result` and `output` ask for."""
    if result not in RESULTS:
        message = f"result={result!r} is unknown; expected one of {', '.join(RESULTS)}"
        raise PatternError([Diagnostic(message, hint=nearest(str(result), RESULTS))])
    if output == "compressed":
        return _compressed(result)
    if result in ("arrow", "reader"):
        return lambda table: table
    if result != "cudf":
        from gpu_cep.engine.output.frames import frame_maker

        return frame_maker(str(result))
    from gpu_cep.engine.input.device.cudf import require_cudf, to_cudf
    from gpu_cep.engine.output.cudf_types import in_types_of_cudf

    require_cudf()
    return lambda table: to_cudf(in_types_of_cudf(table))


def _compressed(result: object) -> Callable[[pa.Table], Any]:
    from gpu_cep.engine.compressed.compressed import Compressed

    if result != "arrow":
        raise UnsupportedError([Diagnostic(f"output='compressed' is not supported with result={result!r}; supported: arrow")])
    return Compressed


def handed_over(found: pa.Table, hand_over: Callable[[pa.Table], Any]) -> Any:
    """Return a result in the form that the caller asks for."""
    with ending_in(MatchLimitExceeded, f"handing over the result of {found.num_rows:,} rows", LESS_MEMORY):
        return hand_over(found)
