"""The button of a task that opens the report it wrote, on the page."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from ferry.model import Flow
from ferry_airflow.page.mount import root


class ReportLink(BaseOperatorLink):
    """The button of a drill's or a switch's task that opens its report, if the page shows the folder it is in."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link, empty as long as there is none; Airflow keeps it with what the task returns."""
        link: str = operator.report_link
        return link


def place_on_page(flow: Flow, number: int) -> str:
    """Return where the page shows a report of the folder that the flow's file names."""
    return f"{root()}/flow/{quote(flow.source)}/{quote(flow.target)}/report/{number}"
