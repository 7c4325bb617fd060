"""A ledger that could lose receipts is refused, for each setting by name, value and remedy."""

import pytest

from ferry.ledger.settings import created_with, settings_refusal, wanted_in_sync, wanted_replicas
from tests.golden import Golden

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
    "found",
    [
        pytest.param(refusal(partitions=2), id="partitions=2"),
        pytest.param(refusal(replicas=2), id="replicas=2"),
        pytest.param(refusal(cleanup_policy="delete"), id="cleanup_policy=delete"),
        pytest.param(refusal(cleanup_policy="compact,delete"), id="cleanup_policy=compact,delete"),
        pytest.param(refusal(without="cleanup.policy"), id="without=cleanup.policy"),
        pytest.param(refusal(unclean_leader_election_enable="true"), id="unclean_leader_election_enable=true"),
        pytest.param(refusal(without="unclean.leader.election.enable"), id="without=unclean.leader.election.enable"),
        pytest.param(refusal(min_insync_replicas="1"), id="min_insync_replicas=1"),
        pytest.param(refusal(without="min.insync.replicas"), id="without=min.insync.replicas"),
        pytest.param(
            refusal(min_insync_replicas="1", wanted=2), id="min_insync_replicas=1, wanted=2"
        ),  # a broker is down, for now
        pytest.param(refusal(min_insync_replicas="two"), id="min_insync_replicas=two"),
    ],
)
def test_each_setting_that_could_lose_receipts_is_refused(found: str | None, golden: Golden) -> None:
    assert found is not None
    assert found.startswith(WHERE)
    golden(found)


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
