"""Tables, figures and HTML from only the records."""

from isogloss.reports.report import Report, finished_report, last_verdicts, write_report

__all__ = ["Report", "finished_report", "last_verdicts", "write_report"]
