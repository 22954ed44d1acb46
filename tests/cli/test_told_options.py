"""Messages of the command line name its options, not Python's keywords."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_cep.cli import main, options
from gpu_cep.cli.told_options import OPTIONS, tell_options

HELD = "ts,kind,v\n1,a,1\n2,b,2\n"


def test_every_option_of_a_query_is_known() -> None:
    assert set(OPTIONS) == {*options.QUERY, *options.BOUNDS, *options.OUTPUT, *options.COLUMNS}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("use engine='auto' or engine='cpu'", "use --engine auto or --engine cpu"),
        ("say by time_unit= (ns, us)", "say by --time-unit (ns, us)"),
        ("more than max_matches=1,000 matches", "more than --max-matches 1000 matches"),
        ("gap='5 foo' is no length", "--gap '5 foo' is no length"),
        ("ties='' is unknown", "--ties '' is unknown"),
        ("nulls='drop' (--nulls drop on the command line)", "nulls='drop' (--nulls drop on the command line)"),
        ("partition_by=['a'] contradicts", "partition_by=['a'] contradicts"),
        ("result='pandas', x.engine='cpu', my_engine='cpu'", "result='pandas', x.engine='cpu', my_engine='cpu'"),
    ],
)
def test_keywords_become_options(message: str, told: str) -> None:
    assert tell_options(message) == told


@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [
        (["PATTERN SEQ(a x, b y)"], 1, "the column that --type-column names"),
        (["PATTERN SEQ(x, y) WITHIN 5 seconds"], 1, "hint: say the length of one tick by --time-unit (ns"),
        (["PATTERN x WHERE x.engine='cpu'"], 1, "  PATTERN x WHERE x.engine='cpu'\n"),
        (["PATTERN x", "--max-matches", "1"], 4, "more than --max-matches 1 matches"),
        (["PATTERN x", "--algorithm", "brute_force", "--output", "compressed"], 1, "--output compressed is not supported with --algorithm"),
    ],
)
def test_errors_name_options(tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], code: int, told: str) -> None:
    (tmp_path / "events.csv").write_text(HELD)
    assert main(["match", asked[0], str(tmp_path / "events.csv"), *asked[1:]]) == code
    assert told in capsys.readouterr().err
