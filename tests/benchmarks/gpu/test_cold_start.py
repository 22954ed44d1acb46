"""The first query on a card, timed part by part in a process of its own."""

from __future__ import annotations

import subprocess
import time

import pyarrow as pa
import pytest

from benchmarks.gpu import cold_start, first_query
from gpu_cep import api
from gpu_cep.engine.phase_one import engine_choice


@pytest.fixture
def asked(monkeypatch):
    """The queries that are asked, by processes that run in this one; the card is nowhere."""
    queries, bytecode = [], list[str]()
    cold_start._bytecode.cache_clear()

    def match(events: pa.Table, query: str, **keywords: object) -> None:
        queries.append((len(events), query, keywords))

    def run(command: list[str], env: dict[str, str], **options: object) -> subprocess.CompletedProcess[str]:
        assert command[1:3] == ["-m", "benchmarks.gpu.first_query"]
        assert env["NUMBA_CACHE_DIR"] != env["CUPY_CACHE_DIR"]
        assert env["PYTHONDONTWRITEBYTECODE"] == ""
        bytecode.append(env["PYTHONPYCACHEPREFIX"])
        said: list[str] = []
        monkeypatch.setattr("builtins.print", said.append)
        first_query.main(command[3:])
        return subprocess.CompletedProcess(command, 0, said[0])

    monkeypatch.setattr(api, "match", match)
    monkeypatch.setattr(engine_choice, "require_device", lambda: time.sleep(0.01))
    monkeypatch.setattr(subprocess, "run", run)
    yield queries
    # of one query that is not timed, and one that is
    assert len(bytecode) == 2
    assert bytecode[0] == bytecode[1]
    cold_start._bytecode.cache_clear()


def test_a_question_is_asked_twice_and_each_part_timed(asked):
    found = cold_start.first_query("stocks")
    assert (found.question, found.card >= 0.01, found.imports > 0) == ("stocks", True, True)
    question = cold_start.QUESTIONS["stocks"]
    keywords = {"engine": "gpu", "partition_by": question.key, "algorithm": "auto", "output": "count"}
    assert asked[2:] == [(cold_start.EVENTS, question.text(cold_start.EVENTS), keywords)] * 2
    assert len(found.cells()) == 6
