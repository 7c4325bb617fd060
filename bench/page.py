"""Ferry's page in a real Airflow, over 10,000 partitions that have lag and a ledger of a million receipts.

A client requests every GET route of the page again and again, as a signed-in browser does, while the flow's thread
keeps reading both clusters. Nothing counts before every page has its figures.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Protocol

import httpx
from clusters import Field
from groups import stand
from long_ledger import FLOW, write_history
from page_routes import DEALT, FLOW_PAGE, Found, addresses
from wide import PATTERN, create, write_round

from ferry.config.settings import load
from ferry.lane.connections import TargetConnection
from ferry.model import Origin
from ferry.plan.options import RunOptions
from ferry.run.micro_run import MicroRuns
from ferry_airflow.home import USER, LocalHome
from ferry_airflow.local import guarded, start
from ferry_airflow.naming import dag_id
from ferry_airflow.rest import AirflowRest

HERE = Path(__file__).resolve().parent
MOST_MS = 500.0
RUNS = 3
"""Micro-runs that copy one record of every partition each."""
GROUPS = 100
"""Consumer groups, each with an offset in all 100 partitions of a topic."""
ROUNDS = 15
LOOKS = 1
"""The client requests for so many rounds, and longer until the thread has read so often: it rests ten times as long."""
PATIENCE_S = 600.0
UNREADY = ("Asking the clusters", "data-waiting")
"""What a page shows while its figures are not there yet."""
DEALT_SHOWN = 'id="dealt-title"'
"""What the page of a partition has when something of it was repartitioned."""
DEALT_TO = 120
"""So many partitions the records of a topic with 100 partitions are repartitioned to, by Spark."""
DAG = dag_id(FLOW)

SETTINGS = f"""\
clusters = {FLOW.source}, {FLOW.target}
{FLOW.source}.bootstrap.servers = SOURCE
{FLOW.target}.bootstrap.servers = TARGET
{FLOW}.enabled = true
{FLOW}.topics = {PATTERN}, {DEALT}
{FLOW}.ferry.transforms = deal
{FLOW}.ferry.transform.deal.topics = {DEALT}
{FLOW}.ferry.transform.deal.partitions = {DEALT_TO}
{FLOW}.groups = page-.*
{FLOW}.ferry.schedule = none
{FLOW}.ferry.report.dir = FOLDER/reports
heartbeats.replication.enabled = false
replication.factor = 1
tasks.max = 2
"""


class Titled(Protocol):
    """A scenario."""

    @property
    def title(self) -> str:
        """Return the title of its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One turn: seconds of each request by route, and how long the pages took to have figures when all was new."""

    took: Mapping[str, Sequence[float]]
    first: float


def asked(field: Field, receipts: int) -> Asked:
    """Start an Airflow and request its pages; the first turn makes the data."""
    folder = field.folder / "page"
    config = folder / "flows.properties"
    if not config.exists():
        _made(field, config, receipts)
    with _served(folder, config) as browser:
        began = time.monotonic()
        of_routes = _addresses(browser)
        for address in (address for them in of_routes.values() for address in them):
            _ready(browser, address)
        return Asked(first=time.monotonic() - began, took=_measured(browser, of_routes))


def _made(field: Field, config: Path, receipts: int) -> None:
    """Make a ledger with a long past, later runs, groups, a report of a drill, and records that are not copied yet."""
    near, far = field.source, field.target
    config.parent.mkdir()
    text = SETTINGS.replace("SOURCE", near.bootstrap).replace("TARGET", far.bootstrap)
    settings = config.with_suffix(".part")
    settings.write_text(text.replace("FOLDER", str(config.parent)))
    flow = load(settings).flow(str(FLOW))
    with MicroRuns(flow) as runs:
        runs.open_run("first", Origin(), RunOptions(only=frozenset({"wide-000"})))
    with TargetConnection.of(flow) as connection:
        write_history(far.bootstrap, connection, receipts, (near.cluster_id, far.cluster_id))
    stand(near.bootstrap, [f"page-{number:03}" for number in range(GROUPS)], "wide-000", 1)
    ferry = [str(Path(sys.executable).with_name("ferry")), "--config", str(settings)]
    create(near.bootstrap, [DEALT])
    for _ in range(RUNS):
        write_round(near.bootstrap, [DEALT])
        subprocess.run([*ferry, "run", str(FLOW), "--spark"], check=True, stdout=subprocess.DEVNULL)
        write_round(near.bootstrap)
    subprocess.run([*ferry, "drills", "tabletop", str(FLOW)], check=False, stdout=subprocess.DEVNULL)
    settings.rename(config)


@contextmanager
def _served(folder: Path, config: Path) -> Iterator[httpx.Client]:
    """Open a signed-in browser before a page that was never requested."""
    home = folder / "airflow"
    with guarded(home):
        started = start(home, config=config, dags=HERE.parent / "dags").home
        with AirflowRest(started) as rest:
            rest.wait_dag(DAG)
        cookies = {"_token": _token(started)}
        with httpx.Client(base_url=f"{started.url}/ferry", cookies=cookies, timeout=60) as browser:
            browser.headers["Accept"] = "text/html"
            yield browser


def _token(home: LocalHome) -> str:
    answer = httpx.post(f"{home.url}/auth/token", json={"username": USER, "password": home.password})
    return str(answer.json()["access_token"])


def _addresses(browser: httpx.Client) -> Mapping[str, Sequence[str]]:
    """Return the addresses to request of each route, once there is a page that leads there."""
    overview = _ready(browser, f"{FLOW_PAGE}/")
    run = _until_run(browser, f"/api{FLOW_PAGE}/series")
    job = browser.post(f"/api{FLOW_PAGE}/dry-run", json={}, headers={"X-Ferry-Request": "1"}).json()["job"]
    # A report has a page and a PDF.
    (report,) = set(re.findall(rf"{FLOW_PAGE}/report/(\d+)", _ready(browser, f"{FLOW_PAGE}/reports")))
    (charts,) = re.findall(r"(/charts/[^\"]+)\"", overview)
    found = addresses(
        Found(
            run=run,
            job=str(job),
            report=report,
            charts=charts,
            receipt=_receipt(browser, "topic=wide-050&partition=7"),
            old_receipt=_receipt(browser, "topic=history&partition=42"),
        )
    )
    routes = _routes()
    assert set(found) == routes, f"routes that nobody asks, or that are not there: {sorted(set(found) ^ routes)}"
    dealt = _ready(browser, f"{FLOW_PAGE}/partition/{DEALT}/7")
    assert DEALT_SHOWN in dealt, f"nothing of {DEALT} was dealt, so its page has nothing to show"
    return found


def _receipt(browser: httpx.Client, place: str) -> str:
    """Return the receipt that has offset 1 of a partition, by the link on the page of offsets."""
    found = re.search(rf"{FLOW_PAGE}/receipt/[^\"]+", _ready(browser, f"{FLOW_PAGE}/offsets?{place}&offset=1"))
    assert found is not None, f"no receipt of {place}"
    return found[0]


def _routes() -> set[str]:
    """Return the GET routes of the page's application."""
    from fastapi.routing import APIRoute  # noqa: PLC0415 - with the page comes Airflow's API server, for this alone

    from ferry_airflow.page.app import page_app  # noqa: PLC0415

    return {route.path for route in page_app().routes if isinstance(route, APIRoute) and "GET" in route.methods}


