"""Airflow's REST API as far as the tests need it and the demo does not: what a user does in the interface."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from ferry.errors import Unreachable
from ferry_airflow.log_groups import END_GROUP, GROUP
from ferry_airflow.rest import ENDED, AirflowRest, Json, until
from tests.tiers import ANSWER_S, PATIENCE


class Rest(AirflowRest):
    """A logged-in client; use as a context manager."""

    def wait_dag(self, dag_id: str, *, seconds: float = 60.0) -> None:
        """As Ferry's own, with the patience of tests."""
        super().wait_dag(dag_id, seconds=seconds * PATIENCE)

    def wait_run(self, dag_id: str, run: str, *, seconds: float = 180.0, states: Collection[str] = ENDED) -> str:
        """As Ferry's own, with the patience of tests."""
        return super().wait_run(dag_id, run, seconds=seconds * PATIENCE, states=states)

    def parse_again(self, dag_id: str) -> None:
        """Have Airflow read the DAG's file now, as a user does in the interface."""
        token = self.ask("GET", f"/api/v2/dags/{dag_id}/details")["file_token"]
        self.ask("PUT", f"/api/v2/parseDagFile/{token}")

    def backfill(self, dag_id: str, start: str, end: str, conf: Mapping[str, Any], reprocess: str = "none") -> None:
        """Have Airflow run the DAG for dates; `reprocess` is none, failed or completed."""
        body = {"dag_id": dag_id, "from_date": start, "to_date": end, "dag_run_conf": dict(conf)}
        self.ask("POST", "/api/v2/backfills", {**body, "reprocess_behavior": reprocess, "max_active_runs": 1})

    def backfills(self, dag_id: str) -> list[Json]:
        """The DAG's backfills."""
        found: list[Json] = self.ask("GET", f"/api/v2/backfills?dag_id={dag_id}")["backfills"]
        return found

    def wait_task(self, dag_id: str, run: str, task: str, states: Collection[str], *, seconds: float = 300.0) -> None:
        """Wait until a task has one of the states."""
        seconds *= PATIENCE
        if not until(lambda: self.states(dag_id, run).get(task) in states, seconds):
            raise Unreachable(f"task {task} of {run} is not {states} after {seconds:.0f} s: {self.states(dag_id, run)}")

    def set_task_state(self, dag_id: str, run: str, task: str, state: str) -> None:
        """Mark a task, as a user does in the interface; a running one is killed."""
        self.ask("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}", {"new_state": state})

    def tries(self, dag_id: str, run: str, task: str) -> dict[int, str | None]:
        """The state of each try of a task, by its number."""
        found = self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}/tries")
        return {each["try_number"]: each["state"] for each in found["task_instances"]}

    def fail(self, dag_id: str, run: str) -> None:
        """Mark a run as failed, as a user does in the interface; its tasks are killed."""
        self.ask("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}", {"state": "failed"})

    def clear(self, dag_id: str, run: str) -> None:
        """Clear a whole run, so that it runs again."""
        self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/clear", {"dry_run": False})

    def clear_from(self, dag_id: str, run: str, task: str) -> None:
        """Clear a task and those behind it, so that the run goes on there."""
        body = {"dag_run_id": run, "task_ids": [task], "include_downstream": True, "only_failed": False}
        self.ask("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", {**body, "dry_run": False})

    def answer(self, dag_id: str, run: str, task: str, option: str) -> None:
        """Answer a task that waits for a person, as a user does under Required Actions."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}/-1/hitlDetails"
        self.ask("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def question(self, dag_id: str, run: str, task: str) -> Json:
        """What such a task asks, and its answer."""
        return self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}/-1/hitlDetails")

    def unfolded(self, dag_id: str, run: str, task: str) -> list[str]:
        """The lines of a task's log that are in no group: what a user sees without unfolding one."""
        found, depth = [], 0
        for line in self.log(dag_id, run, task).splitlines():
            depth += line.startswith(GROUP) - (line == END_GROUP)
            if not depth and line != END_GROUP:
                found.append(line)
        return found

    def returned(self, dag_id: str, run: str, task: str) -> Any:
        """What a task has returned."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}/xcomEntries/return_value"
        return self.ask("GET", f"{path}?deserialize=true")["value"]

    def links(self, dag_id: str, run: str, task: str) -> dict[str, str]:
        """The buttons of a task, by their names."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run)}/taskInstances/{task}/links"
        found: dict[str, str] = self.ask("GET", path)["extra_links"]
        return found

    def opened(self, path: str) -> str:
        """A page of Airflow's server, once it does not ask to be loaded again."""
        answers: list[httpx.Response] = []

        def loaded() -> bool:
            answers.append(self._http.get(path))
            return answers[-1].status_code != httpx.codes.SERVICE_UNAVAILABLE

        if not until(loaded, ANSWER_S) or answers[-1].is_error:
            raise Unreachable(f"{path} answers {answers[-1].status_code}: {answers[-1].text[:300]}")
        return answers[-1].text
