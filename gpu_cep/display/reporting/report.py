"""Run a query for a report: gather everything that its page shows, and make the page."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from html import escape
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from gpu_cep.api import match
from gpu_cep.display.plotting.found import find_with_rows
from gpu_cep.display.plotting.timeline import check_margin, draw_match
from gpu_cep.display.plotting.waterfall import stages, waterfall
from gpu_cep.display.reporting.page import Content, page
from gpu_cep.display.reporting.row_patterns import row_pattern_content
from gpu_cep.engine.accounting.profile import Profile
from gpu_cep.engine.input.read_tables import read_events, to_host
from gpu_cep.engine.input.readable import check_zones
from gpu_cep.engine.input.timed_events import timed_events
from gpu_cep.errors import CepError, PatternError
from gpu_cep.explanations import explanation_of
from gpu_cep.keywords import ReportOptions, read_keywords
from gpu_cep.lang.format import format_query
from gpu_cep.pictures.files import lack_of_matplotlib
from gpu_cep.plan.vector import vector
from gpu_cep.queries.plans import make_plan, refuse_swapped
from gpu_cep.queries.row_plans import is_row_pattern
from gpu_cep.queries.runs import MatchCall
from gpu_cep.signatures import takes_keywords
from gpu_cep.whole_files import save_whole

if TYPE_CHECKING:
    from gpu_cep.queries.plans import Pattern


@dataclass(frozen=True, slots=True)
class Report:
    """A run as a page of HTML that needs no network, and that notebooks display; `html` is its text."""

    html: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write the page to a file.

        Raises
        ------
        CepError
            The file's suffix is not ``.html``, or the file cannot be written.
        """
        if Path(path).suffix.lower() != ".html":
            raise CepError(f"cannot tell the format of {path} from its suffix; expected .html")
        save_whole(path, lambda target: target.write(self.html.encode()))

    def __repr__(self) -> str:
        return f"Report({len(self.html):,} characters of HTML)"

    def _repr_html_(self) -> str:
        """Return the page in a frame, so that its styles and the notebook's do not mix."""
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:48em;border:0"></iframe>'


@takes_keywords(match, ReportOptions)
def report(
    events: Any,
    pattern: Pattern,
    *,
    rows: int = 1_000,
    timelines: int = 20,
    margin: float = 0.25,
    **keywords: Unpack[ReportOptions],
) -> Report:
    """Run a query and report it on one page: query, plan, pruning waterfall, matches and timelines.

    Parameters
    ----------
    events, pattern
        As in :func:`gpu_cep.match`. Of MATCH_RECOGNIZE the page holds the
        rows of the result. Its plan is in words, and it has no timelines.
    rows
        The most matches that the page holds: the first ones, in the order of results.
    timelines
        The most matches that it draws timelines of. Without matplotlib (the
        extra ``plot``) it draws none, and the page says why.
    margin
        How much of the stream a timeline shows on either side, as in :func:`gpu_cep.plot`.
    **keywords
        As in :func:`gpu_cep.match`.

    Returns
    -------
    Report
        The page; :meth:`~Report.save` writes it to a file.

    Raises
    ------
    UnsupportedError
        A match cannot be drawn (see :func:`gpu_cep.plot`).
    CepError
        Any error that :func:`gpu_cep.match` raises.
    """
    refuse_swapped("report", events, pattern)
    _check_bounds(rows=rows, timelines=timelines)
    check_margin(margin)
    options, settings = read_keywords(keywords)
    # of its own, since the caller's may hold earlier runs
    profile, given = Profile(), keywords.get("profile")
    call = MatchCall(pattern, options, settings, threads=keywords.get("threads"), profile=profile)
    if is_row_pattern(pattern):
        content = row_pattern_content(events, call, pattern, profile, rows)
    else:
        content = _event_content(events, call, profile, _Extent(rows, timelines, margin))
    if given is not None:
        given.merge(profile)
    return Report(page(content))


@dataclass(frozen=True, slots=True)
class _Extent:
    """How many matches a page holds at most, of how many it draws timelines, and how much of the stream these show on either side."""

    rows: int
    timelines: int
    margin: float


def _event_content(events: Any, call: MatchCall, profile: Profile, extent: _Extent) -> Content:
    """Run a pattern of events or situations and return the content of its page; the call's `profile` receives what was counted."""
    lack = lack_of_matplotlib("timelines") if extent.timelines else None
    table = to_host(read_events(events))
    check_zones(table.schema)
    plan = make_plan(call.pattern, table.schema, call.options, call.settings)
    table = to_host(timed_events(plan.query, table)[0])
    begin = time.perf_counter()
    found = find_with_rows(plan, call, table)
    seconds = time.perf_counter() - begin
    drawable = 0 if lack else min(extent.timelines, extent.rows, found.returned.num_rows)
    timelines = (draw_match(found, number, plan, table, call.options, extent.margin) for number in range(drawable))
    # brute force counts nothing
    counted = profile if profile.counts else None
    shown = found.returned.slice(0, extent.rows)
    return Content(
        query=cleandoc(call.pattern) if isinstance(call.pattern, str) else format_query(found.query),
        counts={"events": table.num_rows, "matches": found.returned.num_rows},
        total=found.returned.num_rows,
        noun="match",
        nouns="matches",
        seconds=seconds,
        plan=str(explanation_of(found.query, plan, table, call.threads, counted)),
        drawing=vector(plan).svg,
        waterfall=waterfall(profile).svg if stages(profile.counts) else None,
        stages=dict(profile.seconds),
        shown=shown,
        short=found.view.shorten(shown),
        timelines=tuple(timeline._repr_svg_() for timeline in timelines),
        lack=lack,
    )


def _check_bounds(**bounds: object) -> None:
    for name, bound in bounds.items():
        if not isinstance(bound, int) or isinstance(bound, bool) or bound < 0:
            raise PatternError(f"{name} must be a whole number of at least 0, not {bound!r}")
