"""A run as one page: what was asked, how it was answered, what each stage let through, and what was found."""

from gpu_cep.display.reporting.report import Report, report

__all__ = ["Report", "report"]
