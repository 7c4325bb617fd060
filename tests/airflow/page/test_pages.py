"""What the page shows of what was seen; the words and figures, not their looks."""

from __future__ import annotations

import html
import re
import threading
from dataclasses import replace
from pathlib import Path
from pkgutil import iter_modules

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.routing import APIRoute

from ferry import features
from ferry.clock import wall_ms
from ferry.features.evidence.acts.store import LocalStore
from ferry.features.groups.rules.table import GroupRow, GroupTable
from ferry.features.lanes.rules.listing import Lane
from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import UNREAD
from ferry.model import Pause, TopicPartition
from ferry.model.lane import LaneKind
from ferry.plan.rules.lag import PartitionLag
from ferry.reader.watch import FlowPoll
from ferry.registry import parts_of
from ferry_airflow.page.features import feature_pages
from ferry_airflow.page.filters import moment
from ferry_airflow.page.mount import views
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.values import PAGES, answered, digest
from tests.golden import Golden, brief
from tests.pure.decide.test_ledger import view_of
from tests.tiers import ANSWER_S


def test_what_features_have_of_the_page_is_served(desk: Desk) -> None:
    served = {route.path for route in desk.app.routes if isinstance(route, APIRoute)}
    pages = feature_pages()
    names = {one.__name__.rpartition(".")[2] for one in pages}
    assert parts_of("page").keys() <= names <= {one.name for one in iter_modules(features.__path__)}
    for one in pages:
        assert {route.path for route in one.router.routes} <= served
    tabs = [tab.name for tab in desk.app.state.office.tabs]
    assert tabs == ["overview", "topics", "runs", "offsets", "groups", "backfills", "reports"]


def test_every_route_asks_who_is_there(desk: Desk) -> None:
    routes = [route for route in desk.app.routes if isinstance(route, APIRoute)]
    assert len(routes) == len(desk.app.routes), "of another kind are mounts and sockets, which nothing guards"
    assert len(routes) > 15
    for route in routes:
        assert get_user in {dependency.call for dependency in route.dependant.dependencies}, route.path


def test_nobody_who_is_not_signed_in_sees_anything(desk: Desk) -> None:
    del desk.app.dependency_overrides[get_user]
    for path in (
        "/",
        f"{HERE}/",
        "/static/ferry.css",
        "/icon/light.svg",
        "/charts/7.1.0.js",
        f"/api{HERE}/series",
        "/api/job/x",
    ):
        answer = desk.client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 401, path
    assert desk.act("run", {})[0] == 401


@pytest.mark.parametrize("path", PAGES)
def test_before_the_first_look_every_page_says_so(desk: Desk, path: str) -> None:
    assert "Asking the clusters" in desk.page(f"{HERE}{path}")


def see_down(desk: Desk, *aliases: str) -> None:
    """Let these be down since a moment after both were seen; the ledger lies on the target."""
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 60.0),), troubles={}))
    troubles = {alias: f"{alias} at h:9092 does not <answer>" for alias in aliases}
    desk.watcher.see(FlowPoll(view=None if "backup" in aliases else UNREAD, lags=None, troubles=troubles))


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("down", "known"), [("backup", "; figures are of "), ("primary", "; the lag is of ")])
def test_a_cluster_that_is_down_is_named_above_what_is_known(desk: Desk, path: str, down: str, known: str) -> None:
    see_down(desk, down)
    page = desk.page(f"{HERE}{path}")
    said = page[page.index(f"Cluster {down} cannot be reached since") :].partition("</strong>")
    assert known in said[0]
    assert f"{down} at h:9092 does not &lt;answer&gt;" in said[2].partition("</div>")[0]


@pytest.mark.parametrize("down", [("backup",), ("primary",), ("primary", "backup")])
def test_on_the_map_the_places_that_are_down_are_red_and_no_others(desk: Desk, down: tuple[str, ...]) -> None:
    see_down(desk, *down)
    home = desk.page("/")
    for alias in ("primary", "backup"):
        place = home[home.index(f'id="place:{alias}"') :].partition("</g>")[0]
        assert ('class="place down"' in place, "does not answer" in place) == (alias in down, alias in down), alias
        assert (f"Cluster {alias} cannot be reached since" in home) == (alias in down)
    line = home[home.index('<a id="map:primary:backup"') :].partition("</a>")[0]
    assert ('class="bad"' in line, ">unreachable" in line) == (True, True)


