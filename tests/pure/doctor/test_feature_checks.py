"""A feature adds checks to `ferry doctor` and to readiness by its row in the registry alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ferry.config.flow.flow import FlowConfig
from ferry.lane.connections import EitherSide
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.model import Plan
from ferry.model.check import Check
from ferry.model.finding import Finding, Grade
from ferry.registry import FEATURES, Feature
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as one:
        begun(one, topics={"users": 1})
        yield one


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of one more feature, whose `doctor` and `readiness` are in the registry."""
    module = ModuleType("ferry.features.schemas.acts.checks")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    schemas = Feature(doctor=f"{module.__name__}:doctor", readiness=f"{module.__name__}:readiness")
    monkeypatch.setattr("ferry.registry.FEATURES", {**FEATURES, "schemas": schemas})
    return module


@pytest.mark.slow
@pytest.mark.parametrize(("grade", "code"), [(Grade.PASS, 0), (Grade.WARN, 0), (Grade.FAIL, 1)])
def test_a_finding_of_a_feature_is_one_of_its_flow_and_a_failure_leaves_runs_unchecked(
    made: World, acts: ModuleType, grade: Grade, code: int
) -> None:
    def check(flow: FlowConfig, connections: EitherSide) -> Iterator[Finding]:
        there = sorted({connections.source.alias, connections.target.alias} - connections.down.keys())
        yield Finding(about=str(flow.flow), check="schemas", grade=grade, message=", ".join(there))

    async def ready(lane: OpenLane, view: LedgerView, plan: Plan) -> list[Check]:
        return []

    acts.doctor, acts.readiness = check, ready  # type: ignore[attr-defined]
    asked = made.ask("doctor")
    found = {one["check"]: one for one in asked.body["findings"] if one["about"] == "a->b"}
    assert asked.code == code
    assert found["schemas"] == {"about": "a->b", "check": "schemas", "grade": grade, "message": "a, b"}
    assert found.keys() >= {"source ACLs", "target ACLs"}
    assert ("runs" in found) is (grade is Grade.FAIL)


@pytest.mark.slow
@pytest.mark.parametrize("held", [True, False])
def test_a_row_of_a_feature_is_one_of_readiness_and_counts(made: World, acts: ModuleType, held: bool) -> None:
    async def check(lane: OpenLane, view: LedgerView, plan: Plan) -> list[Check]:
        return [Check(name="schemas", ok=held, message=f"{lane.flow.flow}, {len(plan.copies)} topic")]

    acts.readiness = check  # type: ignore[attr-defined]
    assert made.ask("run", "a->b").code == 0
    body = made.ask("readiness", "a->b").body
    checks = body["checks"]
    (row,) = [one for one in checks if one["name"] == "schemas"]
    assert row == {"name": "schemas", "ok": held, "message": "a->b, 0 topic", "known": True, "warns": False}
    assert [one["name"] for one in checks if one["name"] in ("acls", "schemas")] == ["acls", "schemas"]
    assert body["ready"] is all(one["ok"] for one in checks)
