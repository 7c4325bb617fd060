"""What the page starts runs with, held against the forms of the real DAGs and what these make of it."""

from __future__ import annotations

import html
import json
import os
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import pytest
from airflow.sdk import DAG

from ferry.config.settings import load
from ferry.features.groups.acts.checkpoint import StoodBack
from ferry.ledger.ledger import UNREAD
from ferry.model import TimeWindow
from ferry.model.evidence import EvidenceKind
from ferry.plan.options import RunOptions
from ferry.reader.watch import FlowPoll
from ferry_airflow import steps, syncing
from ferry_airflow.dags import flow_dags
from ferry_airflow.drill_fields import foreign_field
from ferry_airflow.drilling import Asked, drill_of
from ferry_airflow.window_steps import backfill_of
from tests.airflow.page.conftest import FLOW, HERE, Desk
from tests.airflow.page.everything import filled
from tests.golden import Golden, brief

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


def test_a_verification_of_one_partition(desk: Desk) -> None:
    wanted = steps.wanted_of(form_of(desk, "verify", {"topics": ["orders"], "partition": 3})[1])
    wanted.check()
    assert (wanted.topics, wanted.partition) == ({"orders"}, 3)


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
    ("body", "options"),
    [
        ({}, (None, False)),
        ({"groups": ["billing", "g" * 255], "dry_run": True}, (frozenset({"billing", "g" * 255}), True)),
    ],
)
def test_a_sync_of_groups(
    desk: Desk, body: dict[str, Any], options: tuple[frozenset[str] | None, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[frozenset[str] | None, bool]] = []

    def synced(runs: object, run: str, *, only: frozenset[str] | None, dry_run: bool) -> NoReturn:
        asked.append((only, dry_run))
        raise StoodBack("the flow is paused")

    monkeypatch.setattr(syncing, "sync_groups_unattended", synced)
    monkeypatch.setattr(syncing, "MicroRuns", nullcontext)
    params = form_of(desk, "groups-sync", body)[1]
    syncing.sync(load(Path(os.environ["FERRY_CONFIG"])).flow(FLOW), "run", params)
    assert asked == [options]


def test_each_field_of_a_drill_is_judged(desk: Desk) -> None:
    """A wrong topic does not hide a wrong group, and what the file lacks is at the kind."""
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    excluded = "console-consumer-1"
    _, answer = desk.act("drill", {"kind": "full", "groups": [excluded]})
    assert set(answer["fields"]) == {"kind", "groups"}  # type: ignore[call-overload]
    _, answer = desk.act("drill", {"kind": "partial", "topics": ["__consumer_offsets"], "groups": [excluded]})
    assert set(answer["fields"]) == {"topics", "groups"}  # type: ignore[call-overload]


def test_the_button_of_a_drill_names_the_fields_of_each_kind(desk: Desk) -> None:
    desk.watcher.see(FlowPoll(view=UNREAD, lags=(), troubles={}))
    (given,) = re.findall(r"""data-ask="drill" data-fields='([^']*)'""", desk.page(f"{HERE}/reports"))
    fields = json.loads(html.unescape(given))
    assert set(fields) == {kind.value for kind in EvidenceKind if kind.is_drill}
    for kind, names in fields.items():
        for name in ("topics", "groups"):
            assert (foreign_field(EvidenceKind(kind), {name: ["x"]}) is None) == (name in names)


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("groups-sync", {"groups": ["g" * 256]}, "groups"),
        ("run", {"topics": ["__consumer_offsets"]}, "topics"),
        ("dry-run", {"topics": ["x" * 250]}, "topics"),
        ("verify", {"mode": "other"}, "mode"),
        ("backfill", {"start": DAY["end"], "end": DAY["start"]}, "end"),
        ("backfill", {**DAY, "lane": "live"}, "lane"),
        ("drill", {"kind": "tabletop", "groups": ["g"]}, "groups"),
        ("pause", {"why": "x", "until": "2001-01-01T00:00:00Z"}, "until"),
    ],
)
def test_a_form_that_is_only_checked_is_refused_as_if_it_were_sent_and_does_nothing(
    desk: Desk, verb: str, body: dict[str, Any], field: str
) -> None:
    sent, checked = desk.act(verb, body), desk.act(f"{verb}?check=true", body)
    assert checked == sent
    assert set(checked[1]["fields"]) == {field}  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("run", {"topics": ["orders"]}),
        ("dry-run", {}),
        ("verify", {}),
        ("backfill", DAY),
        ("drill", {"kind": "tabletop"}),
        ("groups-sync", {"dry_run": True}),
        ("pause", {"why": "x"}),
        ("resume", {}),
    ],
)
def test_a_right_form_that_is_only_checked_does_nothing(desk: Desk, verb: str, body: dict[str, Any]) -> None:
    status, answer = desk.act(f"{verb}?check=true", body)
    assert (status < 300, answer) == (True, {})
    assert not desk.triggered
    assert not desk.audited


def test_forms_offer_topics_and_groups_by_a_part_of_their_names(desk: Desk) -> None:
    filled(desk)
    found = desk.client.get(f"/api{HERE}/topics", params={"q": "METRICS"}).json()
    assert (len(found["names"]), found["total"]) == (48, 48)
    assert desk.client.get(f"/api{HERE}/topics").json()["names"][0] == ["audit", 4]
    copies = desk.client.get(f"/api{HERE}/topics", params={"q": "PRIMARY.audit", "back": True}).json()
    assert copies["names"] == [["primary.audit", 4]]
    assert desk.client.get(f"/api{HERE}/topics", params={"q": "PRIMARY.audit"}).json()["names"] == []
    groups = desk.client.get(f"/api{HERE}/groups", params={"q": "bill"}).json()
    assert (groups["names"], groups["total"], groups["waiting"]) == ([["billing", 41]], 1, False)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "tabletop", "topics": ["orders"]}, "topics"),
        ({"kind": "shadow", "groups": ["g"]}, "groups"),
        ({"kind": "full", "topics": ["orders"]}, "topics"),
        ({"kind": "partial"}, "topics"),
        ({"kind": "shadow", "topics": ["__consumer_offsets"]}, "topics"),
    ],
    ids=brief,
)
def test_what_its_dag_would_refuse_is_refused_before_a_run_is_queued(
    desk: Desk, body: dict[str, Any], field: str, golden: Golden
) -> None:
    status, answer = desk.act("drill", body)
    fields = answer["fields"]
    assert isinstance(fields, dict)
    # The file has no flow back: that is refused at the kind, whatever else is wrong.
    assert (status, {*fields}) == (422, {field, "kind"} if body["kind"] == "full" else {field})
    golden(fields[field])
    assert not desk.triggered
