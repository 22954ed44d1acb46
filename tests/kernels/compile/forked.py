"""Run code in processes that are like new ones, but that numba is imported, which would take most of their time.

They are forked from a process that has imported nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

_SERVER = """
import json
import os
import sys
import traceback
from contextlib import suppress
import numba
import numpy
for line in sys.stdin:
    asked = json.loads(line)
    if os.fork():
        continue
    for number, pipe in enumerate(asked["pipes"], 1):
        os.dup2(os.open(pipe, os.O_WRONLY), number)
    os.environ.clear()
    os.environ.update(asked["environment"])
    numba.config.reload_config()
    os.chdir(asked["folder"])
    sys.path[:0] = [asked["folder"]]
    status = 0
    try:
        exec(asked["code"], {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        status = 1
    print(status, flush=True)
    sys.stderr.flush()
    os._exit(status)
with suppress(ChildProcessError):
    while True:
        os.wait()
"""


class ForkServer:
    """A process that forks others; `close` ends it."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen([sys.executable, "-c", _SERVER], env=environment, stdin=subprocess.PIPE, text=True)
        self._lock = Lock()

    def run(self, code: str, folder: Path, environment: Mapping[str, str]) -> tuple[str, str]:
        """What the code writes to stdout and to stderr, with the modules of a folder, in which it runs."""
        with tempfile.TemporaryDirectory() as place:
            pipes = [os.path.join(place, name) for name in ("out", "err")]
            for pipe in pipes:
                os.mkfifo(pipe)
            asked = {"code": code, "folder": str(folder), "environment": dict(environment), "pipes": pipes}
            with self._lock:
                assert self._process.stdin is not None
                self._process.stdin.write(json.dumps(asked) + "\n")
                self._process.stdin.flush()
            with open(pipes[0]) as out, open(pipes[1]) as err:
                printed, said = out.read(), err.read()
        *lines, status = printed.splitlines(keepends=True) or [""]
        assert status == "0\n", said
        return "".join(lines), said

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
