"""Draw a match: its situations or events, over the series that their conditions read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gpu_cep.api import match
from gpu_cep.display.plotting.composition import compose
from gpu_cep.display.plotting.found import Findings, find_with_rows
from gpu_cep.engine.input.read_tables import read_events, to_host
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.errors import PatternError
from gpu_cep.keywords import PlotOptions, read_keywords
from gpu_cep.pictures.files import require_matplotlib, save_rendered
from gpu_cep.queries.plans import make_plan, refuse_swapped
from gpu_cep.queries.runs import MatchCall
from gpu_cep.signatures import takes_keywords

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from gpu_cep.analysis.options import Options
    from gpu_cep.plan.event_plan import Plan
    from gpu_cep.queries.plans import Pattern

# The widest margin, as a share of the match.
MOST_MARGIN = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """A match as a picture that notebooks display; `figure` is the figure of matplotlib."""

    figure: Figure

    def save(self, path: str | Path) -> None:
        """Write the picture to a file in the format of its suffix: ``.png``, ``.svg`` or ``.pdf``.

        Raises
        ------
        CepError
            The suffix is none of these, or the file cannot be written.
        """
        save_rendered(path, self.render)

    def _repr_png_(self) -> bytes:
        return self.render(".png")

    def _repr_svg_(self) -> str:
        return self.render(".svg").decode()

    def render(self, suffix: str) -> bytes:
        """Return the bytes of a file that :meth:`save` writes with this suffix."""
        from gpu_cep.display.plotting.drawing import STYLE
        from gpu_cep.pictures.figure import render_figure, style

        with style(STYLE):
            return render_figure(self.figure, suffix)


@takes_keywords(match, PlotOptions)
def plot(
    events: Any,
    pattern: Pattern,
    *,
    match: int = 0,
    margin: float = 0.25,
    **keywords: Unpack[PlotOptions],
) -> Timeline:
    """Draw a match: the series that its conditions read, and under them its situations or its events.

    A situation is a bar from its start to its end. The bar has a tip if the
    situation was still open when the match was detected. A vertical line
    shows that time. A variable of an event pattern is a row of dots, one for
    each event that it binds; the last row has the events in between that no
    variable binds. Each column that a condition reads has a panel
    if it holds numbers, truth values or text of few different values. The
    keys of streams have none.

    Parameters
    ----------
    events, pattern
        As in :func:`gpu_cep.match`.
    match
        The number of the match in the order of results, from 0 on.
    margin
        How much of the stream is drawn before and behind the match, as a
        share of the match's length.
    **keywords
        As in :func:`gpu_cep.match`.

    Returns
    -------
    Timeline
        The picture; :meth:`~Timeline.save` writes it to a file.

    Raises
    ------
    EngineUnavailable
        matplotlib, which the extra ``plot`` installs, is missing.
    UnsupportedError
        The match begins or ends at infinity, or has too many variables.
    CepError
        There are fewer matches, or :func:`gpu_cep.match` raises an error.
    """
    refuse_swapped("plot", events, pattern)
    require_matplotlib("timelines")
    _check_match(match)
    check_margin(margin)
    options, settings = read_keywords(keywords)
    table = to_host(read_events(events))
    plan = make_plan(pattern, table.schema, options, settings)
    table = to_host(timed_events(plan.query, table)[0])
    found = find_with_rows(plan, MatchCall(pattern, options, settings, threads=keywords.get("threads")), table, returned=False)
    return draw_match(found, match, plan, table, options, margin)


def draw_match(found: Findings, number: int, plan: Plan, table: pa.Table, options: Options, margin: float) -> Timeline:
    """Draw match `number` of those found in the events of `table`; raises as :func:`plot`."""
    from gpu_cep.display.plotting.drawing import draw

    return Timeline(draw(compose(found.match(number), found.query, plan, table, options, margin)))


def _check_match(match: object) -> None:
    if not isinstance(match, int) or isinstance(match, bool) or match < 0:
        raise PatternError(f"match must be a whole number of at least 0, not {match!r}")


def check_margin(margin: object) -> None:
    """Raise PatternError unless `margin` is a number from 0 to :data:`MOST_MARGIN`."""
    if not isinstance(margin, int | float) or isinstance(margin, bool) or not 0 <= margin <= MOST_MARGIN:
        raise PatternError(f"margin must be a number from 0 to {MOST_MARGIN:,}, not {margin!r}")
