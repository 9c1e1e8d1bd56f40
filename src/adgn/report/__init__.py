"""Results as tables, pictures and a page."""

from adgn.report.collect import Collected, collect
from adgn.report.commands import reproduce_command
from adgn.report.headline import headline_table
from adgn.report.model_page import model_page
from adgn.report.page import html_page, table_state
from adgn.report.results import ReportError, Results, TableResults, read_results
from adgn.report.runs import read_runs
from adgn.report.write import ReportFiles, markdown_report, write_report

__all__ = [
    "Collected",
    "ReportError",
    "ReportFiles",
    "Results",
    "TableResults",
    "collect",
    "headline_table",
    "html_page",
    "markdown_report",
    "model_page",
    "read_results",
    "read_runs",
    "reproduce_command",
    "table_state",
    "write_report",
]
