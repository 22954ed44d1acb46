"""A timed action beside its floor: the bytes that it must move, at the speed of a copy in the device's memory."""

from __future__ import annotations

from dataclasses import dataclass

# What the project aims at, by what is measured.
COPY_SHARE = 0.6
PHASE_ONE_RATE = 2e9  # events per second
TRANSFER_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Timed:
    """An action on `size` indices that moves `moved` bytes at least; `target` is the share of `copy_speed` aimed at, None: none."""

    name: str
    size: int
    moved: int
    seconds: float
    copy_speed: float
    target: float | None = None

    @property
    def share(self) -> float:
        """Return the floor's part of the time: the share of the copy's speed that was reached."""
        return self.moved / self.copy_speed / self.seconds

    def cells(self) -> dict[str, str]:
        return {
            "what": self.name,
            "indices": f"{self.size:,}",
            "MB moved": f"{self.moved / 1e6:,.1f}",
            "floor": milliseconds(self.moved / self.copy_speed),
            "time": milliseconds(self.seconds),
            "of copy speed": f"{self.share:.0%}",
            "target": verdict(self.share, self.target, ".0%"),
        }


def verdict(measured: float, target: float | None, form: str, *, meaningful: bool = True) -> str:
    """Return a target, and whether what was measured meets it."""
    if target is None or not meaningful:
        return ""
    return f"≥ {target:{form}}: {'met' if measured >= target else 'not met'}"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.3f} ms"
