"""What the first query of a kind takes on a card with nothing on disk; without a card, what it compiles.

``python -m benchmarks.gpu.cold_start [--questions NAME …]`` asks each question of :mod:`benchmarks.gpu.questions` in a new process, with
empty folders for what numba and CuPy compile. Printed is the wall time from the start of the process: to import, to open the card, to
answer, all together; and what the same query takes again. A query before them is not timed: it leaves the bytecode of all that is
imported, as pip does when it installs a package.

Without a card it asks each question over few events on a device that the CPU plays, and keeps with what types of arguments each kernel
was launched. Then a new process compiles these for the newest architecture, one after the other, to PTX and to machine code. Printed are
the seconds of processor time, those of imports among them, and the kernel that takes longest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numba
from pyarrow import feather

from benchmarks.gpu.counting import CountingDevice
from benchmarks.gpu.device_code import CAPABILITIES, machine_code, ptx_of
from benchmarks.gpu.questions import OUTPUT, QUESTIONS, Question
from benchmarks.record import pages
from gpu_cep.engine.answers import answer
from gpu_cep_kernels.compile.ahead import card_capability
from gpu_cep_kernels.compile.jit import Kernel
from tests.gpu.strict_arrays import opened

EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class ColdStart:
    """The kernels that a question launches, and the seconds of a processor to import numba-cuda and the engine, and to compile all."""

    question: str
    kernels: int
    imports: float
    compiling: float
    slowest: str
    slowest_seconds: float

    def cells(self) -> list[str]:
        """Return the cells of a row of the table."""
        seconds = (self.imports, self.compiling, self.imports + self.compiling)
        return [self.question, str(self.kernels), *(f"{each:.1f}" for each in seconds), f"{self.slowest}, {self.slowest_seconds:.1f}"]


class _NotingDevice(CountingDevice):
    """A device that the CPU plays, which notes with what types each kernel was launched."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: dict[tuple[str, str], tuple[Kernel[..., Any], Any]] = {}

    def launch(self, kernel: Kernel[..., Any], size: int, *arguments: Any) -> None:
        """Call the CPU's kernel once, and note it."""
        types = numba.void(numba.int64, numba.typeof(opened(arguments)))
        self.launched.setdefault((kernel.__name__, str(types)), (kernel, types))
        super().launch(kernel, size, *arguments)


def measure(name: str) -> ColdStart:
    """Return what a question takes; to be called in a process that has compiled nothing for a card."""
    import_module("numba.cuda")
    imports = time.process_time()
    spent: list[tuple[float, str]] = []
    for kernel, types in launched(QUESTIONS[name]):
        begin = time.process_time()
        machine_code(ptx_of(kernel, types, CAPABILITIES[-1]), CAPABILITIES[-1])
        spent.append((time.process_time() - begin, kernel.__name__))
    longest, slowest = max(spent)
    return ColdStart(name, len(spent), imports, sum(seconds for seconds, _ in spent), slowest, longest)


def launched(question: Question) -> list[tuple[Kernel[..., Any], Any]]:
    """Return the kernels that a question launches, each with its types, in the order of their first launches."""
    device, table = _NotingDevice(), question.events(EVENTS)
    with patch("gpu_cep.engine.phase_one.engine_choice.open_device", lambda: device):
        answer(question.plan(EVENTS, table.schema, "gpu"), table)
    return list(device.launched.values())


@dataclass(frozen=True, slots=True)
class FirstQuery:
    """The seconds of wall time of a question's first query on a card, part by part, and those of a second one."""

    question: str
    imports: float
    card: float
    answer: float
    again: float

    def cells(self) -> list[str]:
        """Return the cells of a row of the table."""
        seconds = (self.imports, self.card, self.answer, self.imports + self.card + self.answer)
        return [self.question, *(f"{each:.1f}" for each in seconds), f"{self.again:.3f}"]


def first_query(name: str) -> FirstQuery:
    """Return what a question takes in a new process, which finds no kernel compiled."""
    return FirstQuery(name, *_ask(name, _bytecode().name))


@cache
def _bytecode() -> tempfile.TemporaryDirectory[str]:
    """Return a folder with the bytecode of what a query imports: one that is not timed has filled it."""
    folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    _ask(next(iter(QUESTIONS)), folder.name)
    return folder


def _ask(name: str, bytecode: str) -> list[float]:
    """Return the seconds that a question takes in a new process, part by part; the bytecode of modules is in a folder of its own."""
    question = QUESTIONS[name]
    keywords = {"partition_by": question.key, "algorithm": question.algorithm, "output": OUTPUT}
    # processes that compile ahead may end a little later than the query
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        events = Path(folder) / "events.arrow"
        feather.write_feather(question.events(EVENTS), events, compression="uncompressed")
        asked = json.dumps({"query": question.text(EVENTS), "keywords": keywords})
        environment = os.environ | {name: str(Path(folder) / name) for name in ("NUMBA_CACHE_DIR", "CUPY_CACHE_DIR")}
        # wherever packages lie, and whether or not bytecode may be written there
        environment |= {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-m", "benchmarks.gpu.first_query", str(events), asked, str(time.time())]
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [float(seconds) for seconds in json.loads(run.stdout)]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure the first query on a card, or without one what it compiles.")
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), metavar="NAME", help="some instead of all")
    asked = parser.parse_args(argv).questions
    print(_on_card(asked) if card_capability() else _compiled(asked))
    return 0


def _on_card(names: Sequence[str]) -> str:
    """Return the table of first queries on a card."""
    head = ["question", "imports, s", "card, s", "answer, s", "together, s", "again, s"]
    return pages.table([head, *(first_query(name).cells() for name in names)])


def _compiled(names: Sequence[str]) -> str:
    """Return the table of what questions compile."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        rows = list(pool.map(measure, names))
    head = ["question", "kernels", "imports, s", "compiling, s", "both, s", "slowest kernel, s"]
    return pages.table([head, *(row.cells() for row in rows)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
