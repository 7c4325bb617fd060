"""Who may do what, from where, and what is left in the audit log."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import playwright
import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from fastapi.routing import APIRoute

from ferry.config.settings import load
from ferry.features.groups.rules.table import GroupTable, NotShown
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.readiness import Readiness
from ferry.ledger.codec import pause_record
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.model import Pause
from ferry.model.check import Check
from ferry.model.switch import SwitchState
from ferry.reader import answering
from ferry.reader.client import Reader
from ferry.reader.documents import Answer
from ferry.reader.watch import FlowPoll, FlowWatch
from ferry.reader.watcher import Job
from ferry_airflow.page import rendering
from ferry_airflow.page.access import RECORDS
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.origin import from_here
from ferry_airflow.page.page_state import open_flow
from tests.airflow.page.conftest import FLOW, HERE, REPORTS, RUN, TEXT, Desk, Right, lag
from tests.airflow.page.everything import filled
from tests.airflow.page.values import PAGES, answered
from tests.golden import Golden
from tests.pure.decide.test_ledger import view_of

ROOT = Path(__file__).parents[3]
OWN, VERIFY = "ferry__primary__backup", "ferry_verify__primary__backup"
BACKFILL, DRILL = "ferry_backfill__primary__backup", "ferry_drill__primary__backup"
GROUPS = "ferry_groups__primary__backup"
TIMES = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
VERBS = (("switchover", "backup"), ("failover", "backup"), ("failback", "primary"))
SWITCH = {"reason": "the data centre is moved", "reverse": False}
BODIES: dict[str, tuple[dict[str, Any], Right]] = {
    "run": ({}, (OWN, "POST", RUN)),
    "dry-run": ({}, (OWN, "POST", RUN)),
    "verify": ({}, (VERIFY, "POST", RUN)),
    "backfill": (TIMES, (BACKFILL, "POST", RUN)),
    "drill": ({"kind": "partial", "groups": ["billing"]}, (DRILL, "POST", RUN)),
    "groups-sync": ({"groups": ["billing"]}, (GROUPS, "POST", RUN)),
    "pause": ({"topic": "orders", "why": "migration"}, (OWN, "PUT", None)),
    "resume": ({"topic": "orders"}, (OWN, "PUT", None)),
    "readiness": ({}, (OWN, "POST", RUN)),
    **{
        verb: ({**SWITCH, "confirm": cluster}, (f"ferry_{verb}__primary__backup", "POST", RUN))
        for verb, cluster in VERBS
    },
    "clear": ({"dag": OWN, "run": "a"}, (OWN, "PUT", DagAccessEntity.TASK_INSTANCE)),
    "record": ({"topic": "orders", "partition": 0, "offset": 7}, (RECORDS, "GET", None)),
}
CHECKS = "offsets"
"""The one POST that only checks a form."""
FAILED = DagState(
    known=True, runs=(DagRunRow(run="a", state="failed", queued=None, started=None, ended=None, who="ada"),)
)


@pytest.mark.parametrize("verb", BODIES)
def test_who_may_not_gets_403_and_has_no_button(desk: Desk, verb: str, golden: Golden) -> None:
    body, right = BODIES[verb]
    desk.dag = FAILED
    with_back(verb)
    desk.watcher.see(FlowPoll(view=_held("orders"), lags=(lag("orders", 0, 1, 1.0), lag("clicks", 0, 1)), troubles={}))
    everywhere = _asked_on_all_pages(desk)
    assert everywhere[verb]
    if verb in ("pause", "resume"):
        assert {"/topics", f"/topic/{'orders' if verb == 'resume' else 'clicks'}"} <= everywhere[verb]
    assert desk.act(verb, body)[0] in (200, 202)
    desk.refused.add(right)
    status, answer = desk.act(verb, body)
    assert status == 403
    golden(str(answer["detail"]))
    same = {other for other, (_, needed) in BODIES.items() if needed == right}
    assert _asked_on_all_pages(desk) == {other: set() if other in same else everywhere[other] for other in BODIES}


def test_who_may_only_look_has_no_button_on_any_page(desk: Desk) -> None:
    desk.dag = FAILED
    for pauses in (("orders", ""), ("orders",)):
        desk.watcher.see(FlowPoll(view=_held(*pauses), lags=(lag("orders", 0, 1), lag("clicks", 0, 1)), troubles={}))
        desk.refused.clear()
        assert ("/" in _asked_on_all_pages(desk)["resume"]) == ("" in pauses)
        desk.refused |= {right for _, right in BODIES.values()}
        assert not any(_asked_on_all_pages(desk).values())


def with_back(verb: str) -> None:
    """A failback needs the flow back in the file."""
    if verb == "failback":
        config = Path(os.environ["FERRY_CONFIG"])
        config.write_text(f"{config.read_text()}backup->primary.enabled = true\nbackup->primary.topics = .*\n")


def _held(*topics: str) -> LedgerView:
    """A ledger in which these are paused; an empty name is the whole flow."""
    held = (pause_record(Pause(topic=topic, who="ada", why="migration", since_ms=1)) for topic in topics)
    return view_of(*held)


def _asked_on_all_pages(desk: Desk) -> dict[str, set[str]]:
    """By verb the pages of the flow that have a button for it."""
    paths = (*PAGES, "/topic/orders", "/topic/clicks", "/lane/backfill-a", "/lane/backfill-a/run/a")
    found: dict[str, set[str]] = {verb: set() for verb in BODIES}
    for path in paths:
        for verb in re.findall(r'data-ask="([^"]+)"', desk.page(f"{HERE}{path}")):
            found[verb].add(path)
    return found


def test_who_may_not_see_a_flow_cannot_tell_whether_it_is_there(desk: Desk) -> None:
    assert f'href="{HERE}/' in desk.page("/")
    desk.refused |= {(OWN, "GET", None), ("ferry__no__such", "GET", None)}
    assert "primary" not in desk.page("/")
    for path in (f"{HERE}/", "/flow/no/such/"):
        assert desk.client.get(path, headers={"Accept": "text/html"}).status_code == 403
    assert desk.act("run", {})[0] == 403


@pytest.mark.parametrize("verb", BODIES)
def test_a_request_of_another_site_is_refused(desk: Desk, verb: str) -> None:
    body, _ = BODIES[verb]
    with_back(verb)
    path = f"/api{HERE}/{verb}"
    assert desk.client.post(path, json=body).status_code == 403  # no header
    assert desk.act(verb, body, Origin="https://evil.example")[0] == 403
    assert desk.act(verb, body, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    form = desk.client.post(path, data={"why": "x"}, headers={"X-Ferry-Request": "1"})
    assert form.status_code == 415
    assert not desk.triggered
    assert not desk.audited
    assert desk.act(verb, body, Origin="http://testserver", **{"Sec-Fetch-Site": "same-origin"})[0] in (200, 202)


def test_every_post_asks_where_from_and_whether_one_may_see_the_flow(desk: Desk) -> None:
    changing = [one for one in desk.app.routes if isinstance(one, APIRoute) and one.methods - {"GET", "HEAD"}]
    assert {route.path.rpartition("/")[2] for route in changing} == {*BODIES, CHECKS}
    for route in changing:
        assert {from_here, open_flow} <= {one.call for one in route.dependant.dependencies}, route.path


@pytest.mark.parametrize("verb", BODIES)
def test_every_action_leaves_its_line_in_the_audit_log(desk: Desk, verb: str) -> None:
    body, (dag, *_) = BODIES[verb]
    with_back(verb)
    assert desk.act(verb, body)[0] in (200, 202)
    ((who, event, of, run, extra),) = desk.audited
    assert (who, event, of) == ("ada", f"ferry_{verb.replace('-', '_')}", OWN if dag == RECORDS else dag)
    assert run == ("manual__1" if verb in (*TRIGGERED, "failback") else body.get("run"))
    assert isinstance(extra, dict)
    assert extra["flow"] == "primary->backup"
    assert body.get("topic", "") == extra.get("topic", "")
    told = (ROOT / "docs" / "page.md").read_text()
    assert f"`{event}`" in told


def test_a_run_is_started_in_somebodys_name_and_audited(desk: Desk) -> None:
    status, answer = desk.act("run", {"topics": ["orders"]})
    assert (status, answer["run"]) == (200, "manual__1")
    assert desk.triggered == [(OWN, "ada", {"topics": ["orders"]})]
    assert desk.audited == [("ada", "ferry_run", OWN, "manual__1", {"flow": "primary->backup", "topics": ["orders"]})]


def test_a_backfill_gets_its_times_with_a_zone(desk: Desk) -> None:
    assert desk.act("backfill", {**TIMES, "lane": "backfill-jan"})[0] == 200
    dag, _, conf = desk.triggered[0]
    assert dag == BACKFILL
    assert conf == {"lane": "backfill-jan", "from": "2026-01-01T00:00:00.000Z", "to": "2026-01-02T00:00:00.000Z"}


@pytest.mark.parametrize("verb", ["run", "dry-run", "verify", "backfill", "drill"])
@pytest.mark.parametrize("topic", ["__consumer_offsets", "nosuchtopic"])
def test_a_topic_that_the_flow_does_not_copy_is_reported_at_the_field_and_starts_nothing(
    desk: Desk, verb: str, topic: str
) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1),), troubles={}))
    body = {**BODIES[verb][0], "topics": ["orders", topic]}
    status, answer = desk.act(verb, body)
    assert (status, list(fields_of(answer))) == (422, ["topics"])
    assert topic in fields_of(answer)["topics"]
    assert not desk.triggered
    assert not desk.audited
    assert desk.act(verb, {**body, "topics": ["orders"]})[0] in (200, 202)


@pytest.mark.parametrize("verb", ["dry-run", "pause", "resume", "readiness", "record"])
def test_the_reader_is_asked_in_threads_and_never_in_airflows_event_loop(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    filled(desk)
    in_loop: list[bool] = []

    def heard(kind: str) -> Callable[..., Answer]:
        ask = getattr(Reader, kind)

        def asked(*args: Any) -> Answer:
            try:
                asyncio.get_running_loop()
                in_loop.append(True)
            except RuntimeError:
                in_loop.append(False)
            found: Answer = ask(*args)
            return found

        return asked

    for kind in ("ask", "act"):
        monkeypatch.setattr(Reader, kind, heard(kind))
    body = BODIES[verb][0] | ({"topics": ["orders"]} if verb == "dry-run" else {})
    desk.act(verb, body)
    assert in_loop, "it is asked"
    assert not any(in_loop)


def test_a_topic_that_was_created_since_the_last_look_is_refused_as_of_that_look_and_looked_for(
    desk: Desk, golden: Golden
) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1),), troubles={}))
    desk.watcher.amend(lag_ms=1_790_000_000_000)
    desk.watcher.is_nudged()
    status, answer = desk.act("run", {"topics": ["created-meanwhile"]})
    assert (status, list(fields_of(answer))) == (422, ["topics"])
    golden(fields_of(answer)["topics"])
    assert desk.watcher.is_nudged(), "it looks again at once"
    path = f"{HERE}/topic/created-meanwhile"
    page = desk.client.get(path, headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "2026-09-21 14:13:20 UTC" in page.text


@pytest.mark.parametrize(("troubles", "hindrances"), [({"primary": "no answer"}, []), ({}, ["no secret"])])
def test_a_topic_is_not_called_missing_while_the_page_cannot_look(
    desk: Desk, troubles: dict[str, str], hindrances: list[str]
) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1),), troubles={}))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=None, troubles=troubles, hindrances=hindrances))
    assert desk.act("run", {"topics": ["created-meanwhile"]})[0] == 200


@pytest.mark.parametrize(
    ("kind", "line"),
    [("tabletop", "ferry.report.dir = reports"), ("full", "")],
    ids=["a folder that is not a full path", "no flow back"],
)
def test_a_drill_that_would_end_red_for_the_file_is_refused_at_the_field(
    desk: Desk, kind: str, line: str, golden: Golden
) -> None:
    config = Path(os.environ["FERRY_CONFIG"])
    good = config.read_text()
    config.write_text(f"{good.replace(REPORTS, line) if line else good}\n")
    status, answer = desk.act("drill", {"kind": kind})
    assert (status, list(fields_of(answer)), desk.triggered) == (422, ["kind"], [])
    golden(fields_of(answer)["kind"])
    config.write_text(f"{good}backup->primary.enabled = true\nbackup->primary.topics = .*\n")
    assert desk.act("drill", {"kind": kind})[0] == 200


def fields_of(answer: dict[str, object]) -> dict[str, str]:
    """What is wrong with a request, by its fields."""
    found = answer["fields"]
    assert isinstance(found, dict)
    return found


TRIGGERED = ("run", "verify", "backfill", "drill", "groups-sync", "switchover", "failover")


@pytest.mark.parametrize("verb", TRIGGERED)
def test_a_run_has_a_link_and_one_that_waits_for_its_dag_is_not_said_to_be_just_queued(
    desk: Desk, verb: str, golden: Golden
) -> None:
    body, (dag, *_) = BODIES[verb]
    queued = desk.act(verb, body)[1]
    is_asked = verb in ("drill", "switchover", "failover")
    page = f"{HERE}/run/manual__1" if dag == OWN else f"{HERE}/dag/{dag}/run/manual__1"
    link = {"text": "manual__1", "href": page, "top": False}
    asks = {"text": "Required Actions", "href": f"/dags/{dag}/runs/manual__1/required_actions", "top": True}
    assert (queued["waits"], queued["links"]) == (is_asked, [link, asks] if is_asked else [link])
    golden(str(queued["text"]), "queued")
    desk.others[dag] = DagState(known=True, paused=True)
    answer = desk.act(verb, body)[1]
    assert answer["waits"] is True
    golden(str(answer["text"]), "waits")
    unpaused = {"text": dag, "href": f"/dags/{dag}", "top": True}
    assert answer["links"] == ([link, unpaused, asks] if is_asked else [link, unpaused])


@pytest.mark.parametrize(
    ("kind", "is_asked"), [("tabletop", False), ("shadow", False), ("partial", True), ("full", True)]
)
def test_a_drill_is_named_by_its_kind_and_flow_and_by_where_it_waits(desk: Desk, kind: str, is_asked: bool) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 1),), troubles={}), [])
    Path(os.environ["FERRY_CONFIG"]).write_text(f"{TEXT}backup->primary.enabled = true\nbackup->primary.topics = .*\n")
    code, answer = desk.act("drill", {"kind": kind, **({"topics": ["orders"]} if kind == "partial" else {})})
    assert code == 200, answer
    assert f"{kind} drill of primary->backup" in str(answer["text"])
    assert answer["waits"] is is_asked
    assert ("approval" in str(answer["text"])) is is_asked


def test_a_switch_that_only_shows_its_steps_waits_for_no_approval(desk: Desk) -> None:
    body, _ = BODIES["switchover"]
    answer = desk.act("switchover", {**body, "dry_run": True})[1]
    assert "dry run" in str(answer["text"])
    assert answer["waits"] is False


@pytest.mark.parametrize("verb", TRIGGERED)
def test_no_run_is_queued_of_a_dag_that_airflow_has_lost(desk: Desk, verb: str, golden: Golden) -> None:
    body, (dag, *_) = BODIES[verb]
    desk.others[dag] = DagState()
    status, answer = desk.act(verb, body)
    assert status == 409
    golden(str(answer["detail"]))
    assert not desk.triggered
    assert not desk.audited


def test_a_flow_without_windows_has_no_button_for_them(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    assert 'data-ask="backfill"' in desk.page(f"{HERE}/backfills")
    config = Path(os.environ["FERRY_CONFIG"])
    config.write_text(f"{config.read_text()}ferry.backfill.windows = none\n")
    assert 'data-ask="backfill"' not in desk.page(f"{HERE}/backfills")
    status, answer = desk.act("backfill", TIMES)
    assert (status, desk.triggered) == (409, [])
    assert "ferry.backfill.windows = none" in str(answer["detail"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "its file has no ferry.groups.schedule"),
        ("ferry.groups.schedule = none\nsync.group.offsets.enabled = false", "sync.group.offsets.enabled is false"),
    ],
)
def test_a_flow_without_a_dag_for_groups_has_no_button_for_them(desk: Desk, line: str, said: str) -> None:
    answered(desk, ("OfGroups", ()), ((), (), False))
    assert 'data-ask="groups-sync"' in desk.page(f"{HERE}/groups")
    config = Path(os.environ["FERRY_CONFIG"])
    config.write_text(f"{config.read_text().replace('ferry.groups.schedule = none', '')}{line}\n")
    assert 'data-ask="groups-sync"' not in desk.page(f"{HERE}/groups")
    status, answer = desk.act("groups-sync", {})
    assert (status, desk.triggered) == (409, [])
    assert said in str(answer["detail"])


@pytest.mark.parametrize("verb", ["groups-sync", "drill"])
def test_a_group_that_is_not_there_or_not_taken_is_reported_at_the_field_and_starts_nothing(
    desk: Desk, verb: str
) -> None:
    config = Path(os.environ["FERRY_CONFIG"])
    config.write_text(f"{config.read_text()}groups.exclude = console-.*\n")
    known = tables_of("billing")
    answered(desk, ("OfGroups", ()), (known, (), False))
    body = BODIES[verb][0]
    for group, said in (("console-1", "groups.exclude"), ("biling", "neither primary nor backup")):
        status, answer = desk.act(verb, {**body, "groups": ["billing", group]})
        assert (status, list(fields_of(answer)), desk.triggered) == (422, ["groups"], []), group
        assert group in fields_of(answer)["groups"]
        assert said in fields_of(answer)["groups"]
    assert desk.act(verb, body)[0] == 200
    # What could not be read, or was not read to the end, is not called missing.
    silent = NotShown(cluster="backup", group="", why="it does not answer")
    for lacking, more in (((silent,), False), ((), True)):
        answered(desk, ("OfGroups", ()), (known, lacking, more))
        assert desk.act(verb, {**body, "groups": ["biling"]})[0] == 200


def tables_of(*groups: str) -> tuple[GroupTable, ...]:
    """Consumer groups of the source, as the reader keeps them."""
    return tuple(GroupTable(group=group, source=None, target=None, rows=()) for group in groups)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"topic": "orders", "why": " "}, "why"),
        ({"topic": "orders", "why": "x", "until": "2001-01-01T00:00:00Z"}, "until"),
        ({"topic": "a b", "why": "x"}, "topic"),
        ({"topic": "orders"}, "why"),
        ({"topic": "__consumer_offsets", "why": "x"}, "topic"),
        ({"topic": "orders", "why": "x", "more": 1}, "more"),
    ],
    ids=["an empty reason", "an end in the past", "no name of a topic", "no reason", "not copied", "unknown"],
)
def test_a_pause_that_makes_no_sense_is_refused(
    desk: Desk, body: dict[str, object], field: str, golden: Golden
) -> None:
    status, answer = desk.act("pause", body)
    assert (status, list(fields_of(answer))) == (422, [field])
    golden(fields_of(answer)[field])
    assert not desk.audited


LANES = {
    "backfill-airflow": True,
    "append-a_b-c": True,
    "backfill-" + "x" * 40: True,
    "backfill-" + "x" * 41: False,
    "history": False,
    "drill-jan": False,
    "backfill-": False,
    "backfill--jan": False,
    "backfill-jan\n": False,
    "": False,
}


def test_a_lane_of_another_name_is_refused_with_what_it_has_to_be(desk: Desk, golden: Golden) -> None:
    found = {lane: desk.act("backfill", {**TIMES, "lane": lane})[0] == 200 for lane in LANES}
    assert found == LANES
    status, answer = desk.act("backfill", {**TIMES, "lane": "history"})
    assert (status, list(fields_of(answer))) == (422, ["lane"])
    assert answer["detail"] == fields_of(answer)["lane"]
    golden(fields_of(answer)["lane"])


def test_the_field_takes_the_lanes_that_the_server_takes() -> None:
    """As browsers read a field's pattern: the whole text, with the flag v. One that is none is not looked at at all."""
    script = (rendering.FOLDER / "static" / "act.js").read_text()
    (pattern,) = re.findall(r'pattern: ("(?:[^"\\]|\\.)*")', script)
    check = f"const p = new RegExp('^(?:' + {pattern} + ')$', 'v');"
    asked = {lane: one for lane, one in LANES.items() if "\n" not in lane}  # a field has one line
    program = Path(playwright.__file__).parent / "driver" / "node"
    told = subprocess.run(
        [program, "-p", f"{check} JSON.stringify({json.dumps(list(asked))}.map((one) => p.test(one)))"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert dict(zip(asked, json.loads(told.stdout), strict=True)) == asked


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"confirm": "primary"}, "confirm"), ({"reason": "  "}, "reason"), ({"reverse": True}, "reverse")],
)
def test_a_switch_is_begun_by_who_types_the_name_of_the_cluster(
    desk: Desk, changed: dict[str, Any], field: str
) -> None:
    asked = {**SWITCH, "confirm": "backup"}
    status, answer = desk.act("switchover", {**asked, **changed})
    assert (status, list(fields_of(answer)), desk.triggered) == (422, [field], [])
    assert desk.act("switchover", {**asked, "dry_run": True})[0] == 200
    assert desk.triggered == [("ferry_switchover__primary__backup", "ada", {**SWITCH, "dry_run": True})]


