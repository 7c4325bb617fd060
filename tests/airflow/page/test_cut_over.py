"""What the page shows of cut-overs: approvals that are waited for, where clients are, and what an approver is shown."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from sqlalchemy.orm import Session

from ferry.ledger.ledger import UNREAD
from ferry.ledger.switch_codec import begun_record, done_records, end_record, switch_record
from ferry.model import Flow, Record
from ferry.model.switch import Evidence, Step, StepBegun, StepDone, Switch, SwitchEnd, SwitchOutcome, Verb
from ferry.reader.documents import Status
from ferry.reader.snapshot import moved_of
from ferry.reader.watch import FlowPoll
from ferry_airflow.page import dag_runs
from ferry_airflow.page.clients import clients_of_all, last_moved
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.everything import MOVED
from tests.airflow.page.test_beside import DRILL, RUN, STORY, planted, shown
from tests.browser.page.test_map import flows
from tests.pure.decide.test_ledger import view_of

FLOW = Flow(source="primary", target="backup")
SWITCHOVER = "ferry_switchover__primary__backup"
NINE = MOVED.since_ms


def opened(switch: str, verb: Verb = Verb.SWITCHOVER) -> Record:
    return switch_record(
        Switch(id=switch, verb=verb, named=FLOW, via=FLOW, who="ada@h", approved_by="eve", approved_ms=NINE, at_ms=NINE)
    )


def done(switch: str, step: Step, at_ms: int) -> list[Record]:
    found = Evidence(sentence="done", rows=({"topic": "orders"},))
    return done_records(switch, StepDone(step=step, who="ada@h", begun_ms=at_ms, done_ms=at_ms, evidence=found))


def ended(switch: str, outcome: SwitchOutcome) -> Record:
    return end_record(switch, SwitchEnd(outcome=outcome, who="ada@h", why="", at_ms=NINE + 9))


def test_an_approval_that_is_waited_for_is_on_the_list_and_on_the_overview_for_who_may_see_it(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    answers = f'href="/dags/{SWITCHOVER}/runs/manual__1/required_actions"'
    for path in ("/", f"{HERE}/"):
        assert answers not in desk.page(path)
    desk.asking.add((SWITCHOVER, "manual__1"))
    for path in ("/", f"{HERE}/"):
        page = desk.page(path)
        assert (answers in page, f'href="{HERE}/dag/{SWITCHOVER}/run/manual__1"' in page) == (True, True), path
        assert page.index("A switchover ") < page.index("waits for an approval") < page.index(answers)
    desk.refused.add((SWITCHOVER, "GET", DagAccessEntity.RUN))
    for path in ("/", f"{HERE}/"):
        assert answers not in desk.page(path)


def test_what_begins_a_cut_over_is_on_the_overview_and_one_press_from_an_outage(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    verbs = ("readiness", "drill", "switchover", "failover")
    there = f'href="{HERE}/#cut-over"'
    for path in ("/", "/reports"):
        page = desk.page(f"{HERE}{path}")
        assert [verb for verb in verbs if f'data-ask="{verb}"' not in page] == [], path
        assert 'data-ask="failback"' not in page, "the file has no flow back"
    assert there not in desk.page(f"{HERE}/")
    for cluster in ("backup", "primary"):
        desk.watcher.see(FlowPoll(view=None, lags=None, troubles={cluster: "it does not answer"}))
        assert (there in desk.page(f"{HERE}/topics")) == (cluster == "primary"), "the target is where clients would go"
    desk.refused |= {(f"ferry_{verb}__primary__backup", "POST", DagAccessEntity.RUN) for verb in verbs}
    assert there not in desk.page(f"{HERE}/topics")
    assert 'data-ask="failover"' not in desk.page(f"{HERE}/")


def test_each_row_of_the_list_of_flows_leads_to_its_switches_and_drills(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    page = desk.page("/")
    row = page[page.index('<tr id="flow:primary:backup"') :].partition("</tr>")[0]
    assert f'href="{HERE}/#cut-over"' in row
    assert 'id="cut-over"' in desk.page(f"{HERE}/"), "the place that it leads to"
    desk.refused |= {
        (f"ferry{verb}__primary__backup", "POST", DagAccessEntity.RUN)
        for verb in ("", "_drill", "_switchover", "_failover", "_failback")
    }
    assert f'href="{HERE}/#cut-over"' in desk.page("/")
    section = desk.page(f"{HERE}/").partition('id="cut-over"')[2].partition("</section>")[0]
    assert f'href="{HERE}/reports"' in section, "it is there for users without rights, too"
    assert "<button" not in section


def test_the_switch_that_moved_clients_last_is_read_without_the_rows_of_its_steps() -> None:
    records = [
        *(opened("s1"), *done("s1", Step.PROMOTE, NINE + 1), ended("s1", SwitchOutcome.FINISHED)),
        *(opened("s2", Verb.FAILOVER), *done("s2", Step.PROMOTE, NINE + 5)),
        *(opened("s3"), ended("s3", SwitchOutcome.ABANDONED)),
    ]
    assert moved_of(UNREAD) is None
    last = replace(MOVED, verb=Verb.FAILOVER, switch="s2", since_ms=NINE + 5, end=None, redirected=False)
    assert moved_of(view_of(*records)) == last
    only_keys = [one for one in records if json.loads(one.key)[-1] != 0]
    assert len(only_keys) == len(records) - 2
    assert moved_of(view_of(*only_keys)) == last, "whatever became of the rows"
    begun = StepBegun(step=Step.PROMOTE, who="ada@h", begun_ms=NINE, token="t")
    assert moved_of(view_of(opened("s4"), begun_record("s4", begun))) is None, "begun is not done"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "Clients are on backup"),
        ({"end": None}, "Clients are being moved to backup"),
        ({"end": SwitchOutcome.ABANDONED, "redirected": False}, "Where clients are is not known"),
        ({"end": SwitchOutcome.ABANDONED}, "Clients are on backup"),
    ],
)
def test_where_clients_are_is_on_the_list_and_on_the_overview(
    desk: Desk, changed: dict[str, object], said: str
) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    for path in ("/", f"{HERE}/"):
        assert "Clients are" not in desk.page(path)
    desk.watcher.amend(moved=replace(MOVED, **changed))  # type: ignore[arg-type]
    for path in ("/", f"{HERE}/"):
        assert said in desk.page(path)
    assert "by switchover s1" in desk.page(f"{HERE}/")
    config = Path(os.environ["FERRY_CONFIG"])
    config.write_text(f"{config.read_text()}backup->primary.enabled = true\nbackup->primary.topics = .*\n")
    desk.refused.add(("ferry__backup__primary", "GET", None))
    for path in ("/", f"{HERE}/"):
        assert said not in desk.page(path), "the ledger of the flow back may know better"


@pytest.fixture
def site(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The page at one of two sites that share a file: the flow back is in it, but is not local."""
    config = Path(os.environ["FERRY_CONFIG"])
    config.write_text(f"{config.read_text()}backup->primary.enabled = true\nbackup->primary.topics = .*\n")
    monkeypatch.setenv("FERRY_CLUSTERS", "backup")
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    desk.watcher.amend(moved=MOVED)
    return desk


