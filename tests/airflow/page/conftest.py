"""The page without an Airflow around it: a flow as its thread would have seen it, and somebody signed in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Any, NoReturn, cast

import pytest
from airflow.api_fastapi.auth.managers.models.batch_apis import IsAuthorizedDagRequest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models import import_all_models
from airflow.models.base import Base
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from ferry.errors import BadInput, Unreachable
from ferry.model import TopicPartition
from ferry.plan.rules.lag import PartitionLag
from ferry.reader.answers import Ended, Key
from ferry.reader.client import Reader
from ferry.reader.documents import Answer, RunDigest
from ferry.reader.flows import Flows
from ferry.reader.service import Service
from ferry.reader.watch import FlowPoll, FlowWatch
from ferry.reader.watcher import Job, Watcher, Watchers
from ferry_airflow.page import (
    access,
    actions,
    airflow_side,
    dag_runs,
    other_dags,
    page_state,
    pages,
    retries,
    series,
    starting,
)
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.app import page_app
from ferry_airflow.page.dag_runs import DagRunStory, Reason
from ferry_airflow.page.features import records
from ferry_airflow.page.flows import page_flows
from ferry_airflow.page.page_state import PageState
from ferry_airflow.page.retry_words import Retry

Right = tuple[str, str, DagAccessEntity | None]
"""A DAG or a custom view, a method, and what of the DAG; None: the DAG itself."""
RUN = DagAccessEntity.RUN
FLOW = "primary->backup"
LANE = "live"
HERE = "/flow/primary/backup"
REPORTS = "ferry.report.dir = /var/lib/ferry/reports"
TEXT = f"""clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:1
backup.bootstrap.servers = 127.0.0.1:1
primary->backup.enabled = true
primary->backup.topics = .*
ferry.page.records = true
ferry.groups.schedule = none
{REPORTS}
"""


class Still(Watcher):
    """A watcher that never looks: what was seen is given to it, and a job stays undone."""

    def __init__(self) -> None:
        super().__init__(self._nobody, "primary", "backup")

    @property
    def name(self) -> str:
        """Another one each time: tests change what was seen without a look."""
        return token_hex(4)

    @name.setter
    def name(self, name: str) -> None: ...

    @staticmethod
    def _nobody() -> NoReturn:
        raise Unreachable("nobody is there")

    def _start(self) -> None:
        pass

    def see(self, poll: FlowPoll, runs: Sequence[RunDigest] = ()) -> None:
        """As if the thread had looked."""
        self._take(poll, tuple(runs), LANE)

    def amend(self, **changes: Any) -> None:
        """As if the last look had seen this: fields of the snapshot, with the number that it has."""
        self._seen = replace(self._seen, **changes)

    def look(self, watch: object, poll: FlowPoll) -> tuple[RunDigest, ...]:
        """The digests that a look reads of the newest runs; `watch` stands for the connection."""
        return self._runs(cast("FlowWatch", watch), poll)

    def look_back(self, watch: object) -> None:
        """Read the next older run, as the thread does between looks."""
        self._read_older(cast("FlowWatch", watch))

    def do(self, job: Job, work: Callable[[], Any]) -> None:
        """As if the thread had come to a job."""
        self._do(job, work)

    @property
    def jobs(self) -> list[Job]:
        """The jobs that are kept."""
        return list(self._jobs.values())

    @property
    def kept_answers(self) -> dict[Key, Answer]:
        """The answers that are kept, by question."""
        return self._answers._kept

    def forget(self) -> None:
        """Forget all answers."""
        self.kept_answers.clear()

    @property
    def unread(self) -> list[str]:
        """The runs that are still to be read, the next one first."""
        return [run.record.run for run in self._unread]

    def is_nudged(self) -> bool:
        """Whether the thread is asked to look at once; asking forgets it."""
        nudged = False
        while not self._inbox.empty():
            nudged |= self._inbox.get() is None
        return nudged

    def has(self, key: Key, got: object) -> None:
        """As if the thread had this answer to a question of a page."""

        def begin(ended: Ended) -> threading.Event:
            ended(got, "")
            done = threading.Event()
            done.set()
            return done

        self._answers.answer(key, begin, fresh_seconds=0)


@dataclass
class Somebody:
    """Who is signed in."""

    name: str = "ada"

    def get_name(self) -> str:
        return self.name

    def get_id(self) -> str:
        return self.name


@dataclass(frozen=True)
class Keeper:
    """Airflow's auth manager, as far as the page asks it of DAGs and custom views."""

    refused: set[Right]

    def is_authorized_dag(
        self, *, method: str, access_entity: DagAccessEntity | None, details: DagDetails, user: Somebody
    ) -> bool:
        assert details.id is not None
        return (details.id, method, access_entity) not in self.refused

    def is_authorized_custom_view(self, *, method: str, resource_name: str, user: Somebody) -> bool:
        return (resource_name, method, None) not in self.refused

    def batch_is_authorized_dag(self, requests: Sequence[IsAuthorizedDagRequest], *, user: Somebody) -> bool:
        return all(self.is_authorized_dag(**one, user=user) for one in requests)  # type: ignore[arg-type]

    def filter_authorized_dag_ids(
        self, *, dag_ids: set[str], user: Somebody, method: str, team_name: str | None
    ) -> set[str]:
        return {dag for dag in dag_ids if (dag, method, None) not in self.refused}