def _ready(browser: httpx.Client, address: str) -> str:
    """Return the page, once it has its figures."""
    until = time.monotonic() + PATIENCE_S
    while True:
        answer = browser.get(address)
        text = answer.text
        unready = answer.headers.get("content-type", "").startswith("text/html") and any(
            word in text for word in UNREADY
        )
        if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE and not unready:
            assert not answer.is_error, f"{address} answers {answer.status_code}: {text[:300]}"
            return text
        assert time.monotonic() < until, f"{address} has no figures after {PATIENCE_S:.0f} s"
        time.sleep(0.2)


def _until_run(browser: httpx.Client, series: str) -> str:
    """Return the newest run, once all are read."""
    until = time.monotonic() + PATIENCE_S
    while len(runs := browser.get(series).json()["runs"]) < RUNS:
        assert time.monotonic() < until, f"{len(runs)} of {RUNS} runs are read after {PATIENCE_S:.0f} s"
        time.sleep(0.2)
    return str(runs[-1]["run"])


def _measured(browser: httpx.Client, addresses: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
    """Measure the seconds of each request, over rounds that each request everything once."""
    took: dict[str, list[float]] = {route: [] for route in addresses}
    first, rounds = _looks(browser), 0
    until = time.monotonic() + PATIENCE_S
    while rounds < ROUNDS or _looks(browser) < first + LOOKS:
        for route, them in addresses.items():
            for address in them:
                began = time.monotonic()
                answer = browser.get(address)
                took[route].append(time.monotonic() - began)
                assert not answer.is_error, f"{address} answers {answer.status_code}: {answer.text[:300]}"
        rounds += 1
        assert time.monotonic() < until, f"the flow's thread has not looked {LOOKS} times in {PATIENCE_S:.0f} s"
    return took


def _looks(browser: httpx.Client) -> int:
    return int(browser.get(f"/api{FLOW_PAGE}/series").json()["number"])


def table(scenario: Titled, pairs: Sequence[Asked]) -> str:
    """Make a table of every route with its median and its slowest request, of all turns together."""
    lines = [
        f"### {scenario.title[0].upper()}{scenario.title[1:]}",
        "",
        "| GET | requests | median ms | slowest ms |",
        "|---|---|---|---|",
    ]
    for route in pairs[0].took:
        all_of_it = [1000 * took for pair in pairs for took in pair.took[route]]
        lines.append(f"| `{route}` | {len(all_of_it)} | {median(all_of_it):.0f} | {max(all_of_it):.0f} |")
    slowest = [max(1000 * max(took) for took in pair.took.values()) for pair in pairs]
    verdict = "" if max(slowest) <= MOST_MS else " (not reached)"
    each = ", ".join(f"{one:.0f}" for one in slowest)
    first = ", ".join(f"{pair.first:.0f}" for pair in pairs)
    lines += [
        "",
        "| aim | wanted | measured, worst | in each turn |",
        "|---|---|---|---|",
        f"| slowest request, ms | {MOST_MS:.0f} | {max(slowest):.0f}{verdict} | {each} |",
        "",
        f"From the first request to a new API server until every page had its figures, in each turn: {first} s.",
    ]
    return "\n".join(lines) + "\n"