def test_what_is_no_outage_is_told_and_no_cluster_is_down(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}, hindrances=["flow takes <no> topic"]), [digest("r1")])
    page, home = desk.page(f"{HERE}/"), desk.page("/")
    assert "No new figures since" in page
    assert "flow takes &lt;no&gt; topic" in page
    assert "<small>flow takes &lt;no&gt; topic</small>" in home
    for text in (page, home):
        assert "does not answer" not in text
        assert "cannot be reached" not in text


def test_every_page_has_a_title_of_its_own(desk: Desk) -> None:
    paths = (*(path for path in PAGES if path != "/"), "/", "/topic/orders", "/partition/orders/1", "/run/b")
    titles = [re.findall("<title>(.*?)</title>", desk.page(f"{HERE}{path}"))[0] for path in paths]
    assert len(set(titles)) == len(paths), titles
    assert all("primary \u2192 backup \u00b7 Ferry" in title for title in titles)


def test_a_flow_is_on_the_map_and_in_the_list(desk: Desk) -> None:
    desk.watcher.see(
        FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1_234_567, 125.0), lag("orders", 1, 0)), troubles={}),
        [digest("r1")],
    )
    page = desk.page("/")
    line = page[page.index('<a id="map:primary:backup"') :].partition("</a>")[0]
    for told in ("never ran", "lag 2 min 5 s", "1\u202f234\u202f567 records", ">success</tspan>"):
        assert told in line
    assert '1 <span class="unit">of 2</span>' in page


@pytest.mark.parametrize(
    ("lags", "line", "figure", "size", "age"),
    [
        ((lag("orders", 0, None), lag("orders", 1, 0)), "lag not known", "not known", "not known", "not known"),
        (
            (lag("orders", 0, None), lag("orders", 1, 7, 12.0)),
            "lag at least 12 s",
            "at least 7",
            "at least 700 B",
            "at least 12 s",
        ),
        (
            (lag("orders", 0, 7, None), lag("orders", 1, 0)),
            "lag not known",
            "at least 7",
            "at least 700 B",
            "not known",
        ),
    ],
    ids=["one silent", "one silent, one with lag", "of unknown age"],
)
def test_a_lag_that_is_not_known_is_no_zero(
    desk: Desk, lags: tuple[PartitionLag, ...], line: str, figure: str, size: str, age: str
) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=lags, troubles={}), [digest("r1")])
    home, is_known = desk.page("/"), figure != "not known"
    more = f"records, of what is known, {size.removeprefix('at least ')}" if is_known else "in records and bytes"
    drawn = home[home.index('<a id="map:primary:backup"') :].partition("</a>")[0]
    assert f">{line}</text>" in drawn
    second = drawn[drawn.index('class="state"') :].partition("</text>")[0]
    assert ("record" in second, f"{figure} records" in second) == (is_known, is_known)
    assert "caught up" not in home
    rows = home[home.index('<tr id="flow:primary:backup"') :].partition("</tr>")[0]
    assert f'<td class="num">{figure}</td>' in rows
    assert "of 2, 1 unknown</span>" in rows
    overview = desk.page(f"{HERE}/")
    assert f"<dt>Lag</dt><dd>{figure}<small>{more}</small>" in overview
    worst = overview[overview.index('<tr id="worst:orders"') :].partition("</tr>")[0]
    assert [f'<td class="num">{text}</td>' in worst for text in (figure, size, age)] == [True] * 3
    topic = desk.page(f"{HERE}/topics")
    assert f'<td class="num">{figure}</td>' in topic[topic.index('<tr id="topic:orders"') :].partition("</tr>")[0]
    page = desk.page(f"{HERE}/topic/orders")
    assert f"<dt>Lag</dt><dd>{figure}<small>{more}</small>" in page
    measured = [
        [point[1] for point in desk.client.get(f"/api{HERE}/series{of}").json()["lag"]] for of in ("", "?topic=orders")
    ]
    assert measured == ([[7], [7]] if is_known else [[], []])


