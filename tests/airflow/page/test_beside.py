"""Runs of a flow's other DAGs: read from Airflow's tables, and shown with what came of them."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from ferry.ledger.ledger import UNREAD
from ferry.ledger.verified_codec import verified_json
from ferry.model import Difference, DifferenceKind, Flow, NotCompared, NotComparedKind, TopicPartition, Verified
from ferry.reader.watch import FlowPoll
from ferry_airflow.naming import REASON
from ferry_airflow.page import dag_runs, other_dags
from ferry_airflow.page.access import RECORDS
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.dag_runs import DagRunStory, TaskRow
from tests.airflow.page.conftest import HERE, Desk
from tests.airflow.page.test_airflow_side import counted

VERIFY, DRILL = "ferry_verify__primary__backup", "ferry_drill__primary__backup"
GROUPS = "ferry_groups__primary__backup"
RUN = "scheduled__2026-11-23T00:00:00+00:00"
NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
ROW = DagRunRow(run=RUN, state="running", queued=NOON, started=NOON, ended=None, who="ada")
STORY = DagRunStory(row=ROW, conf={}, tasks=())
LEFT = NotCompared(
    source=TopicPartition(topic="orders", partition=3),
    start=0,
    end=9,
    why=NotComparedKind.SOURCE_DELETED,
    message="orders-3 [0, 9): the source has <deleted> it",
    asked=True,
)
VERIFIED = Verified(
    flow=Flow(source="primary", target="backup"),
    lane="live",
    partitions=3,
    records=70,
    bytes=9_000_000,
    seconds=2.5,
    differences=(),
    more=0,
    not_compared=(),
)


def planted(session: Session, dag: str, number: int, tasks: dict[str, str | None], returned: dict[str, Any]) -> None:
    """A run of a DAG, its tasks with their states, and what some have returned."""
    session.execute(
        insert(DagRun).values(
            id=number,
            dag_id=dag,
            run_id=RUN,
            state="running",
            run_type="scheduled",
            run_after=NOON,
            queued_at=NOON,
            conf={"mode": "full"},
        )
    )
    for at, (task, state) in enumerate(tasks.items()):
        started = None if state is None else NOON + timedelta(seconds=at)
        session.execute(
            insert(TaskInstance).values(
                id=uuid.uuid4(), task_id=task, dag_id=dag, run_id=RUN, state=state, start_date=started, pool="p"
            )
        )
    for task, value in returned.items():
        session.execute(
            insert(XComModel).values(
                dag_run_id=number, task_id=task, key="return_value", dag_id=dag, run_id=RUN, value=value
            )
        )


def test_a_run_is_read_with_its_tasks_and_what_its_last_one_returned(tables: Session) -> None:
    tasks = {"drill": None, "preview": "success", "approve": "awaiting_input"}
    planted(tables, DRILL, 1, tasks, {"preview": "1. it would", "drill": {"outcome": "success"}})
    planted(tables, VERIFY, 2, {"verify": "running"}, {})
    story = dag_runs.story_of(DRILL, RUN, with_returned=True)
    assert story is not None
    assert [(task.name, task.state) for task in story.tasks] == [
        ("preview", "success"),
        ("approve", "awaiting_input"),
        ("drill", ""),
    ]
    assert (story.asks, story.conf, story.returned) == (True, {"mode": "full"}, {"outcome": "success"})
    hidden = dag_runs.story_of(DRILL, RUN, with_returned=False)
    assert hidden == replace(story, returned={}, preview=())
    other = dag_runs.story_of(VERIFY, RUN, with_returned=True)
    assert other is not None
    assert ([task.name for task in other.tasks], other.returned, other.asks) == (["verify"], {}, False)
    assert dag_runs.story_of(VERIFY, "manual__1", with_returned=True) is None
    assert dag_runs.asking([DRILL, VERIFY]) == {(DRILL, RUN)}
    assert dag_runs.asking([VERIFY]) == set()


@pytest.mark.parametrize(
    ("tab", "dag"),
    [("runs", VERIFY), ("groups", GROUPS), ("backfills", "ferry_backfill__primary__backup"), ("reports", DRILL)],
)
def test_what_runs_beside_is_listed_where_it_belongs_for_who_may_see_it(desk: Desk, tab: str, dag: str) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    old = replace(ROW, run="manual__old", state="failed", queued=NOON - timedelta(days=9))
    desk.others[dag] = DagState(known=True, runs=(ROW, old))
    link = f'href="{HERE}/dag/{dag}/run/'
    for path in ("runs", "groups", "backfills", "reports"):
        assert desk.page(f"{HERE}/{path}").count(link) == (2 if path == tab else 0)
    page = desk.page(f"{HERE}/{tab}")
    assert page.index(f"{link}scheduled") < page.index(f"{link}manual__old")
    assert "waits for approval" not in page
    desk.asking.add((dag, "manual__old"))
    page = desk.page(f"{HERE}/{tab}")
    assert page.index("waits for approval") < page.index(f"{link}scheduled"), "what waits comes first"
    desk.refused.add((dag, "GET", None))
    assert link not in desk.page(f"{HERE}/{tab}")
    desk.refused = {(dag, "GET", DagAccessEntity.RUN)}
    assert link not in desk.page(f"{HERE}/{tab}")


@pytest.mark.parametrize("may_see", [True, False])
def test_drills_in_the_list_differ_by_time_kind_and_result(desk: Desk, may_see: bool) -> None:
    """What tasks return is shown only to users who may see it."""
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    rows = [replace(ROW, run=f"manual__{at}", queued=NOON - timedelta(days=at), state="success") for at in range(2)]
    desk.others[DRILL] = DagState(known=True, runs=tuple(rows))
    for row, kind, outcome in zip(rows, ("shadow", "tabletop"), ("deviations", "success"), strict=True):
        desk.stories[DRILL, row.run] = replace(STORY, row=row, conf={"kind": kind}, returned={"outcome": outcome})
    if not may_see:
        desk.refused.add((DRILL, "GET", DagAccessEntity.XCOM))
    page = desk.page(f"{HERE}/reports")
    found = [page[page.index(f'<tr id="beside:{DRILL}:{row.run}"') :].partition("</tr>")[0] for row in rows]
    times = [re.findall(r'<time datetime="([^"]+)"', row) for row in found]
    assert [len(one) for one in times] == [1, 1]
    assert times[0] != times[1]
    cells = [[re.sub("<[^>]*>", "", cell) for cell in re.findall("<td>(.*?)</td>", row)] for row in found]
    assert [row[:2] for row in cells] == [
        ["shadow drill", "deviations" if may_see else "\u2013"],
        ["tabletop drill", "success" if may_see else "\u2013"],
    ]
    assert ('class="badge warn">deviations<' in found[0]) == may_see


def test_what_runs_were_asked_for_and_returned_is_read_in_two_queries(tables: Session) -> None:
    planted(tables, DRILL, 1, {"drill": "success"}, {"preview": "1. it would", "drill": {"outcome": "success"}})
    planted(tables, VERIFY, 2, {"verify": "running"}, {})
    with counted(tables) as asked:
        found = dag_runs.asked_and_returned([(DRILL, RUN), (VERIFY, RUN), (GROUPS, RUN)])
        assert dag_runs.asked_and_returned([]) == {}
    assert len(asked) == 2
    assert found == {
        (DRILL, RUN): ({"mode": "full"}, {"outcome": "success"}),
        (VERIFY, RUN): ({"mode": "full"}, {}),
        (GROUPS, RUN): ({}, {}),
    }


def shown(desk: Desk, monkeypatch: pytest.MonkeyPatch, dag: str, story: DagRunStory | None) -> str:
    """The page of a run."""
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    monkeypatch.setattr(other_dags, "story_of", lambda dag, run, with_returned: story)
    return desk.page(f"{HERE}/dag/{dag}/run/{RUN}")


def test_why_tasks_failed_is_read_from_what_they_kept_and_shown(
    tables: Session, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {"plan": "failed", "copy": "upstream_failed", "checkpoint": "success", "report": "failed"}
    planted(tables, DRILL, 7, dict(states), {})
    for task, why in (("plan", "the ledger does not know nosuchtopic"), ("checkpoint", "of a try before")):
        tables.execute(
            insert(XComModel).values(dag_run_id=7, task_id=task, key=REASON, dag_id=DRILL, run_id=RUN, value=why)
        )
    tables.commit()
    said = (("plan", "the ledger does not know nosuchtopic"), ("report", dag_runs.SILENT))
    assert dag_runs.reasons_of(DRILL, RUN) == said
    story = dag_runs.story_of(DRILL, RUN, with_returned=True)
    assert story is not None
    assert story.reasons == said
    page = shown(desk, monkeypatch, DRILL, story)
    assert "Why it failed" in page
    assert said[0][1] in page
    assert dag_runs.SILENT in page, "killed, or failed outside of Ferry"
    assert "of a try before" not in page


@pytest.mark.parametrize(
    ("result", "badge", "said"),
    [
        (VERIFIED, 'good">equal', "3 partitions, 70 records, 9.0 MB"),
        (replace(VERIFIED, records=0), 'unknown">nothing to compare', "nothing to compare; 3 partitions"),
        (replace(VERIFIED, not_compared=(LEFT,)), 'warn">incomplete', "the source has &lt;deleted&gt; it"),
        (replace(VERIFIED, notes=("topic a is new",)), 'good">equal', "topic a is new"),
    ],
)
def test_a_verification_says_what_it_found(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, result: Verified, badge: str, said: str
) -> None:
    page = shown(desk, monkeypatch, VERIFY, replace(STORY, returned=verified_json(result)))
    assert f'class="badge {badge}' in page
    assert said in page
    assert "The ledger has nothing of this run" not in page


def differing(lane: str = "live") -> dict[str, Any]:
    """What a verification returns that found a changed record, and one that only the target has."""
    source, target = (TopicPartition(topic=topic, partition=3) for topic in ("orders", "primary.orders"))
    changed = Difference(
        source=source, target=target, source_range=(7, 8), target_range=(17, 18), kind=DifferenceKind.VALUE
    )
    extra = replace(changed, source_range=(9, 9), target_range=(19, 21), kind=DifferenceKind.EXTRA)
    return verified_json(replace(VERIFIED, lane=lane, differences=(changed, extra)))


@pytest.mark.parametrize("lane", ["live", "backfill-1"])
def test_each_difference_leads_to_its_records(desk: Desk, monkeypatch: pytest.MonkeyPatch, lane: str) -> None:
    page = shown(desk, monkeypatch, VERIFY, replace(STORY, returned=differing(lane)))
    rows = re.findall(r'<tr id="differs:\d+">.*?</tr>', page, re.DOTALL)
    base, own = (HERE, "") if lane == "live" else (f"{HERE}/lane/{lane}", lane)
    asked = [re.findall(r'href="([^"]+)"', row.replace("&amp;", "&")) for row in rows]
    on_target = f"{base}/offsets?topic=primary.orders&partition=3&offset={{}}&back=true"
    assert asked == [
        [f"{base}/offsets?topic=orders&partition=3&offset=7", on_target.format(17)],
        [on_target.format(19)],
    ]
    buttons = [dict(re.findall(r'data-(\w+)="([^"]*)"', row.partition("<button")[2])) for row in rows]
    common = {"ask": "record", "partition": "3", "lane": own}
    assert buttons == [
        {**common, "topic": "orders", "offset": "7", "back": "false"},
        {**common, "topic": "primary.orders", "offset": "19", "back": "true"},
    ]


def test_a_difference_has_no_button_for_a_user_who_may_not_see_records(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.refused = {(RECORDS, "GET", None)}
    page = shown(desk, monkeypatch, VERIFY, replace(STORY, returned=differing()))
    assert page.count('<tr id="differs:') == 2
    assert 'data-ask="record"' not in page


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "<b>"),
        ("topic", "a&offset=1"),
        ("topic", 7),
        ("partition", -1),
        ("partition", True),
        ("partition", 2**31),
        ("target_topic", ""),
        ("target_partition", "3"),
        ("source_range", [1]),
        ("source_range", "12"),
        ("target_range", [0, 2**63]),
        ("lane", ["live"]),
        ("lane", "x" * 250),
        ("differences", {"0": 1}),
    ],
)
def test_a_difference_that_no_task_of_ferry_returned_leads_nowhere(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, field: str, value: object
) -> None:
    body = differing()
    (body if field in body else body["differences"][0])[field] = value
    assert '<tr id="differs:' not in shown(desk, monkeypatch, VERIFY, replace(STORY, returned=body))


@pytest.mark.parametrize(
    ("outcome", "badge"), [("synced", "good"), ("left alone", "held"), ("dry run", "unknown"), ("failed", "bad")]
)
def test_a_sync_of_groups_says_what_it_wrote_and_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, outcome: str, badge: str
) -> None:
    left = [{"group": "app", "topic": None, "partition": None, "why": "failed", "message": "group <app>: no answer"}]
    body = {"outcome": outcome, "summary": "3 offsets", "groups": 1, "offsets": 3, "writes": [], "left": left}
    page = shown(desk, monkeypatch, GROUPS, replace(STORY, returned=body))
    assert f'class="badge {badge}">{outcome}' in page
    assert "3 offsets" in page
    assert "group &lt;app&gt;: no answer" in page


@pytest.mark.parametrize(
    ("outcome", "badge"), [("success", "good"), ("deviations", "warn"), ("failed", "bad"), ("abandoned", "warn")]
)
def test_a_drill_says_how_it_ended_and_leads_to_its_report(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, outcome: str, badge: str
) -> None:
    body = {"outcome": outcome, "summary": "all copied", "deviations": ["group g: too late"], "report": {"number": 7}}
    page = shown(desk, monkeypatch, DRILL, replace(STORY, returned=body))
    assert f'class="badge {badge}">{outcome}' in page
    assert "group g: too late" in page
    assert f'href="{HERE}/report/7"' in page
    elsewhere = replace(STORY, returned=body, conf={"report": "s3://other"})
    assert f"{HERE}/report/7" not in shown(desk, monkeypatch, DRILL, elsewhere)


def test_a_run_says_what_it_waits_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = TaskRow(name="approve", state="awaiting_input", started=NOON, seconds=None)
    page = shown(desk, monkeypatch, DRILL, replace(STORY, tasks=(asking,)))
    assert "It waits for an approval" in page
    assert "awaiting input" in page
    queued = replace(STORY, row=replace(ROW, state="queued", started=None))
    assert "It waits until an operator unpauses" not in shown(desk, monkeypatch, DRILL, queued)
    desk.others[DRILL] = DagState(known=True, paused=True)
    assert "It waits until an operator unpauses" in shown(desk, monkeypatch, DRILL, queued)


def test_a_backfill_leads_to_its_lane(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = "ferry_backfill__primary__backup"
    page = shown(desk, monkeypatch, dag, replace(STORY, conf={"lane": "backfill-<x>", "topics": ["a", "b"]}))
    assert "backfill-&lt;x&gt;" in page
    assert "a, b" in page
    live = shown(desk, monkeypatch, dag, replace(STORY, conf={"into_live": True}))
    assert f'href="{HERE}/run/{dag}%40scheduled__' in live, "the flow's own DAG may have a run of the same id"


def test_a_run_that_is_not_there_or_may_not_be_seen(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Airflow has no such run" in shown(desk, monkeypatch, VERIFY, None)
    assert desk.client.get(f"{HERE}/dag/ferry_verify__of__others/run/{RUN}").status_code == 404
    for right in (None, DagAccessEntity.RUN, DagAccessEntity.TASK_INSTANCE):
        desk.refused = {(VERIFY, "GET", right)}
        answer = desk.client.get(f"{HERE}/dag/{VERIFY}/run/{RUN}")
        assert answer.status_code == 403, right
        assert VERIFY in answer.json()["detail"]


def test_what_a_run_returned_is_for_who_may_see_xcoms(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    told = replace(STORY, returned=verified_json(VERIFIED))
    monkeypatch.setattr(
        other_dags, "story_of", lambda dag, run, with_returned: told if with_returned else replace(told, returned={})
    )
    path = f"{HERE}/dag/{VERIFY}/run/{RUN}"
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    assert "70 records" in desk.page(path)
    desk.refused = {(VERIFY, "GET", DagAccessEntity.XCOM)}
    assert "70 records" not in desk.page(path)


@pytest.mark.parametrize(
    "returned",
    [
        {"__classname__": "pathlib.Path", "__version__": 1, "__data__": "/etc/passwd"},
        {"outcome": ["success"], "report": 7},
        {"outcome": "success", "report": "x"},
        {"equal": True},
        {"equal": True, "differences": 0, "records": "x", "not_compared": 3, "notes": None},
    ],
)
def test_what_a_user_wrote_as_a_tasks_answer_makes_no_object_and_breaks_no_page(
    tables: Session, returned: dict[str, object]
) -> None:
    for number, value in enumerate((returned, json.dumps(returned), "[" * 100_000)):
        tables.execute(delete(XComModel))
        planted(tables, f"{DRILL}{number}", number + 1, {"drill": "success"}, {"drill": value})
        story = dag_runs.story_of(f"{DRILL}{number}", RUN, with_returned=True)
        assert story is not None
        assert story.returned == (returned if number < 2 else {})
        assert dag_runs.outcome_of(story) is None
