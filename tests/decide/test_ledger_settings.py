"""A ledger that could lose receipts is refused, for each setting by name, value and remedy."""

import pytest

from ferry.decide.ledger.settings import created_with, settings_refusal, wanted_in_sync, wanted_replicas

WHERE = "ledger ferry-ledger.a.internal on cluster b"


def refusal(
    *, partitions: int = 1, replicas: int = 3, wanted: int = 3, without: str = "", **changed: str
) -> str | None:
    configs = {**created_with(3), **{name.replace("_", "."): value for name, value in changed.items()}}
    configs.pop(without, None)
    return settings_refusal(WHERE, partitions=partitions, replicas=replicas, wanted=wanted, configs=configs)


@pytest.mark.parametrize(("configured", "brokers", "replicas", "in_sync"), [
    (3, 1, 1, 1), (3, 2, 2, 1), (3, 3, 3, 2), (3, 5, 3, 2), (5, 5, 5, 2), (1, 3, 1, 1),
])  # fmt: skip
def test_the_replicas_fit_the_cluster_and_what_ferry_creates_it_accepts(
    configured: int, brokers: int, replicas: int, in_sync: int
) -> None:
    assert (wanted_replicas(configured, brokers), wanted_in_sync(replicas)) == (replicas, in_sync)
    created = created_with(replicas)
    assert created["min.insync.replicas"] == str(in_sync)
    assert settings_refusal(WHERE, partitions=1, replicas=replicas, wanted=replicas, configs=created) is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (refusal(partitions=2), "has 2 partitions where one is needed: move it away"),
        (refusal(replicas=2), "has replication factor 2 where 3 is needed: add replicas"),
        (refusal(cleanup_policy="delete"), "has cleanup.policy=delete, which can lose receipts: set it to compact"),
        (refusal(cleanup_policy="compact,delete"), "has cleanup.policy=compact,delete"),
        (refusal(without="cleanup.policy"), "has cleanup.policy=None"),
        (refusal(unclean_leader_election_enable="true"), "enable=true, which can lose receipts: set it to false"),
        (refusal(without="unclean.leader.election.enable"), "has unclean.leader.election.enable=None"),
        (refusal(min_insync_replicas="1"), "has min.insync.replicas=1, which can lose receipts: set it to 2"),
        (refusal(without="min.insync.replicas"), "has min.insync.replicas=None"),
        (refusal(min_insync_replicas="1", wanted=2), "has min.insync.replicas=1"),  # a broker is down, for now
        (refusal(min_insync_replicas="two"), "has min.insync.replicas=two"),
    ],
)
def test_each_setting_that_could_lose_receipts_is_refused(found: str | None, words: str) -> None:
    assert found is not None
    assert found.startswith(WHERE)
    assert words in found


@pytest.mark.parametrize(
    "found",
    [
        refusal(replicas=4),
        refusal(min_insync_replicas="3"),
        refusal(replicas=1, wanted=1, min_insync_replicas="1"),
        refusal(replicas=3, wanted=2),  # a broker is down
    ],
)
def test_what_keeps_receipts_is_accepted(found: str | None) -> None:
    assert found is None


def test_nothing_shown_is_nothing_met() -> None:
    assert settings_refusal(WHERE, partitions=1, replicas=1, wanted=1, configs={}) is not None