def test_ten_thousand_partitions_are_cut_into_pages(desk: Desk) -> None:
    rows = tuple(lag(f"topic-{number:05d}", 0, number, float(number)) for number in range(10_000))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=rows, troubles={}))
    first = desk.page(f"{HERE}/topics")
    assert first.count('scope="row"') == 50
    assert "topic-09999" in first
    assert "Page 1 of 200" in first
    assert "topic-00000" in desk.page(f"{HERE}/topics?page=200")
    assert "topic-00000" in desk.page(f"{HERE}/topics?page=99999")
    assert desk.page(f"{HERE}/topics?q=0042").count('scope="row"') == 11
    assert "topic-00000" in desk.page(f"{HERE}/topics?sort=topic")


def test_groups_are_numbered_by_their_pages_and_it_is_said_that_there_are_more(desk: Desk) -> None:
    tables = tuple(GroupTable(group=f"group-{number:02}", source=None, target=None, rows=()) for number in range(45))
    answered(desk, ("OfGroups", ()), (tables, (), False))
    page = desk.page(f"{HERE}/groups?page=2")
    assert "21\u201340 of 45 groups" in page
    assert "41\u201345 of 45 groups" in desk.page(f"{HERE}/groups?page=3")
    assert "Only the first" not in page


def test_all_partitions_of_a_group_are_on_pages_of_its_own(desk: Desk) -> None:
    rows = tuple(GroupRow(source=TopicPartition("orders", number), target=None) for number in range(120))
    tables = tuple(GroupTable(group=name, source=None, target=None, rows=rows) for name in ("a b", "a b c"))
    answered(desk, ("OfGroups", ()), (tables, (), False))
    many = desk.page(f"{HERE}/groups")
    assert many.count("and 80 more partitions") == 2
    assert 'href="?group=a%20b"' in many
    one = desk.page(f"{HERE}/groups?group=a%20b&partitions=3")
    assert "101\u2013120 of 120 partitions" in one
    assert ("orders-119" in one, "orders-99" in one, "a b c" in one) == (True, False, False)
    assert "None is called" in desk.page(f"{HERE}/groups?group=c")


def test_that_groups_were_cut_off_is_said(desk: Desk) -> None:
    answered(desk, ("OfGroups", ()), ((), (), True))
    assert "Only the first 2\u202f000 groups by name are here" in desk.page(f"{HERE}/groups")


@pytest.mark.parametrize(
    ("path", "key", "got"),
    [("groups", ("OfGroups", ()), ((), (), False)), ("backfills", ("lanes",), [])],
)
def test_an_answer_that_could_not_be_renewed_keeps_its_age(
    desk: Desk, path: str, key: tuple[object, ...], got: object
) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    answered(desk, key, got)
    kept, noon = desk.watcher.kept_answers[key], 1_700_000_000_000
    kept.at_ms, kept.failed_ms, kept.error = noon, wall_ms(), "it is silent"
    page = desk.page(f"{HERE}/{path}")
    tried = page.partition("Last tried ")[2].partition("</p>")[0]
    assert (moment(kept.failed_ms) in tried, moment(noon) in tried) == (True, False)
    assert moment(noon) in page.partition("Last tried ")[2].partition("</p>")[2]


def test_lanes_beyond_those_that_are_read_are_counted(desk: Desk) -> None:
    lane = Lane(
        name="backfill-a", kind=LaneKind.BACKFILL, topics=(), parts=(), windows=1, last_run=None, whole=80, left=20
    )
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    answered(desk, ("lanes",), [lane])
    desk.watcher.amend(lanes=("live", "backfill-a", "backfill-b", "drill-c"))
    page = desk.page(f"{HERE}/backfills")
    assert "and 2 more lanes" in page
    assert "75 % copied, 20 offsets left" in page