def test_a_site_does_not_claim_where_clients_are_without_the_ledger_of_the_other(site: Desk) -> None:
    for path in ("/", f"{HERE}/"):
        assert "Clients are" not in site.page(path), path
    assert "<dt>Clients</dt><dd>\u2013<small>not known here" in site.page(f"{HERE}/")


def test_a_site_starts_switches_whose_flow_back_is_not_local(site: Desk) -> None:
    for path in ("/", "/reports"):
        assert 'data-ask="failback"' in site.page(f"{HERE}{path}"), path
    for verb, cluster in (("failback", "primary"), ("switchover", "backup"), ("failover", "backup")):
        status, answer = site.act(verb, {"reason": "drill", "confirm": cluster, "reverse": True})
        assert status == 200, answer
    assert [dag for dag, *_ in site.triggered] == [
        f"ferry_{verb}__primary__backup" for verb in ("failback", "switchover", "failover")
    ]


def test_a_flow_that_is_not_local_is_not_called_missing(site: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    page = site.page("/flow/backup/primary/", status=404)
    assert "FERRY_CLUSTERS" in page
    assert "has no enabled flow" not in page
    assert "has no enabled flow" in site.page("/flow/backup/nosuch/", status=404)
    monkeypatch.setenv("FERRY_CLUSTERS", "third")
    config = Path(os.environ["FERRY_CONFIG"])
    text = config.read_text().replace("clusters = ", "clusters = third, ")
    config.write_text(f"{text}third.bootstrap.servers = 127.0.0.1:1\n")
    page = site.page("/")
    assert "FERRY_CLUSTERS" in page
    assert "enables no flow" not in page


def test_the_later_of_both_directions_counts() -> None:
    back = replace(MOVED, cluster="primary", since_ms=NINE + 1)
    there, other = Status(ledger_ms=NINE, moved=MOVED), Status(ledger_ms=NINE, moved=back)
    assert last_moved(there, other) == last_moved(other, there) == back
    assert last_moved(there, replace(other, moved=None)) == MOVED
    slow = replace(back, switch="b1", since_ms=NINE - 9, found=(MOVED.switch,))
    assert last_moved(there, replace(other, moved=slow)) == slow, "it found the other one when it began"
    assert last_moved(there, Status(moved=back)) is None, "that ledger was not read"
    forth, way_back = flows("a->b", "b->a")
    forth, way_back = replace(forth, seen=there), replace(way_back, seen=other)
    known = [forth.flow, way_back.flow]
    assert clients_of_all([forth, way_back], known) == {forth.flow: back, way_back.flow: back}
    assert clients_of_all([forth], known) == {}
    assert clients_of_all([forth], [forth.flow]) == {forth.flow: MOVED}


def test_what_an_approver_is_shown_is_on_the_page_of_the_run(
    tables: Session, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "1. freeze: topics",
        "NOT OK: lag: <much>",
        "warning: writers: any",
        "not known: clock: ?",
        "ok: topics: 3",
    )
    text = "\n".join(f"- {line}" for line in lines)
    planted(tables, DRILL, 1, {"preview": "success", "approve": "awaiting_input"}, {"preview": json.dumps(text)})
    story = dag_runs.story_of(DRILL, RUN, with_returned=True)
    assert story is not None
    assert (story.preview, story.returned) == (lines, {})
    page = shown(desk, monkeypatch, DRILL, story)
    found = re.findall(r'class="badge (good|unknown|warn|bad)">(lag|writers|clock|topics)<', page)
    assert found == [("bad", "lag"), ("warn", "writers"), ("unknown", "clock"), ("good", "topics")]
    assert "Failed: </span>&lt;much&gt;<" in page
    assert ">1. freeze: topics<" in page
    assert "What it would do, and the checks" not in shown(desk, monkeypatch, DRILL, replace(STORY, row=story.row))
