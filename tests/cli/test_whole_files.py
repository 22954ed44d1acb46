"""What ``-o`` writes is there whole or not at all: the old file survives every failure."""

from __future__ import annotations

import errno
import io
import os
import shlex
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from gpu_cep.cli import main
from gpu_cep.cli.files import WRITERS, table_target
from gpu_cep.cli.whole_files import write_whole
from gpu_cep.errors import CepError, UnsupportedError
from tests.faults.steps import Steps, each_step, failing_writes, full_disk, raising

EVENTS = pa.table({"ts": [1, 2, 3, 4], "type": list("ABAB"), "v": [1.0, 2.0, 3.0, 4.5]})
WHOLE = "PATTERN SEQ(A a, B b) WITHIN 5"
QUERY = f"{WHOLE} RETURN a.v AS low, b.v AS high"
OLD = b"what was there before"
FAULTS = {
    "the disk is full": OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "the quota is reached": OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
    "the descriptor is closed": OSError(errno.EBADF, os.strerror(errno.EBADF)),
    "Arrow fails": pa.ArrowInvalid("no"),
    "Ctrl-C": KeyboardInterrupt(),
    "memory is short": MemoryError(),
}


@pytest.fixture
def events(tmp_path: Path) -> str:
    folder = tmp_path / "events"
    folder.mkdir()
    pa.parquet.write_table(EVENTS, folder / "events.parquet")
    return str(folder / "events.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "results"
    path.mkdir()
    return path


COMMANDS = {
    **{suffix: ["match", QUERY, "EVENTS", "-o", f"TARGET{suffix}"] for suffix in WRITERS},
    "plan": ["explain", QUERY, "EVENTS", "-o", "TARGET.svg"],
    "waterfall": ["explain", QUERY, "EVENTS", "--waterfall", "TARGET.svg"],
    "report": ["report", QUERY, "EVENTS", "--timelines", "0", "-o", "TARGET.html"],
    "gen": ["gen", "hospital", "-n", "50", "-o", "TARGET.csv"],
    "query": ["gen", "hospital", "-n", "50", "-o", "OTHER.csv", "--pattern", "TARGET.cep"],
}


def filled(command: str, events: str, folder: Path) -> tuple[list[str], Path]:
    """The command's arguments, and the file that it is to write, which holds something else before."""
    names = {"EVENTS": events, "OTHER.csv": str(folder.parent / "other.csv")}
    words = [names.get(word, word.replace("TARGET", str(folder / "kept"))) for word in COMMANDS[command]]
    target = next(Path(word) for word in words if word.startswith(str(folder)))
    target.write_bytes(OLD)
    return words, target


def run(words: list[str]) -> int | str:
    try:
        return main(words)
    except (KeyboardInterrupt, MemoryError) as fault:
        return type(fault).__name__


@pytest.mark.parametrize("command", COMMANDS)
def test_the_old_file_stays_until_the_new_one_is_whole(events, folder, command):
    words, target = filled(command, events, folder)
    assert run(words) == 0
    whole = target.read_bytes()
    assert whole != OLD
    assert os.listdir(folder) == [target.name]
    target.write_bytes(OLD)
    for steps in each_step(full_disk):
        with failing_writes(folder, steps):
            code = run(words)
        assert (target.read_bytes() == OLD) == steps.reached
        assert code == (4 if steps.reached else 0)
        assert os.listdir(folder) == [target.name]
    assert steps.taken[-1] == "replace"
    assert target.read_bytes() == whole or command == "report"


@pytest.mark.parametrize("fault", FAULTS)
def test_every_kind_of_failure_leaves_the_old_file(capsys, events, folder, fault):
    words, target = filled(".csv", events, folder)
    for at in (1, 2):
        with failing_writes(folder, Steps(at, raising(FAULTS[fault]))):
            assert run(words) != 0
        told = capsys.readouterr().err
        assert "Traceback" not in told
        if fault == "memory is short":
            assert told == "gpu-cep: out of memory\n"
        if isinstance(FAULTS[fault], (OSError, pa.ArrowInvalid)):
            reason = getattr(FAULTS[fault], "strerror", None) or "no"
            assert told == f"gpu-cep: cannot write {target}: {reason}\n"
        assert target.read_bytes() == OLD
        assert os.listdir(folder) == [target.name]


def test_without_an_old_file_a_failure_leaves_none(events, folder):
    for fault in FAULTS.values():
        with failing_writes(folder, Steps(2, raising(fault))):
            assert run(["match", QUERY, events, "-o", str(folder / "new.csv")]) != 0
        assert os.listdir(folder) == []


def test_a_file_that_grows_too_large_fails(events, folder):
    """The system itself refuses to write on, as on a full disk."""
    target = folder / "events.csv"
    target.write_bytes(OLD)
    limited = (
        "import resource, sys; from gpu_cep.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "sys.exit(main(['gen', 'hospital', '-n', '20000', '-o', sys.argv[1]]))"
    )
    ran = subprocess.run([sys.executable, "-c", limited, str(target)], capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (4, f"gpu-cep: cannot write {target}: File too large\n")
    assert target.read_bytes() == OLD
    assert os.listdir(folder) == [target.name]


def test_a_full_device_is_written_directly(events, folder, capsys):
    target = folder / "full.csv"
    target.symlink_to("/dev/full")
    assert main(["match", QUERY, events, "-o", str(target)]) == 4
    assert capsys.readouterr().err == f"gpu-cep: cannot write {target}: No space left on device\n"
    assert os.readlink(target) == "/dev/full"
    assert os.listdir(folder) == ["full.csv"]


def test_columns_that_csv_cannot_hold_are_told_before_matching(monkeypatch, events, folder, capsys):
    words, target = filled(".csv", events, folder)
    words[1] = WHOLE
    with monkeypatch.context() as patched:
        patched.setattr("gpu_cep.cli.commands.api.match", lambda *_, **__: pytest.fail("it was matched"))
        assert main(words) == 1
    told = capsys.readouterr().err
    assert "cannot hold 'a' (struct), 'b' (struct)" in told
    assert "hint: RETURN single values" in told
    assert "--output events" in told
    assert all(suffix in told for suffix in WRITERS if suffix not in (".csv", ".tsv"))
    assert target.read_bytes() == OLD
    assert main([*words, "--output", "events"]) == 0
    assert pa.csv.read_csv(target).num_rows == 4


@pytest.mark.parametrize("suffix", [".csv", ".arrow", ".arrows"])
def test_what_is_read_as_a_whole_is_checked_before_matching_too(monkeypatch, folder, suffix):
    events, target = folder / f"events{suffix}", folder / "kept.csv"
    table_target(str(events)).write(EVENTS)
    target.write_bytes(OLD)
    monkeypatch.setattr("gpu_cep.cli.commands.api.match", lambda *_, **__: pytest.fail("it was matched"))
    assert main(["match", WHOLE, str(events), "-o", str(target)]) == 1
    assert target.read_bytes() == OLD


@pytest.mark.parametrize(
    ("suffix", "kind"), [(".csv", pa.list_(pa.int64())), (".jsonl", pa.month_day_nano_interval()), (".parquet", pa.struct([]))]
)
def test_a_format_is_checked_without_rows_and_before_a_file_is_opened(tmp_path, suffix, kind):
    table = pa.schema([("fits", pa.int64()), ("other", kind)]).empty_table()
    target = table_target(str(tmp_path / f"x{suffix}"))
    with pytest.raises(UnsupportedError, match=r"cannot hold 'other' \("):
        target.write(table)
    assert os.listdir(tmp_path) == []


def test_a_file_takes_its_name_when_all_of_it_is_on_disk(monkeypatch, folder):
    target, synced = folder / "kept.txt", []
    target.write_bytes(OLD)

    def sync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        if len(synced) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(CepError, match=r"kept\.txt: Input/output error"):
        write_whole(str(target), lambda file: file.write(b"new"))
    assert target.read_bytes() == OLD
    write_whole(str(target), lambda file: file.write(b"new"))
    assert synced == [3, 3]
    assert os.listdir(folder) == ["kept.txt"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o755])
def test_permissions_are_kept(folder, mode):
    target, seen = folder / "kept.txt", []
    target.write_bytes(OLD)
    target.chmod(mode)

    def write(file: Any) -> None:
        (fresh,) = (path for path in folder.iterdir() if path != target)
        assert fresh.name.startswith(".")
        seen.append(stat.S_IMODE(fresh.stat().st_mode))
        file.write(b"new")

    write_whole(str(target), write)
    assert seen == [mode]
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.read_bytes() == b"new"


def test_a_new_file_has_the_permissions_that_the_process_gives(folder):
    umask = os.umask(0o027)
    try:
        write_whole(str(folder / "new.txt"), lambda file: file.write(b"new"))
    finally:
        os.umask(umask)
    assert stat.S_IMODE((folder / "new.txt").stat().st_mode) == 0o640


def test_a_file_that_may_not_be_written_is_not_replaced(monkeypatch, folder):
    target = folder / "kept.txt"
    target.write_bytes(OLD)
    # who runs the tests may be allowed everything
    monkeypatch.setattr(os, "access", lambda path, asked: asked != os.W_OK)
    with pytest.raises(CepError, match=r"kept\.txt: Permission denied"):
        write_whole(str(target), lambda file: file.write(b"new"))
    assert target.read_bytes() == OLD


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_file_is_replaced(events, folder, there):
    """The temporary file is on the side of the link's target, which may be on another disk."""
    target, link = folder / "kept.csv", folder / "links" / "link.csv"
    link.parent.mkdir()
    link.symlink_to("../kept.csv")
    if there:
        target.write_bytes(OLD)
    with failing_writes(folder, Steps(2, raising(FAULTS["Ctrl-C"]))):
        assert run(["match", QUERY, events, "-o", str(link)]) != 0
    assert target.exists() == there
    assert main(["match", QUERY, events, "-o", str(link)]) == 0
    assert os.readlink(link) == "../kept.csv"
    assert pa.csv.read_csv(target).num_rows == 2
    assert sorted(os.listdir(folder)) == ["kept.csv", "links"]
    assert os.listdir(link.parent) == ["link.csv"]


def test_a_named_pipe_is_written_directly(events, folder):
    target, got = folder / "pipe.csv", []
    os.mkfifo(target)
    reader = threading.Thread(target=lambda: got.append(target.read_bytes()))
    reader.start()
    assert main(["match", QUERY, events, "-o", str(target)]) == 0
    reader.join()
    assert got[0].count(b"\n") == 3
    assert stat.S_ISFIFO(target.stat().st_mode)


# the fast suite writes to a pipe by another name
@pytest.mark.parametrize("where", ["file", pytest.param("pipe", marks=pytest.mark.full)])
def test_stdout_by_its_name_is_written_where_it_stands(events, folder, where):
    """What is printed afterwards follows what was written."""
    link = folder / "out.csv"
    link.symlink_to("/dev/stdout")
    into = "| cat" if where == "pipe" else f"> {folder / 'got'}; cat {folder / 'got'}"
    command = f'echo before; "{sys.executable}" -m gpu_cep.cli match "{QUERY}" {events} -o {link}'
    ran = subprocess.run(["bash", "-c", f"{{ {command}; }} {into}"], capture_output=True, text=True, timeout=300)
    first, *lines, last = ran.stdout.splitlines()
    assert (first, len(lines), last) == ("before", 3, f"{link}: 2 rows")
    assert ran.stderr == ""


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".arrows"])
def test_events_may_be_replaced_by_their_result(folder, suffix):
    events = folder / f"events{suffix}"
    table_target(str(events)).write(EVENTS)
    query = "PATTERN x RETURN x.ts AS ts, x.type AS type, x.v AS v"
    for _ in range(2):
        assert main(["match", f"{query}", str(events), "-o", str(events), "--columns", "v"]) == 0
        assert main(["match", QUERY, str(events), "-o", str(folder / "found.jsonl")]) == 0
        assert (folder / "found.jsonl").read_text().count("\n") == 2