def test_a_switch_leaves_the_groups_that_are_named_and_that_there_are(desk: Desk) -> None:
    answered(desk, ("OfGroups", ()), (tables_of("billing"), (), False))
    asked = {**SWITCH, "confirm": "backup"}
    status, answer = desk.act("switchover", {**asked, "leave_groups": ["billing", "biling"]})
    assert (status, list(fields_of(answer)), desk.triggered) == (422, ["leave_groups"], [])
    assert "biling" in fields_of(answer)["leave_groups"]
    assert desk.act("switchover", {**asked, "leave_groups": ["billing"]})[0] == 200
    assert desk.triggered == [("ferry_switchover__primary__backup", "ada", {**SWITCH, "leave_groups": ["billing"]})]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"partition": 1}, "partition"),
        ({"topics": ["orders", "audit"], "partition": 1}, "partition"),
        ({"topics": ["orders"], "partition": 4}, "partition"),
        ({"topics": ["orders"], "partition": -1}, "partition"),
    ],
    ids=["of no topic", "of two", "beyond the last", "below 0"],
)
def test_a_partition_to_verify_is_one_of_the_one_topic(desk: Desk, body: dict[str, Any], field: str) -> None:
    filled(desk)
    desk.watcher.amend(troubles=())
    status, answer = desk.act("verify", body)
    assert (status, list(fields_of(answer)), desk.triggered) == (422, [field], [])
    assert desk.act("verify", {"topics": ["orders"], "partition": 3})[0] == 200
    assert desk.triggered == [(VERIFY, "ada", {"mode": "full", "topics": ["orders"], "partition": 3})]


