"""What features do when a run is planned (`ferry.plan.parts`): what they commit at once takes nothing else along."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from ferry import registry
from ferry.features.acls.acts.sync import AclSyncer
from ferry.features.identical.acts import judging
from ferry.lane.open_lane import OpenLane
from ferry.ledger.acl_codec import own_acl_record, synced_record
from ferry.ledger.ledger import LedgerView, accounted, claims
from ferry.model import AclChange, Plan, Record, RefusalKind
from ferry.plan import plan_run
from ferry.plan.change_topics import Changed
from ferry.plan.options import RunOptions
from ferry.plan.parts import plan_parts
from ferry.plan.rules.facts import Facts, Seen
from ferry.plan.rules.tombstones import seen_to_end
from ferry.protocol.driver import Driver
from ferry.registry import FEATURES, Feature
from tests.pure.decide.test_searched import FOUND, ORDERS, USERS
from tests.pure.decide.test_tombstones import facts
from tests.pure.decide.values import LANE, place, refusal, run_of
from tests.pure.run.test_overtaken import COPY
from tests.pure.run.test_starts import Lane, Port, lane

GOES_ON = "ferry.guard.tombstones.passed = skip\n"


def test_what_a_run_decides_is_in_the_transaction_of_its_plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that dies after its ACLs are in the ledger has decided nothing else."""
    transactions: list[set[str]] = []
    append = Port.append_in

    async def noted(port: Port, records: Sequence[Record]) -> frozenset[int]:
        transactions.append({json.loads(record.key)[0] for record in records})
        return await append(port, records)

    async def act(acls: AclSyncer, driver: Driver, plan: Plan) -> Plan:
        made = AclChange(kind="create", binding=COPY, source=COPY)
        driver.keep([synced_record(acls.lane, run="run", settings="", at_ms=1)])  # as another part may have done
        await driver.commit([own_acl_record(acls.lane, made, source_cluster_id="", run="run", at_ms=1)])
        return plan

    monkeypatch.setattr(Port, "append_in", noted)
    monkeypatch.setattr(AclSyncer, "act", act)
    with lane("") as it:
        it.opens()
    (own,) = (kinds for kinds in transactions if "acl" in kinds)
    assert own == {"acl"}
    assert transactions[-1] >= {"acls", "start"}, "committed with the plan"


def test_each_part_of_a_plan_is_there() -> None:
    with lane("") as it:
        assert len(plan_parts(it.opened, whole=True)) == sum(bool(feature.planning) for feature in FEATURES.values())


@pytest.mark.parametrize(("kind", "copied"), [("preparing", []), ("planning", ["orders"])])
def test_what_prepares_a_copy_acts_in_a_run_of_some_topics_too(
    kind: str, copied: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records need what the feature makes. What that cannot make is not copied."""
    subjects = Feature(**{kind: f"{__name__}:made_of_orders"})
    monkeypatch.setattr(registry, "FEATURES", {**FEATURES, "subjects": subjects})
    with lane("") as it:
        some = it.opened_by(it.opened, run_of("run"), RunOptions(only=frozenset({"orders"})))
        whole = it.opens()
    assert sorted({one.source.topic for one in some.slices}) == copied
    assert whole.slices == ()


def made_of_orders(_: OpenLane) -> LeavesOut:
    """A part that cannot prepare the topic orders."""
    return LeavesOut(["orders"])


def test_what_a_part_refuses_before_the_claims_is_claimed_by_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_settings(*_: Any) -> dict[int, dict[str, str]]:
        return {}

    monkeypatch.setattr(judging, "broker_settings", no_settings)
    with lane("a->b.ferry.offsets = identical\n") as it:
        plan = it.opens()
        assert {one.code for one in plan.refusals} == {"identical.not-shown"}
        assert (plan.slices, claims(it.view)) == ((), {})
    with lane("") as it:
        it.opens()
        assert set(claims(it.view)) == {"a.orders"}


@dataclass(frozen=True, slots=True)
class LeavesOut:
    """A part that keeps topics out of the run."""

    topics: Sequence[str]

    async def act(self, driver: Driver, plan: Plan) -> Plan:
        return plan.without({topic: refusal(topic, None) for topic in self.topics})

    async def preview(self, view: LedgerView, plan: Plan) -> Plan:
        return plan.without({topic: refusal(topic, None) for topic in self.topics})


def opened(it: Lane, monkeypatch: pytest.MonkeyPatch, found: Facts, *left_out: str) -> Plan:
    """A run that finds these facts, and of which a feature leaves topics out."""

    async def gathered(*_: Any) -> Facts:
        return found

    monkeypatch.setattr(plan_run, "gather_all", gathered)
    monkeypatch.setattr(plan_run, "plan_parts", lambda _, whole: [LeavesOut(left_out)])
    return it.opens()


def seen(it: Lane) -> dict[Any, Seen]:
    """What the ledger holds of the compacted topic that was read to its end."""
    return seen_to_end(it.view, LANE, {"orders": "id-orders"})


@pytest.mark.parametrize("left_out", [(), ("orders",), ("users",)])
def test_a_topic_that_a_part_leaves_out_keeps_the_time_at_which_it_was_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, left_out: tuple[str, ...]
) -> None:
    """If the time began again while the gap is dropped, no later run would find that tombstones may be missed."""
    with lane(f"{GOES_ON}sync.topic.configs.enabled = false\n") as it:
        plan = opened(it, monkeypatch, facts(9_000), *left_out)
        gaps = [gap.source for gap in plan.gaps if gap.why is RefusalKind.TOMBSTONES_PASSED]
        assert set(seen(it)) == set(gaps) == ({place("orders")} if "orders" not in left_out else set())


def test_a_topic_whose_settings_are_refused_is_copied_and_the_time_begins_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refused(*_: Any) -> Changed:
        return Changed(unset={"orders": refusal("orders", None)})

    monkeypatch.setattr(plan_run, "change_topics", refused)
    with lane(GOES_ON) as it:
        plan = opened(it, monkeypatch, facts(9_000))
        assert "orders" in {one.topic for one in plan.refusals}
        assert seen(it)[place("orders")].whole_ms == 9_000


@pytest.mark.parametrize(("left_out", "found"), [((), {ORDERS: 50, USERS: 60}), (("orders",), {USERS: 60})])
def test_foreign_records_in_the_copy_of_a_topic_that_a_part_leaves_out_are_searched_for_again(
    monkeypatch: pytest.MonkeyPatch, left_out: tuple[str, ...], found: dict[Any, int]
) -> None:
    with lane("ferry.guard.foreign.writer = skip\nsync.topic.configs.enabled = false\n") as it:
        opened(it, monkeypatch, FOUND, *left_out)
        assert accounted(it.view, LANE, {"a.orders": "id-a.orders", "a.users": "id-a.users"}) == found
