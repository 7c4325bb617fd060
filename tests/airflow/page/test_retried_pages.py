"""A run that Airflow tries again, on the page: the try, since when, why the last one ended, and what is down."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

from ferry.clock import wall_ms
from ferry.features.doctor.rules.clusters import BrokerFacts, ClusterFacts
from ferry.ledger.ledger import UNREAD
from ferry.ledger.progress import LogEnd
from ferry.model import Flow
from ferry.reader.documents import Answer, ClustersStory, ClusterStory, Trouble
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.airflow_side import DagRunRow
from ferry_airflow.page.cluster_cards import silent_now
from ferry_airflow.page.dag_runs import DagRunStory, TaskRow
from ferry_airflow.page.flow_health import TRIES_HIDDEN
from ferry_airflow.page.retry_words import Retry
from ferry_airflow.page.run_words import Condition
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.test_progress import at_work, past
from tests.airflow.page.test_reasons import read
from tests.airflow.page.values import NINE, SLICES, progress

DAG = "ferry__primary__backup"
DOWN = "cluster-primary-is-down"
PATHS = ("/", f"{HERE}/", f"{HERE}/runs", f"{HERE}/run/r1")


def retry(state: str = "up_for_retry", why: str = DOWN) -> Retry:
    """The second of five tries: it begins in ten seconds, or has begun just now."""
    now = wall_ms()
    its = Retry(task="copy", state=state, number=2, most=5, ended=1, last=1, ended_ms=now - 20_000, why=why)
    return replace(its, due_ms=now + 10_000) if state == "up_for_retry" else replace(its, began_ms=now - 1_000)


def tried(desk: Desk, *retries: Retry) -> None:
    """A run that has sent nothing, with tasks that Airflow tries again."""
    at_work(desk, past(progress({one.target: LogEnd(0, 0) for one in SLICES})))
    desk.watcher.amend(never_ran=False)
    desk.retries[DAG, "r1"] = retries


@pytest.mark.parametrize("state", ["up_for_retry", "running"])
def test_every_page_shows_the_try_and_that_the_flow_is_not_healthy(desk: Desk, state: str) -> None:
    tried(desk, retry(state))
    for path in PATHS:
        page = desk.page(path)
        assert re.search(r'class="badge warn">retrying<', page), path
        assert "healthy" not in read(page), path
        assert re.search(r"[Tt]ry 2 of 5", read(page)), path
        assert "ended without success" in read(page), path
    rows = desk.page(f"{HERE}/runs").partition('id="run:r1"')[2].partition("</tr>")[0]
    assert re.findall(r'class="badge \w+">(\w+)<', rows) == ["running", "retrying"]
    assert "retrying" in desk.page(f"{HERE}/runs?state=retrying").partition('id="run:r1"')[2]


def test_why_the_last_try_ended_is_shown_once_where_it_is_known(desk: Desk) -> None:
    tried(desk, retry())
    desk.reasons = (("copy", DOWN), ("verify", "it differs"))
    for path in ("/", f"{HERE}/", f"{HERE}/run/r1"):
        page = read(desk.page(path))
        assert page.count(DOWN) == 1, path
        assert "its log shows it" not in page
    page = desk.page(f"{HERE}/run/r1")
    assert "it differs" in page, "another task of the run"
    assert f'href="/dags/{DAG}/runs/r1/tasks/copy?try_number=1"' in page


def test_why_it_ended_is_called_not_known_and_leads_to_its_log(desk: Desk) -> None:
    tried(desk, retry("running", why=""))
    for path in (f"{HERE}/", f"{HERE}/run/r1"):
        assert "Why try 1 ended" in read(desk.page(path)), path
    for path in ("/", f"{HERE}/topics"):
        assert retry().log in read(desk.page(path)), path


def test_on_other_pages_of_the_flow_its_head_has_the_try(desk: Desk) -> None:
    tried(desk, retry())
    page = desk.page(f"{HERE}/topics")
    assert "retrying" in page
    assert 'id="retried"' not in page
    assert "is below" not in page


def test_an_unreachable_cluster_is_named_beside_the_retry(desk: Desk) -> None:
    tried(desk, retry("running", why=""))
    desk.watcher.see(FlowPoll(view=None, lags=None, troubles={"primary": "primary at h:9092 does not answer"}))
    for path in ("/", f"{HERE}/", f"{HERE}/run/r1"):
        page = read(desk.page(path))
        assert "unreachable" in page
        assert "retrying" in page, path
    assert "Now: Cluster primary" in read(desk.page(f"{HERE}/run/r1"))


def test_who_may_not_see_tasks_is_told_that_it_is_not_known(desk: Desk) -> None:
    tried(desk, retry())
    desk.refused.add((DAG, "GET", DagAccessEntity.TASK_INSTANCE))
    for path in ("/", f"{HERE}/", f"{HERE}/run/r1"):
        page = read(desk.page(path))
        assert "try 2" not in page.lower(), path
        assert TRIES_HIDDEN.strip() in page, path
    desk.refused = {(DAG, "GET", DagAccessEntity.XCOM)}
    page = read(desk.page(f"{HERE}/run/r1"))
    assert "retrying" in page
    assert DOWN not in page
    assert "its log shows it" in page


def test_a_run_of_another_dag_has_its_tries_too(desk: Desk) -> None:
    moment = datetime.now(UTC)
    at_work(desk, past(None))
    dag = "ferry_verify__primary__backup"
    row = DagRunRow(run="v1", state="running", queued=moment, started=moment, ended=None, who="ada")
    task = TaskRow(name="verify", state="up_for_retry", started=moment - timedelta(minutes=1), seconds=3.0)
    desk.stories[dag, "v1"] = DagRunStory(row=row, conf={}, tasks=(task,), reasons=(("verify", DOWN),))
    desk.retries[dag, "v1"] = (replace(retry(), task="verify"),)
    page = read(desk.page(f"{HERE}/dag/{dag}/run/v1"))
    assert "its task verify begins" in page
    assert page.count(DOWN) == 1
    assert "retrying" not in read(desk.page("/")), "the flow's own run is well"


def test_a_run_of_another_dag_has_its_tries_while_no_run_of_the_flow_is_under_way(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(lag("orders", 0, 5, 2.0),), troubles={}))
    moment, dag = datetime.now(UTC), "ferry_verify__primary__backup"
    row = DagRunRow(run="v1", state="running", queued=moment, started=moment, ended=None, who="ada")
    task = TaskRow(name="verify", state="up_for_retry", started=moment - timedelta(minutes=1), seconds=3.0)
    desk.stories[dag, "v1"] = DagRunStory(row=row, conf={}, tasks=(task,), reasons=())
    desk.retries[dag, "v1"] = (replace(retry(), task="verify"),)
    page = desk.page(f"{HERE}/dag/{dag}/run/v1")
    assert 'id="retried"' in page
    assert "is below" not in page


FLOW = Flow(source="primary", target="backup")
UP = BrokerFacts(id=1, address="h:9092")
GONE = BrokerFacts(id=2, why="the cluster does not list it: it is down")


def of(source: tuple[BrokerFacts, ...] | None, target: tuple[BrokerFacts, ...] | None, why: str = "") -> Answer:
    """What the reader sees of both clusters, by their brokers."""
    sides = [
        ClusterStory(
            alias=alias,
            asked_ms=NINE,
            facts=None if brokers is None else ClusterFacts(alias=alias, cluster_id="c", brokers=brokers),
            why=why if alias == "backup" else "",
        )
        for alias, brokers in (("primary", source), ("backup", target))
    ]
    return Answer(got=ClustersStory(source=sides[0], target=sides[1]), at_ms=NINE)


@pytest.mark.parametrize(
    ("troubles", "answer", "words"),
    [
        ((), of((UP, GONE), (UP,)), [("no answer", "Broker 2 of cluster primary")]),
        ((), of((UP,), (UP,), "it is gone."), [("no answer", "Cluster backup: it")]),
        ((), of((UP,), (UP,), "cluster backup is gone"), [("no answer", "cluster backup is gone")]),
        ((), of((UP,), (UP,)), [("answers", "asked at 2026-")]),
        ((), of((UP,), None), [("not known", "is not known yet")]),
        ((), Answer(got=None), [("not known", "is not known yet")]),
        (
            (Trouble(cluster="primary", why="gone", since_ms=NINE),),
            of((UP, GONE), (UP, GONE)),
            [("no answer", "Cluster primary does"), ("no answer", "Broker 2 of cluster backup")],
        ),
        (
            (Trouble(cluster="primary", why="gone", since_ms=NINE),),
            Answer(got=None),
            [("no answer", "Cluster primary")],
        ),
    ],
)
def test_what_does_not_answer_now_is_named(
    troubles: tuple[Trouble, ...], answer: Answer, words: list[tuple[str, str]]
) -> None:
    found = silent_now(FLOW, troubles, answer, NINE + 1)
    assert [one.word for one in found] == [word for word, _ in words]
    assert all(text in one.text for one, (_, text) in zip(found, words, strict=True)), found


@pytest.mark.parametrize("old", [replace(of((UP,), (UP,)), error="no reader"), replace(of((UP,), (GONE,)), at_ms=1)])
def test_an_answer_that_is_not_of_now_does_not_show_that_all_answer(old: Answer) -> None:
    (found,) = silent_now(FLOW, (), old, NINE + 1)
    assert found.condition is Condition.UNKNOWN
    assert old.error in found.text


def test_a_cluster_that_could_not_be_asked_is_not_known() -> None:
    asked = of((UP,), (UP,))
    (found,) = silent_now(
        FLOW, (), replace(asked, got=replace(asked.got, target=replace(asked.got.target, not_asked="no secret"))), NINE
    )
    assert (found.condition, "no secret" in found.text) == (Condition.UNKNOWN, True)