@dataclass
class Desk:
    """The application, with what Airflow would answer it."""

    app: FastAPI
    client: TestClient
    watcher: Still
    watchers: Watchers
    refused: set[Right] = field(default_factory=set)
    """What Airflow does not allow."""
    sees_faults: bool = True
    """Whether Airflow shows its import errors."""
    dag: DagState = field(default_factory=lambda: DagState(known=True))
    others: dict[str, DagState] = field(default_factory=dict)
    """DAGs that stand otherwise than `dag`."""
    older: tuple[DagRunRow, ...] = ()
    """Runs of the flow's DAG that are not among its newest."""
    failed: tuple[DagRunRow, ...] = ()
    """Its newest failed runs, which are not among its newest."""
    retries: dict[tuple[str, str], tuple[Retry, ...]] = field(default_factory=dict)
    """The tasks that Airflow tries again, by DAG and run."""
    asking: set[tuple[str, str]] = field(default_factory=set)
    """DAGs and runs that wait for an approval."""
    stories: dict[tuple[str, str], DagRunStory] = field(default_factory=dict)
    """Runs of the flow's other DAGs, by DAG and run."""
    reasons: tuple[tuple[str, str], ...] = ()
    """Why tasks of any run have failed."""
    failures: tuple[Reason, ...] = ()
    """What tasks of its newest runs kept when they failed, oldest first."""
    audited: list[tuple[object, ...]] = field(default_factory=list)
    triggered: list[tuple[object, ...]] = field(default_factory=list)
    cleared: list[tuple[object, ...]] = field(default_factory=list)

    def page(self, path: str, status: int = 200) -> str:
        """A page as a browser asks for it, without the places at which a name may be broken."""
        answer = self.client.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == status, answer.text
        return answer.text.replace("<wbr>", "")

    def act(self, verb: str, body: object, **headers: str) -> tuple[int, dict[str, object]]:
        """A request as the page sends it."""
        sent = {"X-Ferry-Request": "1", "Accept": "application/json", **headers}
        answer = self.client.post(f"/api{HERE}/{verb}", json=body, headers=sent)
        return answer.status_code, answer.json()


def read_by(service: Service, config: Path) -> Reader:
    """What asks a reader that is in this process; all that passes is written and read as between two."""

    def no_connection(conn_id: str) -> Mapping[str, str]:
        raise BadInput(f"Airflow connection {conn_id!r} does not exist")

    return Reader(lambda message, seconds: service.reply(message), config=str(config), lookup=no_connection)


@pytest.fixture(scope="session")
def application() -> tuple[FastAPI, PageState]:
    """The application, made once because its routes take longer than most tests, and its first state."""
    app = page_app()
    return app, app.state.office


