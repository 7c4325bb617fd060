"""The client of Airflow's REST API, where Airflow answers that its database is locked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ferry.errors import Unreachable
from ferry_airflow import rest as client
from ferry_airflow.home import LocalHome
from ferry_airflow.rest import AirflowRest

LOCKED = 500, {"detail": {"reason": "Database error", "statement": "hidden"}}
BROKEN = 500, {"detail": "Internal Server Error"}
TAKEN = 200, {"dag_run_id": "manual__1"}
SILENT = 0, None


@pytest.fixture
def answers() -> list[tuple[int, object]]:
    """What is answered to triggers, one behind the other; a lock cannot be had in time from a real Airflow."""
    return []


@pytest.fixture
def asked() -> list[dict[str, object]]:
    """What was sent."""
    return []


@pytest.fixture
def rest(answers: list[tuple[int, object]], asked: list[dict[str, object]], tmp_path: Path) -> Iterator[AirflowRest]:
    """A client of those answers."""

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.answer()

        def answer(self) -> None:
            status, body = (201, {"access_token": "t"}) if self.path == "/auth/token" else answers.pop(0)
            if not status:  # it is carried out, and the answer does not come
                self.close_connection = True
                return
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with AirflowRest(LocalHome(path=tmp_path, port=server.server_port, environment={}, password="p")) as opened:
            yield opened
    finally:
        server.shutdown()
        server.server_close()


def test_a_request_that_a_locked_database_did_not_take_is_sent_again(
    rest: AirflowRest, answers: list[tuple[int, object]]
) -> None:
    answers += [LOCKED, LOCKED, TAKEN]
    assert rest.trigger("a-dag") == "manual__1"
    assert not answers


def test_a_request_without_an_answer_is_sent_again(rest: AirflowRest, answers: list[tuple[int, object]]) -> None:
    answers += [SILENT, SILENT, (200, {"dag_runs": [{"dag_run_id": "r"}]})]
    assert rest.runs("a-dag") == [{"dag_run_id": "r"}]


def test_a_run_is_started_once_however_often_the_answer_does_not_come(
    rest: AirflowRest, answers: list[tuple[int, object]], asked: list[dict[str, object]]
) -> None:
    answers += [SILENT, (409, {"detail": "it is there"}), TAKEN]
    assert rest.trigger("a-dag") == "manual__1"
    names = [body["dag_run_id"] for body in asked if "dag_run_id" in body]
    assert len(names) == 2
    assert len(set(names)) == 1, "one run, by one id"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_stays_silent_is_named_with_the_request(
    rest: AirflowRest, answers: list[tuple[int, object]], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.0)
    answers += [SILENT]
    with pytest.raises(Unreachable) as silent:
        rest.ask(method, "/api/v2/something", {} if method == "POST" else None)
    assert f"{method} /api/v2/something" in str(silent.value)
    assert ("is not known" in str(silent.value)) is (method == "POST")


def test_any_other_error_is_told_at_once(rest: AirflowRest, answers: list[tuple[int, object]]) -> None:
    answers += [BROKEN, TAKEN]
    with pytest.raises(Unreachable, match=r"500\b.*POST"):
        rest.trigger("a-dag")
    assert answers == [TAKEN]
