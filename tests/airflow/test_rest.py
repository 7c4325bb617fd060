"""The client of Airflow's REST API, where Airflow answers that its database is locked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ferry.errors import Unreachable
from ferry_airflow.home import LocalHome
from ferry_airflow.rest import AirflowRest

LOCKED = 500, {"detail": {"reason": "Database error", "statement": "hidden"}}
BROKEN = 500, {"detail": "Internal Server Error"}
TAKEN = 200, {"dag_run_id": "manual__1"}


@pytest.fixture
def answers() -> list[tuple[int, object]]:
    """What is answered to triggers, one behind the other; a lock cannot be had in time from a real Airflow."""
    return []


@pytest.fixture
def rest(answers: list[tuple[int, object]], tmp_path: Path) -> Iterator[AirflowRest]:
    """A client of those answers."""

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = (201, {"access_token": "t"}) if self.path == "/auth/token" else answers.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with AirflowRest(LocalHome(path=tmp_path, port=server.server_port, environment={}, password="p")) as client:
            yield client
    finally:
        server.shutdown()
        server.server_close()


def test_a_request_that_a_locked_database_did_not_take_is_sent_again(
    rest: AirflowRest, answers: list[tuple[int, object]]
) -> None:
    answers += [LOCKED, LOCKED, TAKEN]
    assert rest.trigger("a-dag") == "manual__1"
    assert not answers


def test_any_other_error_is_told_at_once(rest: AirflowRest, answers: list[tuple[int, object]]) -> None:
    answers += [BROKEN, TAKEN]
    with pytest.raises(Unreachable, match="answered 500 to POST"):
        rest.trigger("a-dag")
    assert answers == [TAKEN]
