"""The command ``gpu-cep``: match a pattern file against an events file, draw a match, or explain how the pattern will be answered.

Exit codes: 0 done, 2 the pattern is at fault, 3 the events are, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from gpu_cep import api
from gpu_cep.analysis.bind_intervals import ALLEN, DETECT
from gpu_cep.errors import CepError, DiagnosedError, EventError
from gpu_cep.lang.ast import STRATEGIES
from gpu_cep.plan.settings import AFTER_MATCH, ALGORITHMS, ENGINES, OUTPUTS

PATTERN_FAULT = 2
EVENT_FAULT = 3
OTHER_FAULT = 1

OPTIONS = (
    *("timestamp", "partition_by", "order_by", "type_column", "time_unit"),
    *("strategy", "ties", "after_match", "detect", "allen", "gap", "engine", "gpu_memory", "algorithm"),
)
MATCH_OPTIONS = (*OPTIONS, "output", "max_matches")
PLOT_OPTIONS = (*OPTIONS, "match", "margin", "max_matches")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with `argv` (default: the process's own arguments) and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        text = arguments.pattern.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return _failed(f"cannot read the pattern: {error}", OTHER_FAULT)
    try:
        run: Callable[[str, argparse.Namespace], None] = arguments.run
        run(text, arguments)
    except DiagnosedError as error:
        return _failed("\n".join(each.render(text) for each in error.diagnostics), PATTERN_FAULT)
    except EventError as error:
        return _failed(str(error), EVENT_FAULT)
    except (CepError, OSError, pa.ArrowException) as error:
        return _failed(str(error), OTHER_FAULT)
    return 0


def _failed(message: str, code: int) -> int:
    print(f"gpu-cep: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpu-cep", description="Complex event processing over columnar files.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    match = commands.add_parser("match", help="write the matches of a pattern")
    match.add_argument("pattern", type=Path, help="file with the query's text")
    match.add_argument("events", type=Path, help="events: .parquet, .csv, .arrow or .feather")
    match.add_argument("-o", dest="target", type=Path, required=True, metavar="OUT", help="result, in the format of its suffix")
    _add_options(match)
    match.add_argument("--output", choices=OUTPUTS, help="what the result holds")
    match.add_argument("--max-matches", type=int, metavar="N", help="fail rather than find more than N matches")
    match.set_defaults(run=_match)

    plot = commands.add_parser("plot", help="draw a match as a timeline (needs the extra 'plot')")
    plot.add_argument("pattern", type=Path, help="file with the query's text")
    plot.add_argument("events", type=Path, help="events: .parquet, .csv, .arrow or .feather")
    plot.add_argument("-o", dest="target", type=Path, required=True, metavar="OUT", help="picture: .png, .svg or .pdf")
    _add_options(plot)
    plot.add_argument("--match", type=int, metavar="N", help="which match, in the order of results (default: 0, the first)")
    plot.add_argument("--margin", type=float, metavar="SHARE", help="what is drawn on either side, as a share of the match (default: 0.25)")
    plot.add_argument("--max-matches", type=int, metavar="N", help="fail rather than find more than N matches")
    plot.set_defaults(run=_plot)

    explain = commands.add_parser("explain", help="print how a pattern will be answered")
    explain.add_argument("pattern", type=Path, help="file with the query's text")
    explain.add_argument("events", type=Path, nargs="?", help="events whose columns the pattern is bound to")
    _add_options(explain)
    explain.add_argument("--run", dest="running", action="store_true", help="run it, and say what was expected and what came")
    explain.set_defaults(run=_explain)
    return parser


def _add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--timestamp", metavar="COLUMN", help="the timestamp (default: ts)")
    command.add_argument("--partition-by", action="append", metavar="COLUMN", help="a stream key; repeat for several")
    command.add_argument("--order-by", action="append", metavar="COLUMN", help="what breaks ties in time; repeat for several")
    command.add_argument("--type-column", metavar="COLUMN", help="the event type (default: type)")
    command.add_argument("--time-unit", choices=("s", "ms", "us", "ns"), help="the unit of a timestamp that is a bare number")
    command.add_argument("--strategy", choices=STRATEGIES, help="the event selection strategy")
    command.add_argument("--ties", choices=("strict", "position"), help="whether events of equal time are ordered")
    command.add_argument("--after-match", choices=AFTER_MATCH, help="which of the matches are kept (default: all)")
    command.add_argument("--detect", choices=DETECT, help="when matches of situations are reported (default: final)")
    command.add_argument("--allen", choices=ALLEN, help="how 'finishes' is read: as TPStream prints it (default), or as Allen did in 1983")
    command.add_argument("--gap", metavar="LENGTH", help="the longest time without events that ends no situation: ticks, or 30 seconds, …")
    command.add_argument("--engine", choices=ENGINES, help="where phase 1 runs (default: auto)")
    command.add_argument("--algorithm", choices=ALGORITHMS, help="how matches are found (default: auto)")
    command.add_argument("--gpu-memory", metavar="SIZE", help="how much of a GPU's memory to use: bytes, or 8GB, 512MiB, …")


def _given(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """The options that were written on the command line; the rest keep the API's defaults."""
    values = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _match(text: str, arguments: argparse.Namespace) -> None:
    write = _writer(arguments.target)
    matches = api.match(arguments.events, text, **_given(arguments, MATCH_OPTIONS))
    table = matches.table if arguments.output == "compressed" else matches
    write(table, arguments.target)
    print(f"{arguments.target}: {table.num_rows:,} rows")


def _plot(text: str, arguments: argparse.Namespace) -> None:
    from gpu_cep.plotting.timeline import checked_suffix, plot

    checked_suffix(arguments.target)
    plot(arguments.events, text, **_given(arguments, PLOT_OPTIONS)).save(arguments.target)
    print(f"{arguments.target}: match {arguments.match or 0:,}")


def _explain(text: str, arguments: argparse.Namespace) -> None:
    print(api.explain(text, arguments.events, run=arguments.running, **_given(arguments, OPTIONS)))


def _writer(path: Path) -> Callable[[pa.Table, Path], None]:
    if path.suffix not in WRITERS:
        raise CepError(f"cannot tell the format of {path} from its suffix; expected one of {', '.join(WRITERS)}")
    return WRITERS[path.suffix]


def _write_ipc(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".parquet": pa.parquet.write_table,
    ".pq": pa.parquet.write_table,
    ".csv": pa.csv.write_csv,
    ".arrow": _write_ipc,
    ".feather": _write_ipc,
}

if __name__ == "__main__":
    sys.exit(main())
