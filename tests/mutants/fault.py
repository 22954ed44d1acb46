"""Say what a planted fault is."""

from __future__ import annotations

from typing import NamedTuple

CONFORMANCE = "tests/conformance/test_conformance.py"
INTERVALS = "tests/conformance/test_intervals.py"
AUTOMATON = "tests/engine/matchers/automaton/test_letters.py"


class Fault(NamedTuple):
    """One planted fault: in file `path` the text `right` becomes `wrong`; `tests` are run before all others."""

    name: str
    path: str
    right: str
    wrong: str
    tests: tuple[str, ...]

    @property
    def in_kernels(self) -> bool:
        """Whether kernels have to be compiled again."""
        return self.path.startswith("kernels/")
