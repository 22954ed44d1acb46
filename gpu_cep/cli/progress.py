"""Show on stderr how far a long command is, if stderr is a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.live import Live
from rich.progress import track
from rich.spinner import Spinner

from gpu_cep.engine.accounting.profile import Profile

Item = TypeVar("Item")

_PER_SECOND = 4


@contextmanager
def watch(what: str) -> Iterator[Profile]:
    """Yield a profile to run with, and show its counts and the seconds passed until the block ends."""
    profile = Profile()
    console = Console(stderr=True)
    if not console.is_terminal:
        yield profile
        return
    begin = time.monotonic()
    spinner = Spinner("dots")

    def state() -> Spinner:
        counts = " → ".join(f"{name} {count:,}" for name, count in tuple(profile.counts.items()))
        spinner.update(text=f"{what}  {time.monotonic() - begin:.0f} s  {counts}")
        return spinner

    with Live(get_renderable=state, console=console, refresh_per_second=_PER_SECOND, transient=True):
        yield profile


def show_count(items: Iterable[Item], what: str, total: int) -> Iterator[Item]:
    """Yield the items one by one, and show a bar of how many of the `total` are done."""
    console = Console(stderr=True)
    yield from track(items, what, total, console=console, transient=True, disable=not console.is_terminal)
