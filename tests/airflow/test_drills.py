"""Drills by a real Airflow, of one flow, one behind the other: their reports make a chain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ferry.features.evidence.acts.folder import check_folder, read_folder
from ferry.features.evidence.acts.store import store_of
from tests.airflow.conftest import Flows
from tests.airflow.test_assets import events
from tests.harness import commit_offsets, committed_offsets, create_topic, numbered, producer, read_topic, send

DAG = "ferry_drill__rehearsed__trehearsed"
TOPIC, GROUP = "rehearsed-orders", "rehearsed-billing"
WAIT_SECONDS = 400


def begun(flows: Flows, conf: Mapping[str, object], *, asks: bool) -> str:
    """Trigger a drill, and approve of it where it asks; the run, once it has ended."""
    run = flows.asked(DAG, conf) if asks else flows.rest.trigger(DAG, conf)
    if asks:
        flows.rest.answer(DAG, run, "approve", "Approve")
    flows.rest.wait_run(DAG, run, seconds=WAIT_SECONDS)
    return run


def report_of(flows: Flows, run: str, task: str) -> dict[str, Any]:
    """The report that a task's return value leads to; its place is in the log, too."""
    returned = flows.rest.returned(DAG, run, task)
    assert returned["outcome"] == "success", returned
    said = flows.rest.log(DAG, run, task)
    assert f"report: {returned['report']['page']}" in said
    assert "Updated metadata" not in said, "what the client library says of itself is nobody's business"
    assert Path(returned["report"]["page"]).exists()
    opened = flows.rest.opened(flows.rest.links(DAG, run, task)["Report"])
    assert "rehearsed" in opened
    found: dict[str, Any] = json.loads(Path(returned["report"]["json"]).read_text())
    return found


@pytest.mark.timeout(900)
def test_drills_end_in_reports_that_say_who_approved(flows: Flows) -> None:
    rest = flows.rest
    create_topic(flows.source, TOPIC)
    send(producer(flows.source), TOPIC, numbered(50))
    commit_offsets(flows.source, GROUP, {(TOPIC, 0): 20})
    flows.lab("rehearsed").micro_run()
    send(producer(flows.source), TOPIC, numbered(10, start=50))

    # Refused before anybody is asked, and by whoever is.
    run = rest.trigger(DAG, {"kind": "partial"})
    assert rest.wait_run(DAG, run, seconds=WAIT_SECONDS) == "failed"
    assert "needs topics or groups" in rest.log(DAG, run, "preview")
    run = flows.asked(DAG, {"kind": "partial", "topics": [TOPIC], "reason": "monthly"})
    body = rest.question(DAG, run, "approve")["body"].replace("\\", "")
    assert "monthly" in body
    assert f"run rehearsed->trehearsed for {TOPIC} alone" in body
    rest.answer(DAG, run, "approve", "Reject")
    assert rest.wait_run(DAG, run, seconds=WAIT_SECONDS) == "success"
    assert (rest.states(DAG, run)["rehearse"], rest.states(DAG, run)["drill"]) == ("skipped", "skipped")
    assert len(read_topic(flows.target.bootstrap, f"rehearsed.{TOPIC}")[0]) == 50

    run = begun(flows, {"kind": "shadow", "from": "earliest"}, asks=False)
    assert rest.states(DAG, run) == {
        **dict.fromkeys(("preview", "approve", "rehearse"), "success"),
        **dict.fromkeys(("drill", "assets"), "skipped"),
    }, rest.log(DAG, run, "rehearse")
    report = report_of(flows, run, "rehearse")
    assert report["kind"] == "shadow"
    assert report["verification"]["records"] == 60
    assert len(read_topic(flows.target.bootstrap, f"rehearsed.{TOPIC}")[0]) == 50, "production is untouched"

    run = begun(flows, {"kind": "partial", "topics": [TOPIC]}, asks=True)
    assert rest.states(DAG, run)["assets"] == "success", rest.log(DAG, run, "drill")
    assert report_of(flows, run, "drill")["kind"] == "partial"
    (event,) = events(flows, f"kafka://{flows.target.bootstrap}/rehearsed.{TOPIC}")
    assert (event["extra"]["records"], event["source_run_id"]) == (10, run), (
        "what it copied is told to who waits for it"
    )
    send(producer(flows.source), TOPIC, numbered(10, start=60))

    run = begun(flows, {"kind": "full", "quiet_seconds": 1, "id": "spring"}, asks=True)
    assert rest.states(DAG, run)["drill"] == "success", rest.log(DAG, run, "drill")
    report = report_of(flows, run, "drill")
    assert (report["kind"], report["id"]) == ("full", "spring")
    approved = {(step["approved_by"], step["approved_ms"]) for step in report["steps"] if step["approved_by"]}
    assert {who for who, _ in approved} == {"admin (answered in Airflow)"}
    assert len(read_topic(flows.target.bootstrap, f"rehearsed.{TOPIC}")[0]) == 70
    assert "copied 10 records" in rest.log(DAG, run, "drill"), "in Spark"
    assert committed_offsets(flows.target, GROUP, f"rehearsed.{TOPIC}", 1) == {0: 20}
    assert rest.states(DAG, run)["assets"] == "success"
    told = [
        one["extra"]
        for one in events(flows, f"kafka://{flows.target.bootstrap}/rehearsed.{TOPIC}")
        if one["source_run_id"] == run
    ]
    assert [(one["records"], one["run"].startswith("spring-out-drain-")) for one in told] == [(10, True)]

    store = store_of(str(flows.home.path.parent / "reports"))
    assert [one.report.evidence.kind for one in read_folder(store) if one.report] == [*("shadow", "partial", "full")]
    assert [one.problem for one in check_folder(store, None)] == [""] * 3
