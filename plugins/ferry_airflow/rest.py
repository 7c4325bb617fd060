"""Airflow's REST API as far as the demo and the bench need it: trigger, wait, read logs."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote

import httpx

from ferry.errors import Unreachable
from ferry_airflow.home import USER, LocalHome

POLL_SECONDS = 0.25
LOCKED_SECONDS = 60.0
"""How long a request is repeated that the database did not take."""
ANSWER_SECONDS = 30.0
"""How long one answer may take."""
PATIENCE_SECONDS = 240.0
"""How long a request is repeated that got no answer: a busy machine is slow, but continues."""
ENDED = ("success", "failed")
_SAFE = ("GET", "PATCH")
"""Requests that may be carried out twice."""
Json = dict[str, Any]


class AirflowRest:
    """A logged-in client; use as a context manager."""

    def __init__(self, home: LocalHome) -> None:
        """Log in at once, as USER; Unreachable when the API does not take the login."""
        self._http = httpx.Client(base_url=home.url, timeout=ANSWER_SECONDS)
        login = {"username": USER, "password": home.password}
        answer = self._answered("POST", "/auth/token", login, again=True)
        if answer.is_error:
            raise Unreachable(f"Airflow at {home.url} refused the login of {USER}: {answer.text[:300]}")
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def has_dag(self, dag_id: str) -> bool:
        """Return whether the DAG processor has read the DAG. It is asked for by name: a list ends after 50 (or 100)."""
        return self._answered("GET", f"/api/v2/dags/{quote(dag_id)}").status_code == httpx.codes.OK

    def import_errors(self) -> list[Json]:
        """Return the DAG files that could not be read."""
        errors: list[Json] = self.ask("GET", "/api/v2/importErrors")["import_errors"]
        return errors

    def wait_dag(self, dag_id: str, *, seconds: float = 60.0) -> None:
        """Wait until the DAG processor has read the DAG; Unreachable names import errors otherwise."""
        if not until(lambda: self.has_dag(dag_id), seconds):
            raise Unreachable(f"DAG {dag_id} is not there after {seconds:.0f} s; import errors: {self.import_errors()}")

    def pause(self, dag_id: str, *, paused: bool) -> None:
        """Pause or unpause a DAG."""
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": paused})

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> str:
        """Start a run with the given params; return its run id.

        The id is sent with the request, so that one without an answer can be repeated and still starts one run.
        """
        name = f"manual__{datetime.now(UTC).isoformat()}_{secrets.token_hex(4)}"
        body = {"dag_run_id": name, "logical_date": None, "conf": dict(conf or {})}
        path = f"/api/v2/dags/{dag_id}/dagRuns"
        answer = self._taken("POST", path, body, again=True)
        if answer.status_code == httpx.codes.CONFLICT:  # the first request was carried out
            return str(self.run(dag_id, name)["dag_run_id"])
        return str(_body(answer, "POST", path)["dag_run_id"])

    def runs(self, dag_id: str) -> list[Json]:
        """Return the DAG's runs, oldest first."""
        found: list[Json] = self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns?order_by=run_after&limit=100")["dag_runs"]
        return found

    def run(self, dag_id: str, run: str) -> Json:
        """Return one run."""
        return self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}")

    def tasks(self, dag_id: str, run: str) -> dict[str, Json]:
        """Return the run's task instances by task id."""
        answer = self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances")
        return {task["task_id"]: task for task in answer["task_instances"]}

    def states(self, dag_id: str, run: str) -> dict[str, str | None]:
        """Return the state of each task of the run."""
        return {name: task["state"] for name, task in self.tasks(dag_id, run).items()}

    def wait_run(self, dag_id: str, run: str, *, seconds: float = 180.0, states: Collection[str] = ENDED) -> str:
        """Wait until the run has one of the states; Unreachable with the tasks' states when it has not."""
        if not until(lambda: self.run(dag_id, run)["state"] in states, seconds):
            raise Unreachable(f"run {run} of {dag_id} did not end in {seconds:.0f} s: {self.states(dag_id, run)}")
        return str(self.run(dag_id, run)["state"])

    def log(self, dag_id: str, run: str, task: str, attempt: int = 1) -> str:
        """Return a task try's log as text."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}/logs/{attempt}?full_content=true"
        content = self.ask("GET", path)["content"]
        return "\n".join(_line(item) for item in content)

    def ask(self, method: str, path: str, body: object = None) -> Json:
        """Return the answer to a request of any path; raises Unreachable if Airflow does not answer, or refuses it."""
        return _body(self._taken(method, path, body, again=method in _SAFE), method, path)

    def _taken(self, method: str, path: str, body: object, *, again: bool) -> httpx.Response:
        """Return the answer, once the database has taken the request, or has not for LOCKED_SECONDS."""
        answers: list[httpx.Response] = []

        def is_taken() -> bool:
            answers.append(self._answered(method, path, body, again=again))
            return not _is_locked(answers[-1])

        until(is_taken, LOCKED_SECONDS)
        return answers[-1]

    def _answered(self, method: str, path: str, body: object = None, *, again: bool = True) -> httpx.Response:
        """Return the answer to a request; with `again`, a request without an answer is repeated.

        It may then be carried out twice. Unreachable names the request, and what is not known of it.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        pause = threading.Event()
        while True:
            try:
                return self._http.request(method, path, json=body)
            except httpx.TransportError as error:
                if again and time.monotonic() < deadline:
                    pause.wait(POLL_SECONDS)
                    continue
                waited = f"in {PATIENCE_SECONDS:.0f} s" if again else f"in {ANSWER_SECONDS:.0f} s"
                unknown = "" if method == "GET" else ", and whether it was carried out is not known"
                raise Unreachable(
                    f"Airflow at {self._http.base_url} gave no answer to {method} {path} {waited} "
                    f"({str(error) or type(error).__name__}){unknown}: Airflow and its runs continue; check there"
                ) from error


def _body(answer: httpx.Response, method: str, path: str) -> Json:
    if answer.is_error:
        raise Unreachable(f"Airflow answered {answer.status_code} to {method} {path}: {answer.text[:500]}")
    found: Json = answer.json()
    return found


def _is_locked(answer: httpx.Response) -> bool:
    """Return whether the database did not take a request, so that it had no effect.

    Airflow 3.3.2 waits for SQLite's lock on the very event loop that the request which holds it needs to end. SQLite
    stops waiting after 5 s, and the answer is 500.
    """
    return answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "Database error" in answer.text


def _line(item: object) -> str:
    if not isinstance(item, dict):
        return str(item)
    error = " ".join(f"{part.get('exc_type')}: {part.get('exc_value')}" for part in item.get("error_detail") or ())
    return f"{item.get('event', '')} {error}".rstrip()


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether the condition holds within some seconds."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(POLL_SECONDS)
    return True