def test_a_partition_to_verify_is_not_refused_before_the_source_has_answered(desk: Desk) -> None:
    assert desk.act("verify", {"topics": ["orders"], "partition": 99})[0] == 200


def test_a_failback_without_the_flow_back_has_no_button_and_is_refused(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    asked = re.findall(r'data-ask="(\w+)"', desk.page(f"{HERE}/reports"))
    assert ("switchover" in asked, "failback" in asked) == (True, False)
    assert desk.act("failback", {**SWITCH, "confirm": "primary"})[0] == 409
    with_back("failback")
    assert 'data-ask="failback" data-cluster="primary"' in desk.page(f"{HERE}/reports")


def test_the_checks_of_readiness_are_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = (
        Check(name="lag", ok=True, message="0 records"),
        Check(name="groups", ok=False, message="<app> is active"),
        Check(name="clock", ok=True, message="the flow never ran", known=False),
        Check(name="writers", ok=True, message="any client may write to it", warns=True),
    )
    done = Job(id="7", who="ada", what="ferry_readiness", work=lambda _: None, done=threading.Event())
    done.answer = Readiness(checks=checks)
    done.done.set()
    monkeypatch.setattr(desk.watcher, "ask", lambda *what: done)
    status, answer = desk.act("readiness", {})
    assert (status, answer["done"], answer["error"]) == (202, True, "")
    page = str(answer["html"])
    assert [page.count(f'class="badge {condition}">') for condition in ("good", "unknown", "warn", "bad")] == [1] * 4
    assert ('class="badge good">lag<' in page, 'class="badge bad">groups<' in page) == (True, True)
    assert "&lt;app&gt; is active" in page
    assert "Warning: </span>any client" in page
    done.answer = Readiness(checks=(checks[0], *checks[2:]))
    page = str(desk.act("readiness", {})[1]["html"])
    assert "all 3 checks passed" not in page
    assert "1 not known, 1 warning" in page


@pytest.mark.parametrize(("verb", "cluster"), VERBS)
def test_readiness_is_checked_for_the_switch_that_is_asked_about_with_both_flows_of_the_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, verb: str, cluster: str
) -> None:
    with_back("failback")
    file = Path(os.environ["FERRY_CONFIG"])
    looked: list[tuple[Sides, SwitchState]] = []

    def look_before(sides: Sides, state: SwitchState, *, patience_s: float) -> tuple[Readiness, dict[str, Any]]:
        looked.append((sides, state))
        return Readiness(checks=(Check(name="target", ok=True, message="it answers"),)), {}

    def ask(who: str, what: str, work: Callable[[FlowWatch], Any]) -> Job:
        watch = FlowWatch(load(file).flow(FLOW), patience_s=1, settings=lambda: load(file))
        done = Job(id="7", who=who, what=what, work=work, done=threading.Event(), answer=work(watch))
        done.done.set()
        return done

    monkeypatch.setattr(answering, "look_before", look_before)
    monkeypatch.setattr(desk.watcher, "ask", ask)
    status, answer = desk.act("readiness", {"verb": verb, "reverse": False})
    assert (status, answer["error"], "it answers" in str(answer["html"])) == (202, "", True)
    ((sides, state),) = looked
    assert (sides.new, str(sides.named), sides.back is not None) == (cluster, FLOW, True)
    assert (state.switch.verb, state.switch.via, state.switch.options.reverse) == (verb, sides.via.flow, False)
    assert desk.audited[-1][-1] == {"flow": FLOW, "verb": verb}
    assert desk.act("readiness", {"verb": "moving"})[0] == 422
