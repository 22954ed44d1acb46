"""What the parts of the GPU check find, as lines that travel from a part's own process to the command.

A part that crashes, hangs or poisons its CUDA context leaves what it had found until then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_cep_kernels.device.failures import DeviceLost, cuda_failure

if TYPE_CHECKING:
    from gpu_cep_kernels.device.interface import Device

Item = TypeVar("Item")

ROW, NOTE, FAULT, BEGUN = "row", "note", "fault", "begun"


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of one of a part's tables, a note beside them, or a fault, which fails the check; or the name of an item that was begun.

    A row's `cells` are for readers; `record` has its figures as they were measured.
    """

    kind: str
    text: str = ""
    table: str = ""
    cells: Mapping[str, str] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)


def row(table: str, record: Any) -> Finding:
    """Return a row of `table`: a dataclass of figures that has its ``cells()`` by heading."""
    return Finding(ROW, table=table, cells=record.cells(), record=asdict(record))


def note(text: str) -> Finding:
    return Finding(NOTE, text)


def fault(text: str) -> Finding:
    return Finding(FAULT, text)


def write_findings(path: Path, findings: Iterable[Finding]) -> None:
    """Write each finding as a line of JSON, as soon as it is there."""
    with path.open("w") as lines:
        for found in findings:
            print(json.dumps(asdict(found)), file=lines, flush=True)


def read_findings(path: Path) -> list[Finding]:
    """Return what was written, without a last line that was cut off."""
    return [Finding(**json.loads(line)) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment by which a part is to be done; it looks before each piece of work."""

    moment: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Return the seconds that are left; negative once the time has passed."""
        return self.moment - time.monotonic()

    @property
    def passed(self) -> bool:
        return self.left <= 0


@dataclass(frozen=True, slots=True)
class Check:
    """What a part is given: the device, its time, how many events the large measurements take, and whether small sizes will do.

    Items in `without` are left out: an earlier process of the part has done them, or lost the device at them. Of the others the first
    `most` of each list are done (None: all).
    """

    device: Device
    deadline: Deadline
    events: int
    quick: bool
    without: frozenset[str] = frozenset()
    most: int | None = None

    def until(self, deadline: Deadline) -> Check:
        """Return the same with another deadline."""
        return replace(self, deadline=deadline)

    def asked(self, items: Mapping[str, Item]) -> dict[str, Item]:
        """Return the items that are to be done."""
        return dict(islice(((name, item) for name, item in items.items() if name not in self.without), self.most))


def in_time(check: Check, items: Mapping[str, Item], measure: Callable[[Item], Iterable[Finding]]) -> Iterator[Finding]:
    """Yield what `measure` finds of each item, as far as time goes: an item that fails is a fault, those that are left are a note.

    Raises
    ------
    DeviceLost
        CUDA failed at an item: nothing more can be done in this process.
    """
    asked = check.asked(items)
    names = list(asked)
    for place, name in enumerate(names):
        if check.deadline.passed:
            yield note(f"out of time before: {', '.join(names[place:])}")
            return
        yield Finding(BEGUN, name)
        try:
            yield from measure(asked[name])
        except Exception as error:
            failure = cuda_failure(error)
            yield fault(f"{name}: {described(error, failure)}")
            if isinstance(failure, DeviceLost):
                raise failure from error


# What a failure of CUDA means for the device.
_FAILURES = {DeviceLost: "the device is lost: ", MemoryError: "out of memory: "}


def described(error: BaseException, failure: Exception | None) -> str:
    """Return an error's text, and before it what it means for the device."""
    kind = next((words for kind, words in _FAILURES.items() if isinstance(failure, kind)), "")
    return kind + "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])


def in_turn(check: Check, items: Mapping[str, Item], measure: Callable[[Item, Deadline], Iterable[Finding]]) -> Iterator[Finding]:
    """Do as :func:`in_time`; each item has an even share of the time that is left, until the deadline that `measure` is told."""
    asked = check.asked(items)
    shared = {name: (item, len(asked) - place) for place, (name, item) in enumerate(asked.items())}
    yield from in_time(check, shared, lambda own: measure(own[0], Deadline.after(check.deadline.left / own[1])))
