"""Ferry's page in a real Airflow, over 10,000 partitions that are behind and a ledger of a million receipts.

Every GET route of the page is asked, again and again, as a signed-in browser asks, while the flow's thread goes on
looking at both clusters. Nothing counts before every page has its figures.
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
from contenders import run_command
from groups import stand
from long_ledger import FLOW, write_history
from wide import PATTERN, write_round

from ferry.config.settings import load
from ferry.model import Origin
from ferry.run.flow.connections import TargetConnection
from ferry.run.micro_run import MicroRuns
from ferry.run.plan.options import RunOptions
from ferry_airflow.home import PASSWORD, USER, LocalHome
from ferry_airflow.local import guarded, start
from ferry_airflow.naming import dag_id, verify_dag_id
from ferry_airflow.rest import AirflowRest

HERE = Path(__file__).resolve().parent
MOST_MS = 500.0
RUNS = 3
"""Micro-runs that copy one record of every partition each."""
GROUPS = 100
"""Consumer groups, each with an offset in all 100 partitions of a topic."""
ROUNDS = 15
LOOKS = 1
"""Asked is for so many rounds, and on until the thread has looked so often meanwhile: it rests ten times as long."""
PATIENCE_S = 600.0
UNREADY = ("Asking the clusters", "data-waiting")
"""What a page says whose figures are on their way."""
DAG = dag_id(FLOW)
FLOW_PAGE = f"/flow/{FLOW.source}/{FLOW.target}"

SETTINGS = f"""\
clusters = {FLOW.source}, {FLOW.target}
{FLOW.source}.bootstrap.servers = SOURCE
{FLOW.target}.bootstrap.servers = TARGET
{FLOW}.enabled = true
{FLOW}.topics = {PATTERN}
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
        """What its table is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One turn: seconds of each request by route, and how long the pages took to have figures when all was new."""

    took: Mapping[str, Sequence[float]]
    first: float


def asked(field: Field, receipts: int) -> Asked:
    """Start an Airflow and ask its page; what is looked at is made by the first turn."""
    folder = field.folder / "page"
    config = folder / "flows.properties"
    if not config.exists():
        _made(field, config, receipts)
    with _served(folder, config) as browser:
        began = time.monotonic()
        addresses = _addresses(browser)
        for address in (address for them in addresses.values() for address in them):
            _ready(browser, address)
        return Asked(first=time.monotonic() - began, took=_measured(browser, addresses))


def _made(field: Field, config: Path, receipts: int) -> None:
    """A ledger with a long past, runs behind it, groups, a report of a drill, and records that are not copied yet."""
    near, far = field.source, field.target
    config.parent.mkdir()
    text = SETTINGS.replace("SOURCE", near.bootstrap).replace("TARGET", far.bootstrap)
    settings = config.with_suffix(".part")
    settings.write_text(text.replace("FOLDER", str(config.parent)))
    flow = load(settings).flow(str(FLOW))
    with MicroRuns(flow) as runs:
        runs.plan("first", Origin(), RunOptions(only=frozenset({"wide-000"})))
    with TargetConnection.of(flow) as connection:
        write_history(far.bootstrap, connection, receipts, (near.cluster_id, far.cluster_id))
    stand(near.bootstrap, [f"page-{number:03}" for number in range(GROUPS)], "wide-000", 1)
    for _ in range(RUNS):
        run_command(settings, str(FLOW))
        write_round(near.bootstrap)
    ferry = [str(Path(sys.executable).with_name("ferry")), "--config", str(settings)]
    subprocess.run([*ferry, "drill", "tabletop", str(FLOW)], check=False, stdout=subprocess.DEVNULL)
    settings.rename(config)


@contextmanager
def _served(folder: Path, config: Path) -> Iterator[httpx.Client]:
    """A signed-in browser before a page that nobody has asked for anything yet."""
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
    answer = httpx.post(f"{home.url}/auth/token", json={"username": USER, "password": PASSWORD})
    return str(answer.json()["access_token"])


