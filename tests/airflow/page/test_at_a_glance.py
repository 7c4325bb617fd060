"""The list of flows when much is wrong: the worst first, some of them only, and each trouble once."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.ledger.ledger import UNREAD
from ferry.reader.documents import Status, Trouble
from ferry.reader.watch import Sight
from ferry_airflow.naming import dag_id
from ferry_airflow.page.airflow_side import DagState
from ferry_airflow.page.flow_health import Standing
from ferry_airflow.page.flow_summary import ORDER, chosen, hindrances, outages, sorted_by_mood
from ferry_airflow.page.page_state import OpenFlow
from ferry_airflow.page.run_words import Mood
from tests.airflow.page.conftest import Desk, lag
from tests.airflow.page.values import digest
from tests.browser.page.test_map import flows

NAMES = ("a->b", "c->b", "d->a")


def stood(moods: tuple[Mood, ...]) -> list[OpenFlow]:
    return [
        replace(one, standing=Standing(mood=mood, word=f"is {mood.value}", why=""))
        for one, mood in zip(flows(*NAMES), moods, strict=True)
    ]


def names(found: list[OpenFlow]) -> list[str]:
    return [str(one.flow) for one in found]


def test_the_worst_is_first_and_else_the_files_order_stays() -> None:
    assert set(ORDER) == set(Mood)
    assert names(sorted_by_mood(stood((Mood.GOOD, Mood.BAD, Mood.GOOD)))) == ["c->b", "a->b", "d->a"]
    assert names(sorted_by_mood(stood((Mood.BUSY, Mood.HELD, Mood.WARN)))) == ["d->a", "c->b", "a->b"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("", NAMES), (" ->B", ("a->b", "c->b")), ("c\u2192b", ("c->b",)), ("is good", ("a->b", "d->a")), ("nothing", ())],
)
def test_flows_are_found_by_name_and_by_state(text: str, wanted: tuple[str, ...]) -> None:
    assert tuple(names(chosen(stood((Mood.GOOD, Mood.BAD, Mood.GOOD)), text))) == wanted


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
        Sight(view=UNREAD, lags=(lag("t", 0, 0),), troubles={}, hindrances=["no <secret>"]), [digest("r1")]
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


def test_what_hinders_the_page_has_a_banner_above_the_list(desk: Desk) -> None:
    desk.watcher.see(Sight(view=UNREAD, lags=(), troubles={}, hindrances=["no <secret>"]), [digest("r1")])
    page = desk.page("/")
    assert "No new figures since" in page
    assert "<p>no &lt;secret&gt;</p><p>1 flow: primary-&gt;backup</p>" in page