@pytest.mark.parametrize("name", ["none/new.csv", "."])
def test_where_no_file_can_be_the_reason_is_told(events, folder, capsys, name):
    with pytest.raises(CepError, match=r"cannot write .*: (No such file|Is a directory)"):
        write_whole(str(folder / name), lambda file: file.write(b"new"))
    assert os.listdir(folder) == []


# the fast suite fills the stdout of each command in this process
@pytest.mark.parametrize(
    ("into", "reason"), [(">&-", "it is closed"), pytest.param(">/dev/full", "No space left on device", marks=pytest.mark.full)]
)
def test_a_stdout_that_takes_nothing_is_an_error(events, into, reason):
    command = f'"{sys.executable}" -m gpu_cep.cli match "{QUERY}" {events} -o - {into}'
    # an unbuffered stdout has nothing left to write when the process ends
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ran = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stderr) == (4, f"gpu-cep: cannot write stdout: {reason}\n")


@pytest.mark.parametrize(
    "words",
    ["explain 'PATTERN x'", "validate 'PATTERN x'", "validate {1} --json", "match 'PATTERN x' {0}", "--version", "gen stocks -n 9 -o {0}"],
)
@pytest.mark.parametrize("buffered", [True, False])
def test_a_full_stdout_is_told_by_every_command(monkeypatch, capsys, events, tmp_path, words, buffered):
    faulty = tmp_path / "faulty.cep"
    faulty.write_text("PATTERN SEQ(")
    # it is closed as when a process ends, which writes what is left in its buffer
    with io.TextIOWrapper(open("/dev/full", "wb", -1 if buffered else 0), write_through=not buffered) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(shlex.split(words.format(events, faulty))) == 4
    assert capsys.readouterr().err == "gpu-cep: cannot write stdout: No space left on device\n"
