"""The live examples: alarms behind asyncio, and frauds from a log that survive a crash."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import gpu_cep as cep

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return import_module("live_kafka")


@pytest.fixture
def behind_asyncio(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return import_module("live_asyncio")


def test_an_alarm_goes_out_while_nothing_comes(behind_asyncio: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    found = asyncio.run(behind_asyncio.watch(speed=100))
    assert [(alarm["machine"], alarm["match_end"]) for alarm in found] == [("press", 9)]
    assert capsys.readouterr().out == "press is at 91.0 °C since 9 s, and has not cooled down\n"


def frauds_of_a_batch(kafka: ModuleType) -> list[str]:
    rows = [json.loads(value) for partition in kafka.payments() for value in partition]
    found = cep.match(pa.Table.from_pylist(rows).cast(kafka.SCHEMA), kafka.FRAUD)
    return sorted(f"{fraud['card']} {fraud['match_end']:%H:%M:%S} {fraud['amount']:.2f}" for fraud in found.to_pylist())


@pytest.mark.parametrize("crashes", [(), (1,), (14,), (2, 3, 4, 8)])
def test_each_fraud_is_written_once_whenever_it_crashes(kafka: ModuleType, tmp_path: Path, crashes: tuple[int, ...]) -> None:
    log, sink, state = kafka.payments(), tmp_path / "sink", tmp_path / "state"
    for polls in crashes:
        with pytest.raises(KeyboardInterrupt):
            kafka.run(kafka.Consumer(log), sink, state, crash_after=polls)
    kafka.run(kafka.Consumer(log), sink, state)
    written = sink.read_text().splitlines()
    assert len(written) > 20
    assert sorted(written) == frauds_of_a_batch(kafka)


def test_the_example_says_what_was_written(kafka: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    kafka.main()
    crashed, ended = capsys.readouterr().out.splitlines()
    assert crashed.startswith("crashed; ")
    assert ended == f"ended; {len(frauds_of_a_batch(kafka))} frauds are written"