@pytest.fixture
def desk(application: tuple[FastAPI, PageState], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A page with one flow that nothing is known of yet."""
    config = tmp_path / "flows.properties"
    config.write_text(TEXT)
    monkeypatch.setenv("FERRY_CONFIG", str(config))
    app, office = application
    monkeypatch.setattr(app, "dependency_overrides", {get_user: Somebody})
    watcher = Still()
    with TestClient(app) as client:
        watchers = Watchers()
        made = Desk(app=app, client=client, watcher=watcher, watchers=watchers)
        monkeypatch.setattr(watchers, "of", lambda key, make: watcher)
        monkeypatch.setattr(watchers, "job", watcher.job)
        reader = read_by(Service(Flows(), watchers, stays=True), config)
        app.state.office = replace(office, flows=page_flows(), reader=reader)
        states = lambda dags: {dag: made.others.get(dag, made.dag) for dag in dags}  # noqa: E731
        for module in (page_state, pages, starting, other_dags, dag_runs):
            monkeypatch.setattr(module, "dag_states", states)

        def with_older(dag: str, known: DagState, runs: Sequence[str]) -> DagState:
            return replace(known, runs=(*known.runs, *(one for one in made.older if one.run in runs)))

        monkeypatch.setattr(page_state, "with_older", with_older)
        with_failed = lambda dag, known: replace(known, runs=(*known.runs, *made.failed))  # noqa: E731
        monkeypatch.setattr(page_state, "with_failed", with_failed)
        again = lambda runs: {run: made.retries[run] for run in runs if run in made.retries}  # noqa: E731
        monkeypatch.setattr(retries, "retries_of", again)
        monkeypatch.setattr(dag_runs, "asking", lambda dags: {one for one in made.asking if one[0] in dags})
        asked = lambda runs: {  # noqa: E731
            run: (made.stories[run].conf, made.stories[run].returned) for run in runs if run in made.stories
        }
        monkeypatch.setattr(dag_runs, "asked_and_returned", asked)
        story_of = lambda dag, run, with_returned: made.stories.get((dag, run))  # noqa: E731
        monkeypatch.setattr(other_dags, "story_of", story_of)
        monkeypatch.setattr(pages, "reasons_of", lambda dag, run: made.reasons)
        first = lambda runs: dict.fromkeys(runs, made.reasons[0][1]) if made.reasons else {}  # noqa: E731
        monkeypatch.setattr(pages, "first_reasons", first)
        newest = lambda dag, since_ms: [one for one in made.failures if one.at_ms >= since_ms]  # noqa: E731
        monkeypatch.setattr(series, "newest_reasons", newest)
        monkeypatch.setattr(access, "get_auth_manager", lambda: Keeper(made.refused))
        monkeypatch.setattr(access, "teams_of", lambda dags: {})
        monkeypatch.setattr(page_state, "may_see_faults", lambda user: made.sees_faults)
        monkeypatch.setattr(actions, "WAIT_SECONDS", 0.0)

        def clear_failed(dag: str, run: str) -> int:
            made.cleared.append((dag, run))
            return 2

        monkeypatch.setattr(actions, "clear_failed", clear_failed)
        for module in (actions, starting, records):
            monkeypatch.setattr(module, "audit", lambda *what: made.audited.append(what))

        def trigger(dag: str, who: str, conf: dict[str, object]) -> str:
            made.triggered.append((dag, who, conf))
            return "manual__1"

        monkeypatch.setattr(starting, "trigger", trigger)
        yield made


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Airflow's tables, in memory."""
    import_all_models()
    engine = create_engine("sqlite://", connect_args={"check_same_thread": False}, poolclass=StaticPool)
    Base.metadata.create_all(engine)
    with Session(engine) as session:

        @contextmanager
        def opened() -> Iterator[Session]:
            yield session

        for module in (airflow_side, dag_runs, retries):
            monkeypatch.setattr(module, "create_session", opened)
        yield session


def lag(topic: str, partition: int, records: int | None, seconds: float | None = None) -> PartitionLag:
    """How far a partition is behind; None: nobody knows."""
    return PartitionLag(
        source=TopicPartition(topic=topic, partition=partition),
        target=TopicPartition(topic=f"primary.{topic}", partition=partition),
        position=10,
        source_end=None if records is None else 10 + records,
        records=records,
        bytes=None if records is None else records * 100,
        seconds=None if records is None else seconds if records else 0.0,
    )