def _addresses(browser: httpx.Client) -> dict[str, list[str]]:
    """What is asked of each route: first pages, last ones, and what has most to show."""
    overview = _ready(browser, f"{FLOW_PAGE}/")
    series = f"/api{FLOW_PAGE}/series"
    run = _until_run(browser, series)
    job = browser.post(f"/api{FLOW_PAGE}/dry-run", json={}, headers={"X-Ferry-Request": "1"}).json()["job"]
    reports = _ready(browser, f"{FLOW_PAGE}/reports")
    (report,) = re.findall(rf"{FLOW_PAGE}/report/(\d+)", reports)
    (charts,) = re.findall(r"(/charts/[^\"]+)\"", overview)
    any_flow = "/flow/{source}/{target}"
    found = {
        "/": ["/"],
        "/dag/{dag}": [f"/dag/{DAG}"],
        "/dag/{dag}/run/{run:path}": [f"/dag/{DAG}/run/{run}"],
        f"{any_flow}/": [f"{FLOW_PAGE}/"],
        f"{any_flow}/dag/{{dag}}/run/{{run:path}}": [f"{FLOW_PAGE}/dag/{verify_dag_id(FLOW)}/run/none"],
        f"{any_flow}/topics": [f"{FLOW_PAGE}/topics{query}" for query in ("", "?sort=bytes&page=2", "?q=wide-09")],
        f"{any_flow}/topic/{{topic}}": [f"{FLOW_PAGE}/topic/wide-000{query}" for query in ("", "?page=2")],
        f"{any_flow}/runs": [f"{FLOW_PAGE}/runs"],
        f"{any_flow}/refusals": [f"{FLOW_PAGE}/refusals"],
        f"{any_flow}/run/{{run:path}}": [
            f"{FLOW_PAGE}/run/{run}{query}" for query in ("", "?page=200", "?q=wide-09", "?q=nothing")
        ],
        f"{any_flow}/partition/{{topic}}/{{partition}}": [
            f"{FLOW_PAGE}/partition/{place}" for place in ("wide-050/7", "history/42", "history/42?page=100")
        ],
        f"{any_flow}/receipt/{{topic}}/{{partition}}/{{start}}": [
            _receipt(browser, place) for place in ("topic=wide-050&partition=7", "topic=history&partition=42")
        ],
        f"{any_flow}/offsets": [
            f"{FLOW_PAGE}/offsets{query}"
            for query in (
                "",
                "?topic=wide-050&partition=7&offset=1",
                f"?topic={FLOW.source}.wide-050&partition=7&offset=1&back=true",
            )
        ],
        f"{any_flow}/groups": [f"{FLOW_PAGE}/groups{query}" for query in ("", "?page=5", "?q=page-07")],
        f"{any_flow}/backfills": [f"{FLOW_PAGE}/backfills"],
        **_of_lanes(any_flow, run, _receipt(browser, "topic=history&partition=42")),
        f"{any_flow}/reports": [f"{FLOW_PAGE}/reports"],
        f"{any_flow}/report/{{number}}": [f"{FLOW_PAGE}/report/{report}"],
        f"/api{any_flow}/series": [series, f"{series}?topic=wide-000"],
        "/api/job/{number}": [f"/api/job/{job}"],
        "/static/{name}": [f"/static/{name}" for name in ("ferry.css", "ferry.js", "act.js", "theme.js")],
        "/icon/{name}": ["/icon/light.svg", "/icon/dark.svg"],
        "/charts/{version}.js": [charts],
    }
    routes = _routes()
    assert set(found) == routes, f"routes that nobody asks, or that are not there: {sorted(set(found) ^ routes)}"
    return found


def _of_lanes(any_flow: str, run: str, receipt: str) -> dict[str, list[str]]:
    """The same pages of a lane by its name: of the live one, which has most, and for the list one that is not there."""
    lane, live = f"{any_flow}/lane/{{lane}}", f"{FLOW_PAGE}/lane/live"
    return {
        lane: [f"{FLOW_PAGE}/lane/backfill-none"],
        f"{lane}/run/{{run:path}}": [f"{live}/run/{run}"],
        f"{lane}/partition/{{topic}}/{{partition}}": [f"{live}/partition/history/42?page=100"],
        f"{lane}/receipt/{{topic}}/{{partition}}/{{start}}": [receipt.replace(FLOW_PAGE, live)],
        f"{lane}/offsets": [f"{live}/offsets?topic=wide-050&partition=7&offset=1"],
    }


def _receipt(browser: httpx.Client, place: str) -> str:
    """The receipt that has offset 1 of a partition, as the page of offsets leads to it."""
    found = re.search(rf"{FLOW_PAGE}/receipt/[^\"]+", _ready(browser, f"{FLOW_PAGE}/offsets?{place}&offset=1"))
    assert found is not None, f"no receipt of {place}"
    return found[0]


def _routes() -> set[str]:
    """What the page's application answers to GET."""
    from fastapi.routing import APIRoute  # noqa: PLC0415 - with the page comes Airflow's API server, for this alone

    from ferry_airflow.page.app import page_app  # noqa: PLC0415

    return {route.path for route in page_app().routes if isinstance(route, APIRoute) and "GET" in route.methods}


def _ready(browser: httpx.Client, address: str) -> str:
    """The page, once it has what it is for."""
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
    """The newest run, once all are read."""
    until = time.monotonic() + PATIENCE_S
    while len(runs := browser.get(series).json()["runs"]) < RUNS:
        assert time.monotonic() < until, f"{len(runs)} of {RUNS} runs are read after {PATIENCE_S:.0f} s"
        time.sleep(0.2)
    return str(runs[-1]["run"])


def _measured(browser: httpx.Client, addresses: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
    """Seconds of each request, over rounds that each ask everything once."""
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
    """Every route with its median and its slowest request, of all turns together."""
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
