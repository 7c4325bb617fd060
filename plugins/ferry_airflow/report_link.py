"""The buttons of tasks that open what they did on the page: a run with its receipts, or a report."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urljoin

from airflow.configuration import conf
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


class RunLink(BaseOperatorLink):
    """The button of a task of a micro-run that opens the run on the page, with its plan and its receipts."""

    name = "Receipts"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """Return the link, empty for a dry run; Airflow keeps it when the task ends, however it does."""
        link: str = operator.run_link
        return link


class ResultLink(RunLink):
    """The button of the task of a verification or of a group sync that opens its run on the page, with the result."""

    name = "Result"


def result_on_page(flow: Flow, dag: str, own: str, run: str) -> str:
    """Return where the page shows a run of the DAG `own`, one of the flow's; empty for a run of another DAG."""
    return f"{flow_on_page(flow)}/dag/{quote(dag, safe='')}/run/{quote(run, safe='')}" if dag == own else ""


def flow_on_page(flow: Flow) -> str:
    """Return where the page shows a flow, without a slash at its end."""
    return f"{root()}/flow/{quote(flow.source)}/{quote(flow.target)}"


def run_on_page(flow: Flow, run: str, lane: str | None = None) -> str:
    """Return where the page shows a micro-run; `lane` is None for the flow's own."""
    whose = "" if lane is None else f"lane/{quote(lane, safe='')}/"
    return f"{flow_on_page(flow)}/{whose}run/{quote(run, safe='')}"


def url_on_page(flow: Flow, run: str, lane: str | None = None) -> str:
    """Return the URL of a micro-run on the page; its path alone if Airflow's own URL is not set."""
    return _url(run_on_page(flow, run, lane))


def url_of_flow(flow: Flow) -> str:
    """Return the URL of a flow on the page; its path alone if Airflow's own URL is not set."""
    return _url(f"{flow_on_page(flow)}/")


def _url(path: str) -> str:
    return urljoin(conf.get("api", "base_url", fallback="") or "", path)


def place_on_page(flow: Flow, number: int) -> str:
    """Return where the page shows a report of the folder that the flow's file names."""
    return f"{flow_on_page(flow)}/report/{number}"
