"""What the page starts runs with, held against the forms of the real DAGs and what these make of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from ferry.config.settings import load
from ferry.model import TimeWindow
from ferry.plan.options import RunOptions
from ferry_airflow import steps
from ferry_airflow.dags import flow_dags
from ferry_airflow.drilling import Asked, drill_of
from ferry_airflow.window_steps import backfill_of
from tests.airflow.page.conftest import FLOW, Desk

DAY = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00+02:00"}
LONGEST = {"topics": ["orders", "x" * 249]}


def form_of(desk: Desk, verb: str, body: dict[str, Any]) -> tuple[DAG, dict[str, Any]]:
    """The DAG that the page runs, and its form as filled in by that: as Airflow merges and checks the two."""
    status, answer = desk.act(verb, body)
    assert status == 200, answer
    dag, _, conf = desk.triggered.pop()
    found = flow_dags(os.environ["FERRY_CONFIG"])[str(dag)]
    assert isinstance(conf, dict)
    assert set(conf) <= set(found.params), "what a form has no field for is not read"
    found.params.update(conf)
    return found, found.params.validate()


@pytest.mark.parametrize("body", [{}, LONGEST])
def test_a_run(desk: Desk, body: dict[str, Any]) -> None:
    options = steps.options_of(form_of(desk, "run", body)[1])
    assert options == RunOptions(only=frozenset(body.get("topics", ())) or None)


@pytest.mark.parametrize("mode", ["full", "sample", "compacted"])
@pytest.mark.parametrize("topics", [{}, LONGEST])
def test_a_verification(desk: Desk, mode: str, topics: dict[str, Any]) -> None:
    wanted = steps.wanted_of(form_of(desk, "verify", {"mode": mode, **topics})[1])
    assert wanted.topics == (frozenset(topics.get("topics", ())) or None)
    assert (wanted.sample is not None, wanted.compacted) == (mode == "sample", mode == "compacted")


@pytest.mark.parametrize("lane", [{}, {"lane": "append-" + "x" * 40}])
@pytest.mark.parametrize("topics", [{}, LONGEST])
def test_a_backfill(desk: Desk, lane: dict[str, Any], topics: dict[str, Any]) -> None:
    params = form_of(desk, "backfill", {**DAY, **lane, **topics})[1]
    made = backfill_of(load(Path(os.environ["FERRY_CONFIG"])).flow(FLOW), "run", params, None)
    assert made.lane == lane.get("lane", "backfill-airflow")
    assert made.options.only == (frozenset(topics.get("topics", ())) or None)
    assert made.options.window == TimeWindow(from_ms=1_767_225_600_000, to_ms=1_767_304_800_000)


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "tabletop"},
        {"kind": "shadow"},
        {"kind": "shadow", **LONGEST},
        {"kind": "partial", "topics": ["orders"]},
        {"kind": "partial", "groups": ["g" * 255, "billing"]},
        {"kind": "full", "reason": "x" * 500},
    ],
)
def test_a_drill(desk: Desk, body: dict[str, Any]) -> None:
    if body["kind"] == "full":  # it goes back
        config = Path(os.environ["FERRY_CONFIG"])
        config.write_text(f"{config.read_text()}backup->primary.enabled = true\nbackup->primary.topics = .*\n")
    params = form_of(desk, "drill", body)[1]
    assert {name: params[name] for name in body} == body
    settings = load(Path(os.environ["FERRY_CONFIG"]))
    drill_of(Asked(settings=settings, flow=settings.flow(FLOW), params=params, who="d@h", run="manual__1"))


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({"kind": "tabletop", "topics": ["orders"]}, "topics", "A tabletop drill has no topics: leave the field empty"),
        ({"kind": "shadow", "groups": ["g"]}, "groups", "A shadow drill has no groups"),
        ({"kind": "full", "topics": ["orders"]}, "topics", "A full drill has no topics"),
        ({"kind": "partial"}, "topics", "name one"),
        ({"kind": "shadow", "topics": ["__consumer_offsets"]}, "topics", "does not copy topic __consumer_offsets"),
    ],
)
def test_what_its_dag_would_refuse_is_refused_before_a_run_is_queued(
    desk: Desk, body: dict[str, Any], field: str, said: str
) -> None:
    status, answer = desk.act("drill", body)
    assert status == 422
    assert said in answer["fields"][field]  # type: ignore[index]
    assert not desk.triggered
