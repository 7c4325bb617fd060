"""A ledger that somebody set up on three brokers is checked before anything is written to it."""

from __future__ import annotations

import pytest

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.model import Fact
from ferry.protocol.names import ledger_topic
from tests.harness import Lab, create_topic, new_alias, read_topic
from tests.said import data_of


@pytest.mark.parametrize(
    ("replicas", "in_sync", "code", "facts"),
    [
        (2, "1", "ledger.replicas", {"replicas": 2, "wanted": 3}),
        (3, "1", "ledger.may-lose", {"setting": "min.insync.replicas", "found": "1", "needed": "2"}),
    ],
)
def test_a_ledger_whose_receipts_lie_on_too_few_brokers_is_refused_and_stays_empty(
    source_cluster: RunningCluster,
    three_brokers: RunningCluster,
    topic: str,
    replicas: int,
    in_sync: str,
    code: str,
    facts: dict[str, Fact],
) -> None:
    create_topic(source_cluster, topic)
    lab = Lab(source=source_cluster, target=three_brokers, alias=new_alias(), topics=(topic,))
    name = ledger_topic(lab.alias)
    create_topic(three_brokers, name, 1, {"cleanup.policy": "compact", "min.insync.replicas": in_sync}, replicas)
    with pytest.raises(Refused) as refused:
        lab.micro_run()
    assert data_of(refused.value) == (code, {"ledger": name, "cluster": f"t{lab.alias}", **facts})
    assert read_topic(three_brokers.bootstrap, name) == {0: []}
