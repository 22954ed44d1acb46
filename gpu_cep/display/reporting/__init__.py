"""Report a run on one page of HTML: query, plan, pruning waterfall and matches."""

from gpu_cep.display.reporting.report import Report, report

__all__ = ["Report", "report"]
