"""Say which of its matches a run reports."""

from __future__ import annotations

from gpu_cep.engine.events.match_ends import ReportedEnds
from gpu_cep.engine.events.own_events import WHOLE, Own
from gpu_cep.engine.events.settling import Borders
from gpu_cep.records import record


@record()
class Reported:
    """The matches that a run reports.

    `own`: they start in this slice of time, or at these rows.
    `ends`: their last event is in this slice of time; of situations, they are detected in it. Or they are closed by what is known
    now, and were not before. Event patterns with ``output="count"`` have no such bound.
    `borders`: of other slices, if the run leaves out the matches that ``skip_past_last`` drops whatever these find. The plan then
    keeps one match for each first event, and tells the ends of matches. Where it keeps a match for certain, the last column of
    these is NULL.
    """

    own: Own = WHOLE
    ends: ReportedEnds = WHOLE
    borders: Borders | None = None


EVERY_MATCH = Reported()