@pytest.mark.parametrize(
    "path",
    [
        "/topics?page=x",
        "/partition/orders/-1",
        "/partition/orders/two",
        "/receipt/orders/0/-4",
        "/offsets?topic=orders&partition=-1&offset=-5",
        "/offsets?topic=orders&offset=99999999999999999999",
        "/offsets?topic=orders&back=perhaps",
        "/report/x",
    ],
    ids=brief,
)
def test_a_bad_number_in_an_address_is_told_in_a_sentence(desk: Desk, path: str, golden: Golden) -> None:
    answer = desk.client.get(f"{HERE}{path}", headers={"Accept": "text/html"})
    assert answer.status_code == 422
    what = answer.text.partition('<h1 id="what">')[2]
    golden(html.unescape(what.partition("<p>")[2].partition("</p>")[0]))
    assert not desk.watcher.kept_answers, "no cluster is asked"


def test_a_report_that_is_being_read_loads_itself_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = threading.Event()

    def late(store: LocalStore, name: str) -> bytes:
        hold.wait(2 * ANSWER_S)
        return b""

    monkeypatch.setattr(LocalStore, "read", late)
    answer = desk.client.get(f"{HERE}/report/7", headers={"Accept": "text/html"})
    saved = desk.client.get(f"{HERE}/report/7?form=pdf", headers={"Accept": "text/html"})
    hold.set()
    assert (answer.status_code, answer.headers["refresh"]) == (503, "1")
    assert (saved.status_code, saved.headers["refresh"]) == (503, "1")
    for page in (answer, saved):  # a browser that saves the file keeps this page: it leads back
        assert {f"{HERE}/reports", f"{HERE}/"} <= set(re.findall(r'class="button" href="([^"]*)"', page.text))
    assert "loads itself again" in answer.text
    assert "loads itself again" not in saved.text


def test_one_is_not_told_as_several(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1, 5.0),), troubles={}), [digest("r1")])
    assert "2 clusters, 1 flow<" in desk.page("/")
    assert "1 topic<" in desk.page(f"{HERE}/topics")
    assert "1 partition<" in desk.page(f"{HERE}/topic/orders")


def test_series_are_bounded_and_narrowed_to_a_topic(desk: Desk) -> None:
    for _ in range(1_000):
        desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), [digest("r1")])
    found = desk.client.get(f"/api{HERE}/series").json()
    assert len(found["lag"]) <= 400
    assert found["lag"][-1][1:] == [5, 500, 2.0, 0, 0, 0.0]
    assert found["runs"][0]["records"] == 900
    assert desk.client.get(f"/api{HERE}/series?topic=other").json()["runs"] == []
    for query in ("topic=orders", "topic=orders&partition=0"):
        part = desk.client.get(f"/api{HERE}/series?{query}").json()
        assert len(part["lag"]) <= 400
        assert part["lag"][-1][1:] == [5, 500, 2.0, 0, 0, 0.0]
    assert desk.client.get(f"/api{HERE}/series?topic=orders&partition=1").json()["lag"] == []


def test_series_have_a_time_range_and_mark_pauses_and_outages(desk: Desk) -> None:
    held = view_of(pause_record(Pause(topic="clicks", who="ada", why="migration", since_ms=1)))
    lags = (lag("orders", 0, 5, 2.0), lag("clicks", 0, 9, 600.0))
    now = wall_ms()
    ago = {"a": 7_000_000, "b": 500_000}
    old, new = (replace(digest(run), started_ms=now - ms, ended_ms=now - ms) for run, ms in ago.items())
    desk.watcher.see(FlowPoll(view=held, lags=None, troubles={"primary": "no answer"}), [new, old])
    desk.watcher.see(FlowPoll(view=held, lags=lags, troubles={}), [new, old])
    for query, runs, length in (("", ["a", "b"], 7e6), ("?range=1h", ["b"], 3.6e6), ("?range=15m", ["b"], 9e5)):
        found = desk.client.get(f"/api{HERE}/series{query}").json()
        assert [run["run"] for run in found["runs"]] == runs
        assert abs(found["to"] - found["from"] - length) < 60_000
        assert [(one["mark"], one["of"], one["to"] is None) for one in found["spells"]] == [
            ("pause", "clicks", True),
            ("outage", "primary", False),
        ]
        assert found["lag"][-1][1:] == [5, 500, 2.0, 9, 900, 600.0], "what is paused is apart"
    of_topic = desk.client.get(f"/api{HERE}/series?topic=orders").json()
    assert [one["mark"] for one in of_topic["spells"]] == ["outage"], "another topic is paused"
    page = desk.page(f"{HERE}/?range=4h")
    assert 'data-range="4h"' in page
    assert "<dt>Lag</dt><dd>5<small>records at most, 500 B</small>" in page
    assert "in paused topics: 9 records, 900 B" in page
    assert "<dt>Oldest not yet copied</dt><dd>2.0 s<" in page
    assert "in paused topics: 10 min" in page
    assert "in paused topics: 1 of 1" in page
    home = desk.page("/")
    row = home[home.index('<tr id="flow:primary:backup"') :].partition("</tr>")[0]
    assert '<td class="num">5<small>in paused topics: 9</small></td>' in row
    assert '<td class="num">2.0 s</td>' in row
    assert 'aria-current="true">4 h</a>' in page
    for path in ("topic/orders", "partition/orders/0"):
        assert 'data-range="15m"' in desk.page(f"{HERE}/{path}?range=15m")


