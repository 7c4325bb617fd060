"""What the page says of the file of the flows, and of DAGs, to somebody whom Airflow does not let see all of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

from ferry.ledger.ledger import UNREAD
from ferry.model import Flow
from ferry.reader.watch import FlowPoll
from ferry_airflow.page import access
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from tests.airflow.page.conftest import HERE, RUN, Desk
from tests.airflow.page.values import digest

DAGS = ("ferry__primary__backup", "ferry_verify__primary__backup", "no_such_dag")
SECRET = "ultra-secret-cluster"
HTML = {"Accept": "text/html"}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that says something about a flow, and cannot be read as flows."""
    file = tmp_path / "broken.properties"
    file.write_text(f"clusters = a, {SECRET}\na.bootstrap.servers = a:9092\n")
    monkeypatch.setenv("FERRY_CONFIG", str(file))
    return file


@pytest.mark.parametrize("path", ["/", f"/dag/{DAGS[0]}", f"/dag/{DAGS[0]}/run/r1", f"{HERE}/"])
def test_what_is_wrong_with_the_file_is_for_who_may_see_import_errors(desk: Desk, broken: Path, path: str) -> None:
    text = desk.client.get(path, headers=HTML).text
    assert SECRET in text
    assert "is not a DAG of Ferry" not in text, "nobody knows"
    desk.sees_faults = False
    text = desk.client.get(path, headers=HTML).text
    assert SECRET not in text
    assert str(broken) not in text
    assert "Only users who may see import errors" in text


def test_where_the_file_lies_is_for_who_may_see_import_errors(desk: Desk) -> None:
    desk.refused |= {(DAGS[0], "GET", None)}
    assert "flows.properties has 1 flow." in desk.page("/")
    desk.sees_faults = False
    for page in (desk.page("/"), desk.client.get("/flow/no/such/", headers=HTML).text):
        assert "flows.properties" not in page


@pytest.mark.parametrize("dag", DAGS)
def test_the_tab_of_a_dag_that_one_may_not_see_tells_nothing_of_it(desk: Desk, dag: str) -> None:
    desk.refused |= {(dag, "GET", None)}
    for path in (f"/dag/{dag}", f"/dag/{dag}/run/r1"):
        answer = desk.client.get(path, headers=HTML, follow_redirects=False)
        assert answer.status_code == 403
        assert f"Airflow does not let you see DAG {dag}" in answer.text


def test_airflow_is_asked_whether_somebody_may_see_its_import_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "get_auth_manager", SimpleAuthManager)
    for role, allowed in (("VIEWER", True), ("ADMIN", True), (None, False)):
        assert access.may_see_faults(SimpleAuthManagerUser(username="vera", role=role)) is allowed


def test_the_flows_that_somebody_may_see_are_asked_for_by_team(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = {alias: Flow(source=alias, target="backup") for alias in "abc"}
    asked: list[tuple[set[str], str | None]] = []

    class Manager(SimpleAuthManager):
        def filter_authorized_dag_ids(self, *, dag_ids: set[str], team_name: str | None = None, **more: object) -> Any:
            asked.append((dag_ids, team_name))
            return super().filter_authorized_dag_ids(dag_ids=dag_ids, team_name=team_name, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(access, "get_auth_manager", Manager)
    monkeypatch.setattr(access, "teams_of", lambda dags: {"ferry__b__backup": "payments"})
    vera = SimpleAuthManagerUser(username="vera", role="VIEWER")
    assert access.seen_by(vera, flows.values()) == {flows["a"]: True, flows["c"]: True}, "she is not of the team"
    assert asked == [({"ferry__a__backup", "ferry__c__backup"}, None), ({"ferry__b__backup"}, "payments")]
    mate = SimpleAuthManagerUser(username="vera", role="VIEWER", teams=["payments"])
    assert access.seen_by(mate, flows.values()) == dict.fromkeys(flows.values(), True)
    nobody = SimpleAuthManagerUser(username="eve", role=None)
    assert access.seen_by(nobody, flows.values()) == {}
    assert access.seen_by(vera, ()) == {}


def test_runs_in_airflow_are_for_who_may_see_them(desk: Desk) -> None:
    moment = datetime.now(UTC)
    theirs = DagRunRow(run="manual__theirs", state="running", queued=moment, started=moment, ended=None, who="grace")
    desk.others[DAGS[0]] = DagState(known=True, runs=(theirs,), due=moment - timedelta(hours=1), schedule="@hourly")
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}), [digest("scheduled__ours")])
    paths = ("/", *(f"{HERE}/{path}" for path in ("", "runs", "topics")))
    its = f"{HERE}/run/{theirs.run}"
    assert all(f"{theirs.run}</a> is running" in desk.page(path) for path in paths)
    assert "Tasks and logs" in desk.page(its)
    desk.refused.add((DAGS[0], "GET", RUN))
    for path in paths:
        page = desk.page(path)
        assert theirs.run not in page, path
        assert "overdue" not in page, "nobody knows: a run may be in its way"
    assert "Tasks and logs" not in desk.page(its)
    page = desk.page(f"{HERE}/runs")
    assert "scheduled__ours" in page
    assert 'id="from-ledger"' in page


def test_of_many_flows_those_have_runs_whose_runs_somebody_may_see(desk: Desk) -> None:
    one, other = (Flow(source=alias, target="backup") for alias in "ab")
    user: Any = None
    assert access.seen_by(user, (one, other)) == {one: True, other: True}
    desk.refused |= {("ferry__a__backup", "GET", RUN)}
    assert access.seen_by(user, (one, other)) == {one: False, other: True}
