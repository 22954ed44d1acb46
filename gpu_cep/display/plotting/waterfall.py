"""Draw the pruning waterfall: how many events, windows and matches each stage of a run let through."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.errors import PatternError
from gpu_cep.pictures import Picture
from gpu_cep.pictures.shapes import ACCENT, GREY, Box, Letters, Look, Shape, Text
from gpu_cep.plan.explain import Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.row_patterns.explain import RowPatternExplanation

# The counts of a run (see Profile), in the order in which its stages run.
STAGES = {
    "events": "events read",
    "rows": "rows read",
    "situations": "situations derived",
    "filtered": "events left after filtering",
    "windows": "windows: events a match can start with",
    "summarised": "windows with enough events for each variable",
    "candidates": "windows in which a match may be",
    "pivots": "events of the rarest variable",
    "pairs": "pairs whose relation was tested",
    "matches": "matches",
    "kept": "matches that are kept, each once",
}

# Pixels.
_LABEL, _BAR, _COUNT, _ROW, _MARGIN, _APART = 270, 360, 190, 26, 12, 8

_SHAPE, _ABOUT, _NUMBER = Look("stage", ACCENT), Letters("about", at="end"), Letters("count")
_SHARE, _SCALE = Letters("share", GREY, at="end"), Letters("scale", GREY)


@dataclass(frozen=True, slots=True)
class Stage:
    """The count that one stage let through, and its share of the count before (None if that is 0)."""

    name: str
    count: int
    share: float | None


def stages(counts: Mapping[str, int]) -> tuple[Stage, ...]:
    """Return the stages that a run counted, in the order in which they run."""
    found = [(name, counts[name]) for name in STAGES if name in counts]
    before = [0, *(count for _, count in found)]
    return tuple(Stage(name, count, count / last if last else None) for (name, count), last in zip(found, before, strict=False))


def waterfall(run: Profile | Explanation | IntervalExplanation | RowPatternExplanation) -> Picture:
    """Draw how much each stage of a run let through, as bars on a logarithmic scale.

    Parameters
    ----------
    run
        The profile that :func:`gpu_cep.match` received, or an explanation of a
        query that was run (``explain(…, run=True)``).

    Raises
    ------
    PatternError
        There are no counts of such stages: the query was not run, or run by brute force. Or
        `run` is neither.
    """
    if not isinstance(run, Profile | Explanation | IntervalExplanation | RowPatternExplanation):
        raise PatternError(f"a waterfall shows a gpu_cep.Profile or what explain(…, run=True) returned, not {run!r}")
    counted = stages(run.counts or {})
    if not counted:
        raise PatternError("a waterfall needs the counts of a run: give match() a profile, or explain() run=True")
    width, height = _LABEL + _BAR + _COUNT, _MARGIN * 2 + _ROW * len(counted) + 18
    longest = max(map(_length, (stage.count for stage in counted))) or 1.0
    shapes = [shape for number, stage in enumerate(counted) for shape in _row(stage, _MARGIN + _ROW * number, longest)]
    shapes += _legend(width, height - _MARGIN)
    return Picture("waterfall", width, height, tuple(shapes))


def _length(count: int) -> float:
    """Return the length of a count's bar on the logarithmic scale; that of one event is visible."""
    return math.log10(1 + count)


def _row(stage: Stage, top: float, longest: float) -> Iterator[Shape]:
    """Yield a stage's bar with its name at the left, its count at the bar's end and its share at the right."""
    length, foot = _BAR * _length(stage.count) / longest, top + _ROW / 2 + 4
    yield Text(_ABOUT, _LABEL - _APART, foot, (STAGES[stage.name],))
    yield Box(_SHAPE, _LABEL, top + 4, length, _ROW - 8, 2, stage.name)
    yield Text(_NUMBER, _LABEL + length + _APART, foot, (f"{stage.count:,}",))
    if stage.share is not None:
        yield Text(_SHARE, _LABEL + _BAR + _COUNT - _MARGIN, foot, (_percentage(stage.share),))


def _legend(width: float, foot: float) -> Iterator[Shape]:
    yield Text(_SCALE, _LABEL, foot, ("logarithmic scale",))
    yield Text(_SHARE, width - _MARGIN, foot, ("of the stage before",))


def _percentage(share: float) -> str:
    """Return a share as a percentage; one too small for two decimals in scientific notation."""
    return f"{share:.2%}" if share == 0 or share >= 0.0001 else f"{share:.0e}"
