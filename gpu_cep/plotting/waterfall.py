"""The pruning waterfall: how many events, windows and matches each stage of a run let through."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from gpu_cep.api import Profile
from gpu_cep.errors import PatternError
from gpu_cep.plan.explain import Explanation
from gpu_cep.plan.interval_explain import IntervalExplanation
from gpu_cep.plan.vector import ACCENT, GREY, INK
from gpu_cep.plotting.picture import Picture

# What a run counts (see Profile), in the order of the road.
STAGES = {
    "events": "events read",
    "situations": "situations derived",
    "filtered": "events left after filtering",
    "windows": "windows: events a match can start with",
    "summarised": "windows with enough events for each variable",
    "candidates": "windows in which a match may be",
    "pivots": "events of the rarest variable",
    "pairs": "pairs whose relation was tested",
    "matches": "matches",
}

# Pixels.
_LABEL, _BAR, _COUNT, _ROW, _MARGIN = 270, 360, 190, 26, 12
_STYLE = (
    f".waterfall text{{font:12px system-ui,sans-serif;fill:{INK}}}.waterfall .about{{text-anchor:end}}"
    f".waterfall .share,.waterfall .scale{{fill:{GREY}}}.waterfall rect{{fill:{ACCENT}}}"
)


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage let through; `share` is that of the stage before (None: the first one, or nothing to have a share of)."""

    name: str
    count: int
    share: float | None


def stages(counts: Mapping[str, int]) -> tuple[Stage, ...]:
    """The stages that a run counted, in the order of the road."""
    found = [(name, counts[name]) for name in STAGES if name in counts]
    before = [0, *(count for _, count in found)]
    return tuple(Stage(name, count, count / last if last else None) for (name, count), last in zip(found, before, strict=False))


def waterfall(run: Profile | Explanation | IntervalExplanation) -> Picture:
    """What each stage of a run let through, as bars on a logarithmic scale.

    Parameters
    ----------
    run
        The profile that :func:`gpu_cep.match` received, or an explanation of a
        query that was run (``explain(…, run=True)``).

    Raises
    ------
    PatternError
        Nothing was counted: the query was not run, or by brute force.
    """
    counted = stages(run.counts or {})
    if not counted:
        raise PatternError("a waterfall needs the counts of a run: give match() a profile, or explain() run=True")
    width, height = _LABEL + _BAR + _COUNT, _MARGIN * 2 + _ROW * len(counted) + 18
    longest = max(map(_length, (stage.count for stage in counted))) or 1.0
    bars = "".join(_row(stage, _MARGIN + _ROW * number, longest) for number, stage in enumerate(counted))
    scale = f'<text class="scale" x="{_LABEL}" y="{height - _MARGIN}">logarithmic scale</text>'
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return Picture(f'<svg xmlns="http://www.w3.org/2000/svg" class="waterfall" {size}><style>{_STYLE}</style>{bars}{scale}</svg>')


def _length(count: int) -> float:
    """How long a count's bar is; that of one event can still be seen."""
    return math.log10(1 + count)


def _row(stage: Stage, top: int, longest: float) -> str:
    length, middle = _BAR * _length(stage.count) / longest, top + _ROW / 2 + 4
    return "".join(_elements(stage, top, length, middle))


def _elements(stage: Stage, top: int, length: float, middle: float) -> Iterator[str]:
    yield f'<text class="about" x="{_LABEL - 10}" y="{middle:.0f}">{escape(STAGES[stage.name])}</text>'
    yield f'<rect data-stage="{stage.name}" x="{_LABEL}" y="{top + 4}" width="{length:.1f}" height="{_ROW - 8}" rx="2"/>'
    share = "" if stage.share is None else f'<tspan class="share" dx="8">{_percentage(stage.share)}</tspan>'
    yield f'<text x="{_LABEL + length + 8:.1f}" y="{middle:.0f}">{stage.count:,}{share}</text>'


def _percentage(share: float) -> str:
    """A share in as few digits as tell it from none."""
    return f"{share:.2%}" if share == 0 or share >= 0.0001 else f"{share:.0e}"
