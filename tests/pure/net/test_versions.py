"""How old brokers may be: what the table of docs/support-matrix.md says, asked of the requests themselves.

What versions the brokers of a release know is written down in kafka-python.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion
from kafka.future import Future
from kafka.protocol.broker_version_data import BrokerVersionData

from ferry.kafka.admin.acls import described_acls, may_alter_cluster
from ferry.kafka.admin.disks import broker_space, log_sizes
from ferry.kafka.admin.topic_settings import topic_settings
from ferry.kafka.admin.topics import transaction_state
from ferry.kafka.admin.uncopied import client_quotas, scram_users
from ferry.kafka.connect.cluster import GROUP, TRANSACTION, Cluster, PartitionInfo, TooOld, TopicInfo, event_loop
from ferry.kafka.fetch.epochs import epoch_ends
from ferry.kafka.fetch.offsets import EARLIEST, EARLIEST_LOCAL, list_offsets
from ferry.kafka.groups.listing import sees_all_groups
from ferry.kafka.produce.writer import Writer
from ferry.model import TopicPartition
from ferry.model.observed import Counted
from tests.golden import Golden

PLACE = TopicPartition(topic="orders", partition=0)
Release = tuple[int, int]
Action = Callable[[Cluster], Awaitable[Any]]
Ask = Callable[[Release, Action], None]


class Unanswered(Exception):
    """The request can be sent; that is all that was asked."""

    def __init__(self, request: Any) -> None:
        super().__init__(request)
        self.request = request


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Does something with brokers of a release, up to its first request. Raises TooOld, or Unanswered."""

    def asked(release: Release, action: Action) -> None:
        brokers = BrokerVersionData(release)

        async def submit(cluster: Cluster, request: Any, node: int | None = None, **_: object) -> Future:
            try:
                brokers.api_version(request)
            except IncompatibleBrokerVersion as error:
                return Future().failure(error)
            raise Unanswered(request)

        async def refresh(cluster: Cluster, topics: object) -> dict[str, TopicInfo]:
            return cluster.topics

        monkeypatch.setattr(Cluster, "submit", submit)
        monkeypatch.setattr(Cluster, "refresh", refresh)
        monkeypatch.setattr(Cluster, "brokers", (1,))
        loop = event_loop()
        cluster = Cluster(loop, "primary", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=1)
        info = PartitionInfo(partition=PLACE.partition, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        cluster.topics[PLACE.topic] = TopicInfo(
            name=PLACE.topic, topic_id=None, partitions={PLACE.partition: info}, internal=False
        )
        cluster._coordinators = {(GROUP, "g"): 1, (TRANSACTION, "t"): 1}
        try:
            loop.run(lambda: action(cluster))
        finally:
            cluster.close()
            loop.close()

    return asked


def _in_transaction(act: Callable[[Writer], Awaitable[Any]]) -> Action:
    def action(cluster: Cluster) -> Awaitable[Any]:
        return act(Writer(cluster, "t", 60_000))

    return action


SINCE: dict[str, tuple[Release, Release, Action]] = {
    "a target's transaction takes partitions": ((2, 8), (2, 7), _in_transaction(lambda t: t.join([PLACE]))),
    "a target's transaction takes a group": (
        (2, 8),
        (2, 7),
        _in_transaction(lambda t: t.send_positions("g", {PLACE: (1, "")})),
    ),
    "a topic's own settings": ((1, 1), (1, 0), lambda cluster: topic_settings(cluster, [PLACE.topic])),
    "sizes on disk": ((1, 0), (0, 11), log_sizes),
}


@pytest.mark.parametrize("what", SINCE)
def test_brokers_that_are_too_old_are_refused_by_a_sentence(ask: Ask, what: str, golden: Golden) -> None:
    since, before, action = SINCE[what]
    with pytest.raises(Unanswered):
        ask(since, action)
    with pytest.raises(TooOld) as refused:
        ask(before, action)
    golden(refused.value)


@pytest.mark.parametrize(("release", "action"), [((1, 1), described_acls), ((2, 8), may_alter_cluster)])
def test_acls_can_be_asked_of_every_source_and_target(ask: Ask, release: Release, action: Action) -> None:
    with pytest.raises(Unanswered):
        ask(release, action)


@pytest.mark.parametrize(
    ("release", "request_", "version"),
    [((2, 3), "MetadataRequest", 8), ((2, 7), "MetadataRequest", 9), ((2, 8), "DescribeClusterRequest", 0)],
)
def test_whether_a_login_sees_all_groups_is_asked_in_the_words_of_the_release(
    ask: Ask, release: Release, request_: str, version: int
) -> None:
    with pytest.raises(Unanswered) as asked:
        ask(release, sees_all_groups)
    assert asked.value.request.name == request_
    assert asked.value.request.include_cluster_authorized_operations
    assert BrokerVersionData(release).api_version(asked.value.request) == version


@pytest.mark.parametrize("release", [(1, 1), (2, 8), (3, 9), (4, 3)])
def test_the_bounds_of_a_log_can_be_asked_of_all(ask: Ask, release: Release) -> None:
    with pytest.raises(Unanswered):
        ask(release, lambda cluster: list_offsets(cluster, {PLACE: EARLIEST}, isolation=1))


@pytest.mark.parametrize(("release", "which"), [((3, 4), EARLIEST), ((3, 5), EARLIEST_LOCAL)])
def test_brokers_without_tiered_storage_are_asked_where_a_log_begins(ask: Ask, release: Release, which: int) -> None:
    with pytest.raises(Unanswered) as asked:
        ask(release, lambda cluster: list_offsets(cluster, {PLACE: EARLIEST_LOCAL}, isolation=0))
    assert asked.value.request.topics[0].partitions[0].timestamp == which


def test_what_older_brokers_cannot_tell_is_left_out(ask: Ask) -> None:
    found: list[object] = []

    async def look(cluster: Cluster) -> None:
        found.extend([await broker_space(cluster), await client_quotas(cluster), await scram_users(cluster)])
        found.append(await cluster.deleted({"orders": "AAAAAAAAAAAAAAAAAAAAAQ"}))

    ask((2, 5), look)
    unreported = Counted(count=None, why="its brokers are too old to be asked")
    assert found == [{}, unreported, unreported, frozenset()]


def test_a_state_that_an_older_coordinator_does_not_show_is_said_to_be_unknown(
    ask: Ask,
    golden: Golden,
) -> None:
    said: list[str] = []

    async def state(cluster: Cluster) -> None:
        said.append(await transaction_state(cluster, "t"))

    ask((2, 8), state)
    golden(said[0])
    with pytest.raises(Unanswered):
        ask((3, 0), state)


def test_brokers_that_do_not_tell_consumers_of_leader_epochs_are_passed_over(ask: Ask) -> None:
    told: list[dict[TopicPartition, int]] = []

    async def ends(cluster: Cluster) -> None:
        told.append(await epoch_ends(cluster, {PLACE: 3}))

    ask((2, 2), ends)
    assert told == [{PLACE: -1}]
    with pytest.raises(Unanswered):
        ask((2, 3), ends)
