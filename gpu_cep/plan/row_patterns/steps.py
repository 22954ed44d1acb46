"""Define the steps of a row pattern, each of which names the steps that come next by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpu_cep.errors import UnsupportedError

MOST_STATES = 2048
"""The most states of a row pattern: its variables, each as often as quantifiers and PERMUTE repeat it."""


@dataclass(frozen=True, slots=True)
class Take:
    """Map a row to a variable; `excluded` rows are left out of ALL ROWS PER MATCH."""

    variable: int
    excluded: bool
    then: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Go on with one of several steps, in order of preference; without any, no match ends here."""

    alternatives: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Guard:
    """Go on at the start (``^``) or the end (``$``) of a partition only."""

    sign: Literal["^", "$"]
    then: int


@dataclass(frozen=True, slots=True)
class Accept:
    """End the match."""


Step = Take | Choice | Guard | Accept
Steps = Sequence[Step]


@dataclass
class NumberedSteps:
    """Steps that are made from the last to the first; equal steps are one."""

    steps: list[Step] = field(default_factory=list)
    _numbers: dict[Step, int] = field(default_factory=dict)
    _takes: int = 0

    def add(self, step: Step) -> int:
        """Return the number of a step.

        Raises
        ------
        UnsupportedError
            The pattern has more states than are supported.
        """
        if step not in self._numbers:
            self._count(step)
            self._numbers[step] = len(self.steps)
            self.steps.append(step)
        return self._numbers[step]

    def reserve(self) -> int:
        """Return the number of a step that is set later."""
        self.steps.append(Choice(()))
        return len(self.steps) - 1

    def set(self, number: int, step: Step) -> None:
        """Set a reserved step."""
        self.steps[number] = step

    def _count(self, step: Step) -> None:
        self._takes += isinstance(step, Take)
        if self._takes > MOST_STATES or len(self.steps) > 16 * MOST_STATES:
            raise too_many_states()


def too_many_states() -> UnsupportedError:
    """Return the error of a pattern with too many states."""
    return UnsupportedError(
        f"the pattern has more than {MOST_STATES:,} states, which are its variables, each as often as quantifiers and PERMUTE repeat it; "
        "lower the bounds of its quantifiers, or permute less"
    )
