"""Floor 6: tables, figures and HTML from records alone."""

from isogloss.reports.report import Report, write_report

__all__ = ["Report", "write_report"]
