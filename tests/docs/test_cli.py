"""The commands that docs/cli.md shows print what it says that they do."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from gpu_cep.cli import main
from tests.cli.forms import put_in

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cli.md"
# Commands with these need a shell; of those with the last two alone, only what stands from them on.
OF_A_SHELL = re.compile(r"[|<>]")
# These do not: of our commands another one reads the first, or they are given a file.
READ_BY_OURS = re.compile(r"^(gpu-cep .*?) 2>/dev/null \| (gpu-cep .*)$")
GIVEN_A_FILE = re.compile(r"^(gpu-cep .*) <(\S+)$")
BEHIND = re.compile(r"^(gpu-cep (?:'[^']*'|[^'|<>])*?) ([|>](?!.*gpu-cep).*)$")


def shown() -> list[tuple[str, str]]:
    """Each command of the page with the output that stands below it, and its exit code in brackets if it is not 0."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    parts = [part for block in blocks for part in block.split("$ ") if part]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def run_here(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints that is run in this process, which spares the time that Python and numba take to start."""
    program, *arguments = shlex.split(os.path.expandvars(command))
    assert program == "gpu-cep"
    code = main(arguments)
    found = capsys.readouterr()
    return found.out + found.err + (f"[{code}]\n" if code else "")


def held_by_stdin(command: str) -> tuple[str, bytes] | None:
    """Return the command that reads what another one of ours writes, or a file, and what that is; None if it reads neither."""
    if (given := GIVEN_A_FILE.match(command)) is not None:
        return given[1], Path(given[2]).read_bytes()
    if (piped := READ_BY_OURS.match(command)) is None:
        return None
    with redirect_stdout(TextIOWrapper(BytesIO())) as written, redirect_stderr(StringIO()):
        assert main(shlex.split(piped[1])[1:]) == 0
        written.flush()
        return piped[2], written.buffer.getvalue()


def run_in_shell(command: str, folder: Path, given: str = "") -> str:
    """Return what a command prints in a shell that knows gpu-cep, on a terminal that is wide enough; it is given a text to read."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "kernels", ROOT / "spark_glue")))
    environment = os.environ | {"PYTHONPATH": path, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "COLUMNS": "200"}
    shell = ["bash", "-c", f"set -o pipefail; {command}"]
    run = subprocess.run(shell, cwd=folder, env=environment, input=given, capture_output=True, text=True, timeout=300)
    return run.stdout + run.stderr + (f"[{run.returncode}]\n" if run.returncode else "")


def test_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PWD", str(tmp_path))
    program = tmp_path / "bin" / "gpu-cep"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpu_cep.cli "$@"\n')
    program.chmod(0o755)
    checker = doctest.OutputChecker()
    commands = shown()
    assert len(commands) > 10
    for command, expected in commands:
        needs_shell = OF_A_SHELL.search(re.sub(r"'[^']*'", "", command))
        if (held := held_by_stdin(command)) is not None:
            put_in(monkeypatch, held[1])
            found = run_here(held[0], capsys)
        elif (piped := BEHIND.match(command)) is not None:
            found = run_in_shell(f"cat {piped[2]}", tmp_path, run_here(piped[1], capsys))
        else:
            found = run_in_shell(command, tmp_path) if needs_shell else run_here(command, capsys)
        assert checker.check_output(expected, found, doctest.ELLIPSIS), f"$ {command}\n{found}"


def test_every_command_has_its_row() -> None:
    from gpu_cep.cli.commands import app

    named = {each.name or each.callback.__name__ for each in app.registered_commands if each.callback}
    rows = set(re.findall(r"^\| `(\w+) ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == named
