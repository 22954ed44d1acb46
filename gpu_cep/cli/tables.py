"""Print tables: aligned on a terminal, and everywhere else as lines with tabs between the values."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_cep.cli.whole_files import PIPE, write_whole
from gpu_cep.display.cells import json_lines, tab_lines, texts

TERMINAL_ROWS = 20  # rows that a terminal shows unless the user says how many
_LONGEST = 400  # characters of a value on a terminal
_APART = 2  # blanks between two columns

# The column of numbers of matches.
_COUNT = "count"


def print_rows(table: pa.Table, noun: str, limit: int | None) -> None:
    """Print the first `limit` rows (None: 20 on a terminal, else all); on a terminal also how many there are.

    A count that is the only value is printed alone. `noun` is what a row stands for.
    """
    if table.column_names == [_COUNT]:
        write_whole(PIPE, lambda target: target.write(f"{table.column(_COUNT)[0]}\n".encode()))
        return
    is_terminal = _is_terminal()
    bound = (TERMINAL_ROWS if is_terminal else table.num_rows) if limit is None else limit
    print_table(table.slice(0, bound), noun)
    if is_terminal:
        print(_told(table.num_rows, bound, noun))
    else:
        _tell_rest(table.num_rows, bound, noun)


def print_json_lines(table: pa.Table, noun: str, limit: int | None) -> None:
    """Print each of the first `limit` rows (None: of all) as a JSON object on its own line."""
    bound = table.num_rows if limit is None else limit
    write_whole(PIPE, lambda target: target.writelines(json_lines(table.slice(0, bound))))
    _tell_rest(table.num_rows, bound, noun)


def print_table(table: pa.Table, noun: str = "row") -> None:
    """Print all rows: aligned or, if they are too wide for the terminal, one below the other; with tabs to what is no terminal."""
    if not _is_terminal():
        write_whole(PIPE, lambda target: target.writelines(tab_lines(table)))
        return
    console = Console()
    columns = [[_cut(text or "") for text in texts(column.combine_chunks()).to_pylist()] for column in table.columns]
    if _width(table.column_names, columns) <= console.width:
        console.print(_grid(table.schema, columns))
        return
    for number, row in enumerate(zip(*columns, strict=True)):
        for line in _block(f"{noun} {number:,}", table.column_names, row):
            console.print(line, soft_wrap=True)


def _is_terminal() -> bool:
    """Return whether stdout is a terminal; it may be closed."""
    return sys.stdout is not None and sys.stdout.isatty()


def count_of(number: int, noun: str) -> str:
    """Return a number with what is counted: ``1 match``, ``20 matches``."""
    return f"{number:,} {noun if number == 1 else noun + ('es' if noun.endswith('ch') else 's')}"


def _tell_rest(number: int, bound: int, noun: str) -> None:
    """Print to stderr how many rows there are if not all are printed: stdout holds rows only."""
    if bound < number:
        print(_told(number, bound, noun), file=sys.stderr)


def _told(number: int, bound: int, noun: str) -> str:
    """Return a sentence that says how many rows there are, and how many of them are printed if not all."""
    more = "" if bound >= number else f", the first {bound:,} of them shown" if bound else ", none of them shown"
    return count_of(number, noun) + more


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _width(names: list[str], columns: list[list[str]]) -> int:
    """Return the characters that a line of the table needs."""
    widest = (max(map(cell_len, (name, *column))) for name, column in zip(names, columns, strict=True))
    return sum(widest) + _APART * (len(names) - 1)


def _grid(schema: pa.Schema, columns: list[list[str]]) -> Table:
    grid = Table(box=box.SIMPLE_HEAD, padding=(0, _APART - 1, 0, 0), show_edge=False, pad_edge=False)
    for field in schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        grid.add_column(Text(field.name), no_wrap=True, justify="right" if is_number else "left")
    for row in zip(*columns, strict=True):
        grid.add_row(*map(Text, row))
    return grid


def _block(title: str, names: list[str], row: tuple[str, ...]) -> Iterator[Text]:
    """Yield the lines of one row: a title, and then a line for each value behind its name."""
    yield Text(title, style="bold")
    widest = max(map(cell_len, names))
    for name, text in zip(names, row, strict=True):
        yield Text(f"  {name}{' ' * (widest - cell_len(name) + _APART)}{text}")
