"""The command line over files: what goes in and out, exit codes and what stderr says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest

from gpu_cep import Compressed, PatternError, match
from gpu_cep.cli import main
from gpu_cep.cli.told_options import tell_options
from tests.cli.forms import read_ipc

EVENTS = pa.table(
    {
        "time": [1, 2, 3, 4, 5, 6],
        "line": ["x", "x", "y", "x", "y", "y"],
        "kind": ["A", "B", "A", "C", "C", "B"],
        "v": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
)
QUERY = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS low, b.v AS high"
OPTIONS = ["--timestamp", "time", "--partition-by", "line", "--type-column", "kind"]
EXPECTED = [
    {"line": "x", "match_start": 1, "match_end": 2, "low": 1.0, "high": 2.0},
    {"line": "y", "match_start": 3, "match_end": 6, "low": 3.0, "high": 6.0},
]


@pytest.fixture
def pattern(tmp_path: Path) -> Path:
    path = tmp_path / "pattern.cep"
    path.write_text(QUERY)
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.parquet"
    pa.parquet.write_table(EVENTS, path)
    return path


def write_ipc(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    ("suffix", "write", "read"),
    [
        (".parquet", pa.parquet.write_table, pa.parquet.read_table),
        (".csv", pa.csv.write_csv, pa.csv.read_csv),
        (".arrow", write_ipc, read_ipc),
    ],
)
def test_match_reads_and_writes_by_suffix(tmp_path, pattern, capsys, suffix, write, read):
    events, target = tmp_path / f"events{suffix}", tmp_path / f"matches{suffix}"
    write(EVENTS, events)
    assert main(["match", str(pattern), str(events), "-o", str(target), *OPTIONS]) == 0
    assert read(target).to_pylist() == EXPECTED
    assert "2 rows" in capsys.readouterr().out


def test_match_passes_its_options_on(tmp_path, pattern, events):
    target = tmp_path / "count.parquet"
    assert main(["match", str(pattern), str(events), "-o", str(target), *OPTIONS, "--output", "count"]) == 0
    counts = pa.parquet.read_table(target).to_pylist()
    assert sum(row["count"] for row in counts) == 2


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--strategy", "strict_contiguity"], 2),
        (["--strategy", "robust_skip_till_next_match"], 4),
        (["--strategy", "skip_till_any_match"], 7),
        (["--strategy", "skip_till_any_match", "--after-match", "skip_past_last"], 2),
        (["--strategy", "skip_till_any_match", "--after-match", "skip_to_next"], 2),
    ],
)
def test_every_strategy_and_after_match(tmp_path, pattern, events, capsys, options, count):
    target, partitioned = tmp_path / "count.csv", ["--timestamp", "time", "--type-column", "kind", "--output", "count"]
    pattern.write_text("PATTERN SEQ(A a, OR(B b, C c))")
    assert main(["match", str(pattern), str(events), "-o", str(target), *partitioned, *options]) == 0
    assert pa.csv.read_csv(target)["count"].to_pylist() == [count]
    capsys.readouterr()
    assert main(["explain", str(pattern), str(events), *partitioned[:4], *options]) == 0
    explained = capsys.readouterr().out
    assert all(choice in explained for choice in options[1::2])


@pytest.mark.parametrize("option", ["--strategy", "--after-match"])
def test_an_unknown_choice_is_told_with_the_known_ones(pattern, events, capsys, option):
    assert main(["explain", str(pattern), str(events), option, "every"]) == 2
    assert "skip_" in capsys.readouterr().err


def test_match_and_explain_take_an_engine(tmp_path, pattern, events, capsys):
    target = tmp_path / "matches.arrow"
    assert main(["match", str(pattern), str(events), "-o", str(target), *OPTIONS, "--engine", "cpu", "--gpu-memory", "2GB"]) == 0
    assert read_ipc(target).to_pylist() == EXPECTED
    capsys.readouterr()
    assert main(["explain", str(pattern), str(events), *OPTIONS, "--engine", "cpu"]) == 0
    assert "engine     cpu: engine='cpu'" in capsys.readouterr().out


def test_a_size_that_is_none_is_a_pattern_error(tmp_path, pattern, events, capsys):
    assert main(["match", str(pattern), str(events), "-o", str(tmp_path / "out.arrow"), *OPTIONS, "--gpu-memory", "lots"]) == 1
    assert "gpu_memory must be a number of bytes" in capsys.readouterr().err


def test_max_matches_is_an_error_of_its_own(tmp_path, pattern, events, capsys):
    target = tmp_path / "matches.parquet"
    assert main(["match", str(pattern), str(events), "-o", str(target), *OPTIONS, "--max-matches", "1"]) == 4
    assert "more than --max-matches 1 matches" in capsys.readouterr().err
    assert not target.exists()


def test_a_syntax_error_is_shown_with_a_caret(tmp_path, pattern, events, capsys):
    pattern.write_text("PATTERN SEQ(A a, B b\nWITHIN 5")
    assert main(["match", str(pattern), str(events), "-o", str(tmp_path / "out.parquet")]) == 1
    message = capsys.readouterr().err
    assert "line 2, column 1" in message
    assert "  WITHIN 5\n  ^" in message


def test_an_unknown_attribute_is_a_pattern_error_with_a_suggestion(tmp_path, pattern, events, capsys):
    pattern.write_text("PATTERN SEQ(A a, B b) WHERE a.vv > 1 WITHIN 5")
    assert main(["match", str(pattern), str(events), "-o", str(tmp_path / "out.parquet"), *OPTIONS]) == 1
    message = capsys.readouterr().err
    assert "^^^^" in message
    assert "did you mean 'v'?" in message


def test_null_timestamps_are_an_event_error(tmp_path, pattern, capsys):
    events = tmp_path / "events.parquet"
    pa.parquet.write_table(EVENTS.set_column(0, "time", pa.array([1, None, 3, 4, 5, 6])), events)
    assert main(["match", str(pattern), str(events), "-o", str(tmp_path / "out.parquet"), *OPTIONS]) == 3
    assert "time" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["events.xlsx", "missing.parquet"])
def test_unreadable_events_are_an_event_error_that_names_the_file(tmp_path, pattern, capsys, name):
    assert main(["match", str(pattern), str(tmp_path / name), "-o", str(tmp_path / "out.parquet")]) == 3
    assert name in capsys.readouterr().err


def test_a_missing_pattern_file_is_a_usage_error(tmp_path, events, capsys):
    assert main(["match", str(tmp_path / "none.cep"), str(events), "-o", str(tmp_path / "out.parquet")]) == 2
    assert "none.cep" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "PATTERN is empty; expected a file with the query's text, or the text itself in quotes"),
        (" ", "PATTERN is empty; expected"),
        ("none.cep", "cannot read the pattern none.cep: there is no such file; expected a file with the query's text, or the text itself"),
        ("PATTERN", "cannot read the pattern PATTERN: there is no such file; expected"),
        (".", "cannot read the pattern .: it is a folder; expected"),
        ("{events}", "{events} names events, where PATTERN is expected"),
        ("{events}.cep", "cannot read the pattern {events}.cep: it is not UTF-8; expected"),
        ("x" * 5_000, ": File name too long; expected"),
    ],
)
def test_what_is_no_pattern_is_told_with_what_is_expected(events, capsys, given, told):
    Path(f"{events}.cep").write_bytes(b"\xff")
    assert main(["match", given.format(events=events), str(events)]) == 2
    assert told.format(events=events) in capsys.readouterr().err


@pytest.mark.parametrize("command", [["match"], ["explain"], ["validate"], ["plot", "-o", "x.svg"], ["bench"]])
@pytest.mark.parametrize(
    "swapped",
    [
        ("{events}", QUERY),
        ("{events}", "{pattern}"),
        ("{folder}", QUERY),
        ("{folder}/*.csv", "{pattern}"),
        ("s3://bucket/events", "{pattern}"),
        ("-", QUERY),
    ],
)
def test_events_before_the_pattern_are_a_usage_error(tmp_path, pattern, events, capsys, command, swapped):
    names = {"events": events, "pattern": pattern, "folder": tmp_path}
    assert main([*command, *(each.format(**names) for each in swapped)]) == 2
    assert capsys.readouterr().err == f"gpu-cep: PATTERN comes first, then EVENTS: gpu-cep {command[0]} PATTERN EVENTS\n"


@pytest.mark.parametrize(("cut", "suffix"), [((0, 6), ".csv"), ((2, 3), ".csv"), ((3,), ".parquet")])
def test_several_files_are_one_table(tmp_path, pattern, events, capsys, cut, suffix):
    pattern.write_bytes(b"\xef\xbb\xbf" + pattern.read_bytes())
    names, write = [], pa.parquet.write_table if suffix == ".parquet" else pa.csv.write_csv
    table = EVENTS.set_column(3, "v", EVENTS["v"].cast(pa.int64()))
    pa.parquet.write_table(table, events)
    for begin, end in zip((0, *cut), (*cut, EVENTS.num_rows), strict=True):
        names.append(str(tmp_path / f"part-{len(names)}{suffix}"))
        write(table.slice(begin, end - begin), names[-1])
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "own.cep").write_bytes(pattern.read_bytes())
    assert main(["match", str(pattern), str(events), *OPTIONS]) == main(["match", str(pattern), *names, *OPTIONS]) == 0
    whole = capsys.readouterr().out
    assert whole == 2 * whole[: len(whole) // 2] != ""
    assert (
        main(["match", *names, "--rules", str(rules), *OPTIONS]) == main(["match", *names, "-", "--rules", str(rules), *OPTIONS]) - 2 == 0
    )
    assert capsys.readouterr().err == "gpu-cep: - is stdin, beside which no other events are read\n"
    assert main(["match", str(pattern), *names, "--rules", str(rules)]) == 2
    assert "--rules stands for PATTERN" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["from 2020.csv", "pattern of prices.csv"])
def test_events_may_be_named_as_a_query_begins(tmp_path, pattern, capsys, name):
    pa.csv.write_csv(EVENTS, tmp_path / name)
    for query in (str(pattern), QUERY):
        assert main(["match", query, str(tmp_path / name), *OPTIONS, "--output", "indices", "--json"]) == 0
        assert capsys.readouterr().out.count("\n") == 2
    assert main(["validate", "PATTERN x RETURN x.pq", str(tmp_path / "events.txt")]) == 3


def test_an_unknown_target_format_is_a_usage_error(tmp_path, pattern, events, capsys):
    assert main(["match", str(pattern), str(events), "-o", str(tmp_path / "out.xlsx"), *OPTIONS]) == 2
    assert "out.xlsx" in capsys.readouterr().err


def test_explain_prints_the_plan(pattern, events, capsys):
    assert main(["explain", str(pattern), str(events), *OPTIONS]) == 0
    assert "skip_till_next_match" in capsys.readouterr().out


def test_explain_may_run_the_query(pattern, events, capsys):
    assert main(["explain", str(pattern), str(events), *OPTIONS, "--run", "--algorithm", "nfab"]) == 0
    assert "nfab in one batch of 4 events\n    took" in capsys.readouterr().out
    assert main(["explain", str(pattern), "--run"]) == 1
    assert "a query runs over events" in capsys.readouterr().err


def test_explain_needs_no_events(pattern, capsys):
    assert main(["explain", str(pattern)]) == 0
    assert "SEQ" in capsys.readouterr().out


def test_the_nodes_of_a_compressed_result_are_written(pattern: Path, events: Path, tmp_path: Path) -> None:
    target = tmp_path / "nodes.parquet"
    assert main(["match", str(pattern), str(events), "-o", str(target), "--output", "compressed", *OPTIONS]) == 0
    assert Compressed.from_table(pa.parquet.read_table(target)).count() == 2


SITUATIONS = pa.table({"time": range(6), "a": [True, True, True, True, False, False], "b": [False, False, True, True, True, True]})


@pytest.fixture
def situations(tmp_path: Path) -> Path:
    path = tmp_path / "situations.parquet"
    pa.parquet.write_table(SITUATIONS, path)
    return path


@pytest.mark.parametrize(("options", "detected"), [([], []), (["--detect", "final"], []), (["--detect", "early"], [4])])
def test_situations_may_be_detected_early(tmp_path, pattern, situations, options, detected):
    """B is open at the end."""
    pattern.write_text("DEFINE A AS a, B AS b PATTERN A overlaps B")
    target = tmp_path / "matches.parquet"
    assert main(["match", str(pattern), str(situations), "-o", str(target), "--timestamp", "time", *options]) == 0
    assert pa.parquet.read_table(target)["detected_at"].to_pylist() == detected


@pytest.mark.parametrize(("options", "count"), [([], 1), (["--allen", "paper"], 1), (["--allen", "1983"], 0)])
def test_finishes_may_be_read_as_of_1983(tmp_path, pattern, situations, capsys, options, count):
    pattern.write_text("DEFINE A AS a, B AS a AND b PATTERN A finishes B")
    target, timestamp = tmp_path / "count.csv", ["--timestamp", "time"]
    assert main(["match", str(pattern), str(situations), "-o", str(target), "--output", "count", *timestamp, *options]) == 0
    assert pa.csv.read_csv(target)["count"].to_pylist() == [count]
    capsys.readouterr()
    assert main(["explain", str(pattern), str(situations), *timestamp, *options]) == 0
    assert "A finishes B" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "ended"), [([], 4), (["--gap", "2"], 4), (["--gap", "0.5"], None), (["--gap", "0"], None)])
def test_a_gap_may_end_situations(tmp_path, pattern, situations, options, ended):
    pattern.write_text("DEFINE A AS a, B AS NOT b PATTERN A started-by B RETURN end(A) AS ended")
    target = tmp_path / "matches.parquet"
    assert main(["match", str(pattern), str(situations), "-o", str(target), "--timestamp", "time", *options]) == 0
    assert pa.parquet.read_table(target)["ended"].to_pylist() == ([] if ended is None else [ended])


def test_a_gap_that_is_none_is_a_pattern_error(tmp_path, pattern, situations, capsys):
    pattern.write_text("DEFINE A AS a, B AS NOT b PATTERN A started-by B")
    target = str(tmp_path / "matches.parquet")
    assert main(["match", str(pattern), str(situations), "-o", target, "--timestamp", "time", "--gap", "soon"]) == 1
    assert "--gap soon is no length of time" in capsys.readouterr().err


TIMED = EVENTS.set_column(0, "time", EVENTS["time"].cast(pa.timestamp("s")).cast(pa.timestamp("ms")))


@pytest.fixture
def timed(tmp_path: Path) -> str:
    path = tmp_path / "timed.parquet"
    pa.parquet.write_table(TIMED, path)
    return str(path)


@pytest.mark.parametrize("command", ["match", "explain", "validate"])
def test_a_number_over_times_needs_a_unit(pattern, timed, capsys, command):
    """The message is that of the library, which names the option."""
    with pytest.raises(PatternError) as caught:
        match(TIMED, QUERY, timestamp="time", partition_by="line", type_column="kind")
    assert main([command, str(pattern), timed, *OPTIONS]) == 1
    assert tell_options(str(caught.value)) in capsys.readouterr().err
    assert "time is timestamp[ms]: the window 5 needs a unit" in str(caught.value)


@pytest.mark.parametrize(("unit", "count"), [("s", 2), ("minutes", 2), ("ms", 0)])
def test_the_time_unit_says_what_a_number_counts(tmp_path, pattern, timed, unit, count):
    target = tmp_path / "matches.parquet"
    assert main(["match", str(pattern), timed, "-o", str(target), *OPTIONS, "--time-unit", unit]) == 0
    assert pa.parquet.read_table(target).num_rows == count


@pytest.mark.parametrize(("option", "known"), [("--detect", "early"), ("--allen", "1983")])
def test_situations_have_choices_of_their_own(pattern, events, situations, capsys, option, known):
    assert main(["explain", str(pattern), str(situations), option, "other"]) == 2
    assert known in capsys.readouterr().err
    assert main(["explain", str(pattern), str(events), *OPTIONS, option, known]) == 1
    assert "is for interval patterns" in capsys.readouterr().err


METER = "DEFINE Low AS v < 4, Late AS v > 3 PATTERN Low meets Late"


@pytest.fixture
def meter(tmp_path: Path) -> list[str]:
    """The arguments of a query over situations and its events, one match in each of two streams."""
    pattern, events = tmp_path / "meter.cep", tmp_path / "meter.parquet"
    pattern.write_text(METER)
    lines = [EVENTS.set_column(1, "line", pa.array([line] * 6)) for line in "xy"]
    pa.parquet.write_table(pa.concat_tables(lines), events)
    return [str(pattern), str(events), "--timestamp", "time", "--partition-by", "line", "--detect", "early"]


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_plot_draws_a_match_by_suffix(tmp_path, meter, capsys, suffix, start):
    target = tmp_path / f"match{suffix}"
    assert main(["plot", *meter, "-o", str(target), "--match", "1", "--margin", "0.5"]) == 0
    assert target.read_bytes().startswith(start)
    assert capsys.readouterr().out == f"{target}: match 1\n"


def test_plot_draws_the_first_match_and_passes_its_options_on(tmp_path, meter, pattern, events):
    target, other = tmp_path / "first.svg", tmp_path / "other.svg"
    for options in ([], ["--match", "0"], ["--margin", "0.25"], ["--max-matches", "2"], ["--engine", "cpu"]):
        assert main(["plot", *meter, "-o", str(target)]) == 0
        assert main(["plot", *meter, "-o", str(other), *options]) == 0
        assert target.read_bytes() == other.read_bytes()
    for options in (["--match", "1"], ["--margin", "2"]):
        assert main(["plot", *meter, "-o", str(other), *options]) == 0
        assert target.read_bytes() != other.read_bytes()
    assert main(["plot", str(pattern), str(events), "-o", str(other), *OPTIONS, "--strategy", "strict_contiguity"]) == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--match", "2"], 4, "there is no match 2 to draw: the query finds 2, numbered from 0"),
        (["--match", "-1"], 1, "match must be a whole number"),
        (["--max-matches", "1"], 4, "1"),
        (["--algorithm", "lazy_tree"], 1, "lazy_tree"),
        (["--timestamp", "tim"], 1, "did you mean 'time'?"),
    ],
)
def test_what_plot_cannot_draw_has_an_exit_code(tmp_path, meter, capsys, options, code, message):
    target = tmp_path / "match.png"
    assert main(["plot", *meter, "-o", str(target), *options]) == code
    assert message in capsys.readouterr().err
    assert not target.exists()


def test_an_unknown_picture_format_is_told_before_events_are_read(tmp_path, meter, capsys):
    assert main(["plot", meter[0], "missing.parquet", "-o", str(tmp_path / "match.gif")]) == 2
    assert "match.gif from its suffix; expected one of .png, .svg, .pdf" in capsys.readouterr().err
    assert main(["plot", meter[0], "missing.parquet", "-o", str(tmp_path / "match.png")]) == 3
