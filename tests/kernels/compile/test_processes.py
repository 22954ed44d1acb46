"""Processes that compile beside the one that started them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpu_cep_kernels.compile import processes

TOLD = """
import os
import sys
from pathlib import Path
from gpu_cep_kernels.compile import notices
Path(sys.argv[1]).write_text(f"{sys.argv[2:]} {os.environ[notices.QUIET]}")
"""


@pytest.fixture
def module(monkeypatch, tmp_path) -> str:
    """A module that writes what it was given, in a folder of the path."""
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "told_arguments.py").write_text(TOLD)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    return "told_arguments"


def arguments_of(module: str, tmp_path: Path) -> str:
    """What a process of that module was given."""
    told = tmp_path / "told"
    with processes.start_process(module, (told, 1, "a b")) as started:
        assert started.wait(60) == 0
    return told.read_text()


def test_a_module_runs_with_its_arguments_and_says_nothing(module, tmp_path):
    assert arguments_of(module, tmp_path) == "['1', 'a b'] 1"


def test_what_is_no_text_in_the_path_is_left_out(module, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [Path("nowhere"), *sys.path])
    assert arguments_of(module, tmp_path) == "['1', 'a b'] 1"


def test_a_module_of_the_working_folder_is_not_taken_for_the_librarys(module, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    (tmp_path / f"{module}.py").write_text("raise SystemExit(1)")
    monkeypatch.chdir(tmp_path)
    assert arguments_of(module, tmp_path) == "['1', 'a b'] 1"
