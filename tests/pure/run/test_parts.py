"""What features do when a run is planned (`ferry.plan.parts`): what they commit at once takes nothing else along."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ferry.features.acls.acts.sync import AclSyncer
from ferry.ledger.acl_codec import own_acl_record, synced_record
from ferry.model import AclChange, Plan, Record
from ferry.plan.parts import plan_parts
from ferry.protocol.driver import Driver
from ferry.registry import FEATURES
from tests.pure.run.test_overtaken import COPY
from tests.pure.run.test_starts import Port, lane


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
        assert len(plan_parts(it.opened)) == sum(bool(feature.planning) for feature in FEATURES.values())
