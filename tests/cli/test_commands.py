"""The command line: pipes, JSON, what is printed, and the commands that make, check and measure."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
import pytest
from pyarrow import fs
from rich.console import Console
from typer.main import get_command

import gpu_cep as cep
from gpu_cep.cli import main, options, progress
from gpu_cep.cli.commands import app
from gpu_cep.cli.samples import CHUNK, SAMPLES
from tests.cli.forms import EVENTS, csv_of, file_of, gzip_of, lines_of, parquet_of, put_in, semicolons_of, stream_of, zstd_of

QUERY = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS low, b.v AS high"
FOUND = [
    {"match_start": 1, "match_end": 2, "low": 1.0, "high": 2.0},
    {"match_start": 3, "match_end": 4, "low": 3.0, "high": 4.5},
]


@pytest.mark.parametrize("form", [stream_of, file_of, parquet_of, csv_of, lines_of, semicolons_of, gzip_of, zstd_of])
def test_events_may_come_from_stdin_in_any_format(monkeypatch, capsys, form):
    put_in(monkeypatch, form(EVENTS))
    assert main(["match", QUERY, "-", "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == FOUND


def test_what_stdin_holds_may_be_no_events(monkeypatch, capsys):
    put_in(monkeypatch, b"ARROW1 and nothing more")
    assert main(["match", QUERY, "-"]) == 3
    assert "cannot read stdin" in capsys.readouterr().err


def test_matches_may_go_to_stdout_as_a_stream(events, capsysbinary):
    assert main(["match", QUERY, events, "-o", "-"]) == 0
    out, err = capsysbinary.readouterr()
    assert pa.ipc.open_stream(out).read_all().equals(cep.match(EVENTS, QUERY))
    assert err == b"-: 2 rows\n"


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl.zst", ".tsv", ".arrows.gz", ".arrow.zst", ".ndjson"])
def test_matches_may_be_compressed_and_go_to_a_uri(tmp_path, events, capsys, suffix):
    target = f"file://{tmp_path}/found{suffix}"
    assert main(["match", QUERY, events, "-o", target]) == 0
    assert capsys.readouterr().out == f"{target}: 2 rows\n"
    assert main(["match", "PATTERN x RETURN x.low AS low", target, "--timestamp", "match_start", "--json"]) == 0
    assert [json.loads(line)["low"] for line in capsys.readouterr().out.splitlines()] == [1.0, 3.0]


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("found.parquet.gz", 2, "all but Parquet also with .gz or .zst behind it"),
        ("none/found.csv", 4, "cannot write none/found.csv: there is no folder none"),
        ("file:///none/found.csv", 4, "cannot write file:///none/found.csv: there is no folder /none"),
        ("github://a/b.csv", 4, "cannot write github://a/b.csv: files of github:// can only be read; expected a local file, or"),
        ("HTTPS://a/b.csv", 4, "cannot write HTTPS://a/b.csv: files of HTTPS:// can only be read"),
        ("fsspec+data://a/b.csv", 4, "files of data:// can only be read"),
        ("dbfs://a/b.csv", 4, "cannot write dbfs://a/b.csv: dbfs:// needs options, which fsspec takes from FSSPEC_DBFS_… in the"),
        ("simplecache://a/b.csv", 4, "simplecache:// needs options, which fsspec takes from FSSPEC_SIMPLECACHE_… in the environment"),
        ("dir://a/b.csv", 4, "dir:// needs options"),
        ("odd://bucket/found.csv", 4, "cannot write odd://bucket/found.csv: neither Arrow nor fsspec has a file system for odd://"),
    ],
)
def test_targets_that_cannot_be_written(capsys, target, code, told):
    assert main(["match", QUERY, "unread.csv", "-o", target]) == code
    assert told in capsys.readouterr().err


def test_a_target_without_a_folder_is_refused_before_events_are_read(tmp_path, capsys):
    for words in (["match", QUERY, "none.csv"], ["report", QUERY, "none.csv"]):
        assert main([*words, "-o", f"none/found.{'csv' if words[0] == 'match' else 'html'}"]) == 4
        assert "there is no folder none" in capsys.readouterr().err
    target = str(tmp_path / "events.csv")
    assert main(["gen", "hospital", "-o", target, "--pattern", "none/own.cep"]) == 4
    assert "there is no folder none" in capsys.readouterr().err
    assert not os.path.exists(target)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["validate", "found.csv"], "found.csv names events, where PATTERN is expected"),
        (["match", QUERY, ""], "EVENTS is empty; expected a file"),
        (["match", "", "--rules", "rules.json"], "EVENTS is empty; expected a file"),
        (["match", QUERY, "found.csv", "--on-error", "report"], "--on-error is for --rules"),
    ],
)
def test_arguments_in_wrong_places_are_refused(capsys, words, told):
    assert main(words) == 2
    assert told in capsys.readouterr().err


def test_a_mark_before_the_text_of_a_pattern_is_left_out(tmp_path, capsys):
    (tmp_path / "query.cep").write_text(QUERY, encoding="utf-8-sig")
    assert main(["validate", str(tmp_path / "query.cep")]) == 0


def test_a_file_system_that_is_not_local_is_written_in_one_go(monkeypatch):
    from gpu_cep.cli import whole_files

    system = fs.SubTreeFileSystem("", fs._MockFileSystem())
    monkeypatch.setattr(whole_files, "open_target", lambda uri: (system, "found.csv.gz"))
    with pytest.raises(ValueError, match="half way"):
        whole_files.write_whole("mock://found.csv.gz", lambda target: (target.write(b"x"), _fail()))
    assert system.get_file_info("found.csv.gz").type is fs.FileType.NotFound
    whole_files.write_whole("mock://found.csv.gz", lambda target: target.write(b"held"))
    assert system.open_input_stream("found.csv.gz", compression=None).read() == b"held"


def _fail() -> None:
    raise ValueError("half way")


@pytest.mark.parametrize("suffix", [".arrows", ".jsonl"])
def test_matches_may_be_streams_and_lines(tmp_path, events, capsys, suffix):
    target = tmp_path / f"matches{suffix}"
    assert main(["match", QUERY, events, "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"out": str(target), "rows": 2}
    if suffix == ".jsonl":
        assert [json.loads(line) for line in target.read_text().splitlines()] == FOUND
    else:
        assert main(["match", "PATTERN x RETURN x.low AS low", str(target), "--timestamp", "match_start", "--json"]) == 0
        assert [json.loads(line)["low"] for line in capsys.readouterr().out.splitlines()] == [1.0, 3.0]


def test_a_type_that_no_event_has_is_told_on_stderr(events, capsys):
    assert main(["match", "PATTERN SEQ(a x, B b) WITHIN 5", events, "--json"]) == 0
    assert capsys.readouterr() == ("", "gpu-cep: warning: no event has type 'a'; did you mean 'A'?\n")


def test_one_match_is_one_row(events, tmp_path, capsys):
    query = "PATTERN SEQ(A a, B b) WHERE a.v > 2 WITHIN 5 RETURN a.v AS low"
    assert main(["match", query, events, "-o", str(tmp_path / "found.csv")]) == 0
    assert capsys.readouterr().out.endswith("found.csv: 1 row\n")


def test_columns_and_bounds_are_passed_on(events, capsys):
    assert main(["match", "PATTERN A a", events, "--columns", "v", "--threads", "1", "--json"]) == 0
    assert [json.loads(line)["a"] for line in capsys.readouterr().out.splitlines()] == [{"v": 1.0}, {"v": 3.0}]
    assert main(["match", QUERY, events, "--max-steps", "0", "--algorithm", "nfab"]) == 4
    assert "--max-steps" in capsys.readouterr().err


def test_starts_without_a_match_are_found_too(events, tmp_path, capsys):
    query = "PATTERN SEQ(A a, B b) WHERE b.v > 3 WITHIN 2 RETURN a.v AS low"
    assert main(["match", query, events, "--timeouts", "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["kind"], each["low"], each["missing"]) for each in found] == [("match", 3.0, []), ("timeout", 1.0, ["b"])]
    assert main(["match", query, events, "--timeouts"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == 'timeout\t1\t1\t1.0\t3\t["b"]'
    assert main(["match", query, events, "--timeouts", "-o", str(tmp_path / "found.parquet")]) == 0
    assert capsys.readouterr().out.endswith("found.parquet: 2 rows\n")


def test_explain_as_json(events, capsys):
    assert main(["explain", QUERY, events, "--run", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert explained["counts"]["matches"] == 2
    assert "skip_till_next_match" in explained["text"]


def test_a_pattern_is_checked_alone_and_against_columns(tmp_path, events, capsys):
    asked = "PATTERN SEQ(A a, B b) WHERE a.w > 1"
    assert main(["validate", asked]) == 0
    assert capsys.readouterr().out == "the pattern is valid\n"
    csv = tmp_path / "events.csv"
    csv.write_bytes(csv_of(EVENTS))
    for path in (events, str(csv)):
        assert main(["validate", QUERY, path]) == 0
        assert main(["validate", asked, path]) == 1
        assert f"  {asked}\n{' ' * (2 + asked.index('a.w'))}^^^\n" in capsys.readouterr().err
    assert main(["validate", "PATTERN SEQ(A a"]) == 1
    assert main(["validate", QUERY, str(tmp_path / "none.parquet")]) == 3
    assert main(["validate"]) == 2


def test_faults_as_json_have_places(events, capsys):
    assert main(["validate", "PATTERN SEQ(A a, B b)\nWHERE a.w > 1 AND b.z = 2", events, "--json"]) == 1
    checked = json.loads(capsys.readouterr().out)
    assert checked["valid"] is False
    assert [(fault["line"], fault["column"]) for fault in checked["faults"]] == [(2, 7), (2, 19)]
    assert main(["validate", QUERY, events, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"valid": True, "faults": []}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_samples_hold_matches_of_their_query(tmp_path, capsys, name, suffix):
    target, pattern = tmp_path / f"events{suffix}", tmp_path / "pattern.cep"
    assert main(["gen", name, "-n", "20000", "-o", str(target), "--pattern", str(pattern)]) == 0
    assert pattern.read_text().rstrip() in capsys.readouterr().out
    assert main(["match", str(pattern), str(target), "--output", "count", "--json"]) == 0
    assert sum(json.loads(line)["count"] for line in capsys.readouterr().out.splitlines()) > 10


def test_a_sample_is_the_same_every_time():
    sample = SAMPLES["stocks"]
    once, again, other = (pa.concat_tables(sample.chunks(1_000, 10, seed)) for seed in (1, 1, 2))
    assert once.equals(again)
    assert not once.equals(other)


def test_chunks_of_a_sample_go_on_in_time():
    first, second = SAMPLES["machines"].chunks(CHUNK + 5, 2, 0)
    assert (first.num_rows, second.num_rows) == (CHUNK, 5)
    assert first["ts"][-1].as_py() < second["ts"][0].as_py()


def test_an_unknown_sample_is_told_with_the_known_ones(tmp_path, capsys):
    assert main(["gen", "nothing", "-o", str(tmp_path / "x.csv")]) == 2
    assert "hospital, stocks, machines" in capsys.readouterr().err


def test_bench_measures_against_reading_and_copying(events, capsys):
    assert main(["bench", QUERY, events, "--runs", "1", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert (measured["events"], measured["matches"], measured["columns"]) == (4, 2, ["ts", "type", "v"])
    assert [rate["what"] for rate in measured["rates"]] == [
        *("copy its columns", "read the file", "match, output=count", "match, output=indices"),
    ]
    assert all(rate["seconds"] > 0 and rate["events_per_second"] > 0 for rate in measured["rates"])
    assert main(["bench", QUERY, events, "--runs", "1"]) == 0
    assert "times a copy" in capsys.readouterr().out


def test_help_names_commands_and_exit_codes(capsys):
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    shown = ("match", "progress", "explain", "validate", "plot", "report", "bench", "gen", "gpu-cep gen hospital", "Exit codes")
    assert all(name in told for name in shown)


def test_how_far_starts_came_is_printed_or_written(tmp_path, capsys):
    source, target = tmp_path / "clicks.csv", tmp_path / "funnel.parquet"
    source.write_text("ts,user,type\n1,7,View\n2,8,View\n3,7,Pay\n")
    funnel = "PARTITION BY user PATTERN SEQ(View v, Pay p) WITHIN 9"
    assert main(["progress", funnel, str(source), "--json"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"user": 7, "v": 1, "p": 3, "reached": 2, "completed": True},
        {"user": 8, "v": 2, "p": None, "reached": 1, "completed": False},
    ]
    assert main(["progress", funnel, str(source)]) == 0
    assert "completed" in capsys.readouterr().out
    assert main(["progress", funnel, str(source), "-o", str(target)]) == 0
    assert pa.parquet.read_table(target)["reached"].to_pylist() == [2, 1]
    assert main(["progress", funnel, str(source), "-o", str(target), "--limit", "1"]) == 2
    assert main(["progress", f"{funnel} RETURN v.ts AS at", str(source)]) == 1


@pytest.mark.parametrize("command", ["match", "explain", "validate", "plot", "report", "bench"])
def test_options_of_queries_are_grouped(command):
    (described,) = (each for each in get_command(app).commands.values() if each.name == command)
    groups = {option.name: option.rich_help_panel for option in described.params if option.param_type_name == "option"}
    assert all(groups[name] for name in (*options.QUERY, "as_json"))
    assert (groups["timestamp"], groups["timestamp_format"]) == ("What the events are",) * 2
    assert groups.get("limit", groups["as_json"]) == groups.get("output", groups["as_json"]) == "What comes out"


def test_help_waits_for_no_compiler():
    probe = "import sys, gpu_cep.cli.commands; print(sorted({'numba', 'matplotlib', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=300, check=True).stdout == "[]\n"


def test_a_shell_completes_commands_and_choices():
    def completed(words: str, number: int) -> list[str]:
        environment = os.environ | {"_GPU_CEP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        run = subprocess.run([sys.executable, "-m", "gpu_cep.cli"], env=environment, capture_output=True, text=True, timeout=300)
        return run.stdout.split()

    assert completed("gpu-cep ma", 1) == ["match"]
    assert completed("gpu-cep match --ties ", 3) == ["strict", "position"]


def test_a_reader_that_goes_away_ends_the_command(events):
    command = f"{sys.executable} -m gpu_cep.cli gen stocks -n 200000 -o - | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert run.stdout == "4\n"
    assert "Traceback" not in run.stderr


def test_progress_is_shown_on_a_terminal_only(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=shown, force_terminal=True, width=100))
    with progress.watch("matching") as profile:
        profile.add("events", 1_000)
        profile.add("filtered", 10)
    assert list(progress.show_count("xy", "making", 2)) == ["x", "y"]
    assert "events 1,000 → filtered 10" in shown.getvalue()
    assert "making" in shown.getvalue()


def test_no_progress_is_written_into_a_file(capsys):
    with progress.watch("matching") as profile:
        profile.add("events", 1)
    assert list(progress.show_count("xy", "making", 2)) == ["x", "y"]
    assert capsys.readouterr() == ("", "")


def test_a_report_is_written(tmp_path, events, capsys):
    target = tmp_path / "report.html"
    assert main(["report", QUERY, events, "-o", str(target), "--rows", "1", "--timelines", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["matches"] == 2
    assert "the first 1 of 2 matches, and no timelines" in target.read_text(encoding="utf-8")
    assert main(["report", QUERY, events, "-o", str(tmp_path / "report.pdf")]) == 2
    assert main(["report", QUERY, events, "-o", str(tmp_path / "none" / "report.html"), "--timelines", "0"]) == 4


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<svg"), (".mmd", b"flowchart LR"), (".png", b"\x89PNG"), (".pdf", b"%PDF-")])
def test_a_plan_is_drawn_by_suffix(tmp_path, events, suffix, start):
    target = tmp_path / f"plan{suffix}"
    assert main(["explain", QUERY, events, "-o", str(target)]) == 0
    assert target.read_bytes().startswith(start)


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<svg"), (".png", b"\x89PNG")])
def test_a_waterfall_is_of_a_run(tmp_path, events, capsys, suffix, start):
    target = tmp_path / f"pruning{suffix}"
    assert main(["explain", QUERY, events, "--waterfall", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["matches"] == 2
    assert target.read_bytes().startswith(start)


def test_what_a_waterfall_cannot_be_drawn_of(tmp_path, capsys):
    assert main(["explain", QUERY, "missing.parquet", "--waterfall", str(tmp_path / "pruning.mmd")]) == 2
    assert "pruning.mmd from its suffix; expected one of .png, .svg, .pdf" in capsys.readouterr().err
    assert main(["explain", QUERY, "--waterfall", str(tmp_path / "pruning.svg")]) == 1
    assert "a query runs over events" in capsys.readouterr().err


def test_what_a_plan_cannot_be_drawn_as(tmp_path, events, capsys):
    assert main(["explain", QUERY, events, "-o", str(tmp_path / "plan.gif")]) == 2
    assert "expected one of .png, .svg, .pdf, .mmd" in capsys.readouterr().err
    assert main(["explain", QUERY, "-o", str(tmp_path / "plan.svg")]) == 1
    assert "needs the types of the events" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["match", "-h"], ["bench", "--help"]], ids=" ".join)
def test_help_has_a_short_option(capsys, words):
    assert main(words) == 0
    assert "Usage: gpu-cep" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gpu-cep {cep.__version__}\n"