def test_a_topic_and_a_partition_have_charts_of_records_bytes_and_seconds(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 3, 5, 2.0),), troubles={}))
    for path, place in (("topic/orders", 'data-topic="orders"'), ("partition/orders/3", 'data-partition="3"')):
        page = desk.page(f"{HERE}/{path}")
        figures = [line for line in page.splitlines() if "<figure" in line and place in line]
        assert {"lag", "due", "bytes"} <= {re.findall(r'data-chart="(\w+)"', line)[0] for line in figures}


def test_an_address_that_is_not_there_leads_back_to_its_flow(desk: Desk) -> None:
    for path, leads in ((f"{HERE}/nosuch", True), ("/nosuch", False)):
        answer = desk.client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 404
        assert "The page has nothing at this address" in answer.text
        assert (f'href="{HERE}/">The flow<' in answer.text) == leads


def test_no_configuration_and_no_flow_have_pages_of_their_own(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FERRY_CONFIG")
    assert "FERRY_CONFIG is not set" in desk.page("/")
    monkeypatch.setenv("FERRY_CONFIG", "/nowhere/flows.properties")
    assert "/nowhere/flows.properties cannot be read" in desk.page("/")
    file = tmp_path / "flows.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = a:9092\nb.bootstrap.servers = b:9092\n")
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    page = desk.page("/")
    assert "No flow is configured yet" in page
    assert f"{file} enables no flow" in page


def test_the_tab_of_another_dag_says_that_it_is_no_flow(desk: Desk) -> None:
    assert "example is not a DAG of Ferry" in desk.page("/dag/example")
    answer = desk.client.get("/dag/ferry_verify__primary__backup", follow_redirects=False)
    assert answer.headers["location"] == f"{HERE}/"


@pytest.mark.parametrize("verb", ["verify", "backfill", "drill", "switchover", "failover", "failback"])
def test_the_tab_of_a_run_is_of_that_dag_also_where_another_has_a_run_of_its_id(desk: Desk, verb: str) -> None:
    run = "scheduled__2026-11-23T00%3A00%3A00%2B00%3A00"
    for dag, place in (("ferry", ""), (f"ferry_{verb}", f"dag/ferry_{verb}__primary__backup/")):
        answer = desk.client.get(f"/dag/{dag}__primary__backup/run/{run}", follow_redirects=False)
        assert answer.headers["location"] == f"{HERE}/{place}run/{run}"


def test_pages_load_nothing_from_elsewhere(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}), [digest("r1")])
    for path in ("/", *(f"{HERE}{path}" for path in PAGES)):
        page = desk.page(path)
        assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", page), path
        assert not re.search(r"<script(?![^>]*src=)", page), path
    answer = desk.client.get("/")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_the_places_in_airflow_are_one_address_each() -> None:
    assert {view["destination"] for view in views()} == {"nav", "dag", "dag_run"}
    assert len({view["url_route"] for view in views()}) == 3
    assert all(view["href"].startswith("/ferry/") for view in views())
