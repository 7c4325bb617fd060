"""Planning on real brokers: what it costs, and what it refuses as a run would."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.report import RunState
from ferry.model import LedgerRecord, Plan, RefusalKind
from ferry.plan import transforms
from ferry.protocol.names import ledger_topic
from ferry.run.micro_run import local_origin
from tests.harness import Lab, new_alias, read_topic, wait_until
from tests.kafka.run.conftest import small_lab
from tests.said import data_of, of_code
from tests.tiers import ANSWER_S


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """Four partitions with 4,000 records, two slots, several chunks each."""
    return small_lab(source_cluster, target_cluster, topic)


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_opening_a_run_reads_each_record_of_a_ledger_once(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    neighbour = replace(lab, alias=new_alias())
    assert neighbour.micro_run().state is RunState.SUCCESS
    handed: Counter[tuple[str, int]] = Counter()
    read = LedgerTopic.read

    async def counted(
        self: LedgerTopic, start: int | None = None, end: int | None = None
    ) -> tuple[list[LedgerRecord], int]:
        records, at = await read(self, start, end)
        handed.update((self.place.topic, record.offset) for record in records)
        return records, at

    async def unsettled(*_: object) -> None:
        """Does not wait for the marker of the plan, which takes as many looks as it takes."""

    monkeypatch.setattr(LedgerTopic, "read", counted)
    monkeypatch.setattr(KafkaDriver, "settle", unsettled)
    settings = {"replication.policy.class": f"org.apache.kafka.connect.mirror.{policy}"}
    flow = replace(lab, settings={**lab.settings, **settings})
    for run in ("with claims", "without"):
        handed.clear()
        with flow.runs() as runs:
            plan = runs.open_or_keep(run, local_origin())
            assert len(runs.unfinished_slices(plan)) == 4
        asked = {ledger_topic(lab.alias)}
        if policy == "IdentityReplicationPolicy" and run == "with claims":  # whoever claims a name asks the neighbours
            asked.add(ledger_topic(neighbour.alias))
        assert asked <= {name for name, _ in handed}
        for ledger in asked:
            times = {offset: count for (name, offset), count in handed.items() if name == ledger}
            assert set(times.values()) == {1}, f"{ledger} was read more than once"
            there = read_topic(lab.target.bootstrap, ledger)[0]
            assert set(times) == {row[0] for row in there}


def refused(plan: Plan) -> set[tuple[str, int | None, RefusalKind]]:
    return {(one.topic, one.partition, one.kind) for one in plan.refusals}


def test_a_plan_refuses_a_transform_that_a_run_would_refuse(lab: Lab, topic: str) -> None:
    settings = {
        **lab.settings,
        "ferry.transforms": "x",
        "ferry.transform.x.topics": topic,
        "ferry.transform.x.function": "nopkg.flows:f",
    }
    changed = replace(lab, settings=settings)
    with changed.runs() as runs:
        shown = runs.preview()
        assert refused(shown) == {(topic, None, RefusalKind.TRANSFORM)}
        assert not shown.slices
        assert "nopkg.flows:f cannot be imported" in shown.refusals[0].message
        plan = runs.open_run("refused", local_origin())
        assert (refused(plan), plan.slices) == (refused(shown), shown.slices)


def test_a_place_without_pyspark_says_that_it_does_not_know(
    lab: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"ferry.transforms": "x", "ferry.transform.x.topics": topic, "ferry.transform.x.where": "true"}
    monkeypatch.setattr(transforms, "pyspark_version", lambda: "")
    with replace(lab, settings=settings).runs() as runs:
        shown = runs.preview(here=False)
    assert (len(shown.slices), refused(shown)) == (4, set())
    assert of_code("transform.not-known", shown.notes)


def test_a_plan_says_that_a_run_would_refuse_the_ledgers_settings(lab: Lab) -> None:
    assert lab.micro_run().state is RunState.SUCCESS
    resource = ConfigResource(
        ResourceType.TOPIC,
        ledger_topic(lab.alias),
        incremental_configs=[ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)],
    )
    admin = AdminClient({"bootstrap.servers": lab.target.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)
    with lab.runs() as runs:
        wait_until(
            lambda: bool(of_code("run.would-be-refused", runs.preview().notes)),
            "a plan that names the ledger",
        )
        with pytest.raises(Refused) as refused:
            runs.open_run("refused", local_origin())
        code, facts = data_of(refused.value)
        assert (code, facts["setting"], facts["found"]) == ("ledger.may-lose", "cleanup.policy", "delete")
