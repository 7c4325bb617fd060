"""The list of flows when much is wrong: the worst first, some of them only, and each trouble once."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.ledger.history import PastState
from ferry.ledger.ledger import UNREAD
from ferry.plan.rules.lag import TotalLag
from ferry.reader.documents import Status, Trouble
from ferry.reader.watch import FlowPoll
from ferry_airflow.naming import dag_id
from ferry_airflow.page.airflow_side import DagState
from ferry_airflow.page.chart_map import drawn
from ferry_airflow.page.flow_health import NEVER_RAN, Standing
from ferry_airflow.page.flow_summary import (
    ORDER,
    SORTS,
    chosen,
    hindrances,
    outages,
    sorted_by,
    sorted_by_condition,
    sorted_by_use,
)
from ferry_airflow.page.page_state import OpenFlow
from ferry_airflow.page.run_words import Condition
from tests.airflow.page.conftest import HERE, TEXT, Desk, lag
from tests.airflow.page.everything import filled
from tests.airflow.page.values import digest
from tests.browser.page.test_map import flows
from tests.pure.decide.values import refusal

NAMES = ("a->b", "c->b", "d->a")


def stood(conditions: tuple[Condition, ...]) -> list[OpenFlow]:
    return [
        replace(one, standing=Standing(condition=condition, word=f"is {condition.value}", why=""))
        for one, condition in zip(flows(*NAMES), conditions, strict=True)
    ]


def names(found: list[OpenFlow]) -> list[str]:
    return [str(one.flow) for one in found]


def used(never: str, unknown: str = "") -> list[OpenFlow]:
    """Flows that are well, of which one never ran and one is not read yet."""
    seen = {never: Status(ledger_ms=1, never_ran=True), unknown: Status()}
    return [
        replace(one, seen=seen.get(str(one.flow), Status(ledger_ms=1)))
        for one in stood((Condition.GOOD, Condition.GOOD, Condition.GOOD))
    ]


def test_a_flow_that_has_run_comes_before_one_that_never_ran_and_then_the_name_decides() -> None:
    assert names(sorted_by_use(used("a->b"))) == ["c->b", "d->a", "a->b"]
    assert names(sorted_by_use(used("a->b", "c->b"))) == ["d->a", "c->b", "a->b"]
    assert names(sorted_by_use(used("")[::-1])) == ["a->b", "c->b", "d->a"]
    assert names(sorted_by_condition(used("a->b"))) == ["c->b", "d->a", "a->b"]


def test_a_flow_that_never_ran_is_last_unless_it_needs_attention() -> None:
    grey = Standing(condition=Condition.UNKNOWN, word=NEVER_RAN, why="")
    first, *rest = stood((Condition.UNKNOWN, Condition.GOOD, Condition.BUSY))
    assert names(sorted_by_condition([replace(first, standing=grey), *rest])) == ["d->a", "c->b", "a->b"]
    down = replace(grey, condition=Condition.BAD, word="unreachable")
    assert names(sorted_by_condition([replace(first, standing=down), *rest])) == ["a->b", "d->a", "c->b"]


def test_the_map_begins_with_the_source_of_a_flow_that_has_run() -> None:
    back, there = flows("backup->primary", "primary->backup")
    seen = (replace(back, seen=Status(ledger_ms=1, never_ran=True)), replace(there, seen=Status(ledger_ms=1)))
    drawing = drawn(sorted_by_use(seen))
    assert [one.alias for one in sorted(drawing.places, key=lambda one: one.x)] == ["primary", "backup"]


def test_the_worst_is_first_and_else_the_name_decides() -> None:
    assert set(ORDER) == set(Condition)
    assert names(sorted_by_condition(stood((Condition.GOOD, Condition.BAD, Condition.GOOD)))) == [
        "c->b",
        "a->b",
        "d->a",
    ]
    assert names(sorted_by_condition(stood((Condition.BUSY, Condition.HELD, Condition.WARN)))) == [
        "d->a",
        "c->b",
        "a->b",
    ]


def total(records: int, size: int, seconds: float | None, unknown: int = 0) -> TotalLag:
    return TotalLag(partitions=3, behind=2, unknown=unknown, records=records, bytes=size, seconds=seconds)


@pytest.mark.parametrize(
    ("sort", "wanted"),
    [
        ("", ["c->b", "a->b", "d->a"]),
        ("no such column", ["c->b", "a->b", "d->a"]),
        ("name", ["a->b", "c->b", "d->a"]),
        ("records", ["d->a", "a->b", "c->b"]),
        ("bytes", ["d->a", "c->b", "a->b"]),
        ("seconds", ["d->a", "a->b", "c->b"]),
    ],
)
def test_flows_are_sorted_by_lag_and_lag_that_is_not_known_comes_first(sort: str, wanted: list[str]) -> None:
    lags = (total(9, 100, 4.0), total(8, 200, 2.0), total(1, 1, 1.0, unknown=1))
    of = zip(stood((Condition.GOOD, Condition.BAD, Condition.GOOD)), lags, strict=True)
    found = [replace(one, seen=replace(one.seen, total=its)) for one, its in of]
    assert names(sorted_by(found, sort)) == wanted
    if sort in SORTS and sort != "name":
        never = [replace(one, seen=replace(one.seen, total=None)) if one.flow.source == "c" else one for one in found]
        assert set(names(sorted_by(never, sort))[:2]) == {"c->b", "d->a"}, "no lag was read yet"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", NAMES), (" ->B", ("a->b", "c->b")), ("c\u2192b", ("c->b",)), ("is good", ("a->b", "d->a")), ("nothing", ())],
)
def test_flows_are_found_by_name_and_by_state(text: str, wanted: tuple[str, ...]) -> None:
    assert tuple(names(chosen(stood((Condition.GOOD, Condition.BAD, Condition.GOOD)), text))) == wanted


def test_a_cluster_that_several_flows_miss_is_told_once_since_the_first_of_them_missed_it() -> None:
    late, early, other = (
        Trouble(cluster=cluster, why=f"why {at}", since_ms=at) for cluster, at in (("b", 90), ("b", 30), ("a", 60))
    )
    seen = (Status(troubles=(late,)), Status(troubles=(early,)), Status(troubles=(other,)))
    found = outages([replace(one, seen=its) for one, its in zip(flows(*NAMES), seen, strict=True)])
    assert [(one.trouble, [str(flow) for flow in one.flows]) for one in found] == [
        (early, ["a->b", "c->b"]),
        (other, ["d->a"]),
    ]


def test_what_hinders_the_page_is_told_once_for_all_flows_that_it_hinders() -> None:
    one, same, other = (
        Trouble(cluster="", why=why, since_ms=at) for why, at in (("no secret", 9), ("no secret", 5), ("no right", 7))
    )
    seen = (Status(hindrances=(one,)), Status(hindrances=(same, other)), Status())
    found = hindrances([replace(flow, seen=its) for flow, its in zip(flows(*NAMES), seen, strict=True)])
    assert [(shared.trouble, len(shared.flows)) for shared in found] == [(same, 2), (other, 1)]


def test_the_list_begins_with_what_is_amiss_and_finds_flows(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = flows(*NAMES)
    lines = ["clusters = a, b, c, d", *(f"{alias}.bootstrap.servers = h:1" for alias in "abcd")]
    lines += [f"{name}.{key}" for name in NAMES for key in ("enabled = true", "topics = t")]
    file = tmp_path / "three.properties"
    file.write_text("\n".join(lines))
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    desk.watcher.see(
        FlowPoll(view=UNREAD, lags=(lag("t", 0, 0),), troubles={}, hindrances=["no <secret>"]), [digest("r1")]
    )
    desk.watcher.amend(never_ran=False)
    desk.others[dag_id(made[2].flow)] = DagState(known=False)
    page = desk.page("/")
    assert re.findall('<tr id="flow:(.*?)"', page) == ["a:b", "c:b", "d:a"], "all are amber"
    desk.watcher.amend(hindrances=())
    page = desk.page("/")
    assert re.findall('<tr id="flow:(.*?)"', page) == ["d:a", "a:b", "c:b"]
    assert "1 no DAG</span>" in page
    assert "2 healthy</span>" in page
    page = desk.page("/?q=no%20DAG")
    assert re.findall('<tr id="flow:(.*?)"', page) == ["d:a"]
    assert 'href="/flow/a/b/"' in page, "the map has all"
    page = desk.page("/?q=%3Cx%3E")
    assert "No flow has \u201c&lt;x&gt;\u201d in its name or state" in page
    assert 'data-live="0"' not in page, "it is not asked for as if the first look were still to come"


@pytest.mark.parametrize(
    ("query", "sorted_by_column"),
    [("", "State"), ("?sort=seconds", "Oldest"), ("?sort=nothing", "State"), ("?q=primary&sort=name", "Flow")],
)
def test_the_list_shows_by_which_column_it_is_sorted(desk: Desk, query: str, sorted_by_column: str) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("t", 0, 0),), troubles={}), [digest("r1")])
    page = desk.page(f"/{query}")
    assert re.findall(r'aria-sort="\w+"><a href="[^"]*">(\w+)', page) == [sorted_by_column]
    kept = re.findall(r'type="hidden" name="(\w+)" value="(\w+)"', page)
    assert kept == ([] if sorted_by_column == "State" else [("sort", query.rpartition("=")[2])])


@pytest.mark.parametrize(("seconds", "is_over"), [(299.0, False), (301.0, True), (None, False)])
def test_a_figure_over_the_recovery_point_stands_out(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float | None, is_over: bool
) -> None:
    file = tmp_path / "limited.properties"
    file.write_text(f"{TEXT}ferry.rpo.seconds = 300\n")
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("t", 0, 5, seconds),), troubles={}), [digest("r1")])
    for path in ("/", f"{HERE}/", f"{HERE}/topics", f"{HERE}/topic/t"):
        assert ('<span class="over">' in desk.page(path)) is is_over, path


@pytest.mark.parametrize("refusals", [0, 2])
def test_what_was_refused_stands_out_and_nothing_refused_does_not(desk: Desk, refusals: int) -> None:
    refused = (refusal(topic="t"),) * refusals
    desk.watcher.see(
        FlowPoll(view=UNREAD, lags=(lag("t", 0, 0),), troubles={}), [digest("r1", PastState.PARTIAL, *refused)]
    )
    for path in ("/", f"{HERE}/runs"):
        page = desk.page(path)
        assert ('<strong class="over">2</strong>' in page) is bool(refusals), path
        assert ('<span class="dim">0</span>' in page) is not bool(refusals), path
    assert ('<dd class="over">2<' in desk.page(f"{HERE}/")) is bool(refusals)


@pytest.mark.parametrize("path", ["/", f"{HERE}/topics", f"{HERE}/groups"])
def test_a_filtered_list_has_a_link_to_all_of_it(desk: Desk, path: str) -> None:
    filled(desk)
    field = re.compile(r'<form[^>]* role="search">.*?</form>', re.DOTALL)
    assert "<a " not in "".join(field.findall(desk.page(path)))
    (form,) = field.findall(desk.page(f"{path}?q=o&page=2"))
    assert re.findall(r'<a href="(.*?)"', form) == ["?"]


def test_what_hinders_the_page_has_a_banner_above_the_list(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}, hindrances=["no <secret>"]), [digest("r1")])
    page = desk.page("/")
    assert "No new figures since" in page
    assert "<p>no &lt;secret&gt;</p><p>1 flow: primary-&gt;backup</p>" in page
