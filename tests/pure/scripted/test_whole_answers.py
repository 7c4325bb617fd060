"""Answers that are refused as a whole: what they would have is not known, and not none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferry.errors import Refused
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import group_offsets
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.model import TopicPartition
from tests.pure.protocol.world import TOPIC
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.lane import Lane, at_work, place
from tests.pure.scripted.whole import WholeBrokers
from tests.pure.scripted.wire import scripted

GROUP = "billing"
PLACE = place()
NO_SESSION = 70
"""What brokers answer to a fetch as a whole (FETCH_SESSION_ID_NOT_FOUND)."""
MANY = 3_000


@pytest.fixture
def brokers() -> WholeBrokers:
    made = WholeBrokers(alias="two")
    made.topic(TOPIC)
    made.groups[GROUP] = {PLACE: (4, "")}
    return made


@pytest.fixture
def cluster(brokers: WholeBrokers) -> Iterator[Cluster]:
    with scripted(brokers) as (_, (made,)):
        made.loop.run(made.refresh, None)
        yield made


@pytest.mark.parametrize("code", [NO_SESSION, codes.REQUEST_TIMED_OUT])
def test_a_fetch_that_is_always_refused_is_named(code: int) -> None:
    """Or the copy would ask for ever."""
    lane = Lane([[3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.source.faults.append(Fault(api="Fetch", code=code, at=At.OUTER, times=MANY))
        result = lane.copy(attempt)
    assert result.refusals.keys() == {place()}
    assert codes.describe(code) in str(result.refusals[place()])
    assert lane.source.count("Fetch") < MANY
    assert not lane.copied(0)


@pytest.mark.parametrize("code", [codes.NOT_COORDINATOR, codes.COORDINATOR_LOAD_IN_PROGRESS, codes.REQUEST_TIMED_OUT])
def test_offsets_that_are_refused_as_a_whole_are_asked_for_again(
    cluster: Cluster, brokers: WholeBrokers, code: int
) -> None:
    brokers.faults = [Fault(api="OffsetFetch", code=code, at=At.OUTER)]
    assert cluster.loop.run(group_offsets, cluster, GROUP, [PLACE]).found == {PLACE: (4, "")}
    brokers.faults = [Fault(api="OffsetFetch", code=code, at=At.LISTED)]

    async def fetch() -> dict[TopicPartition, int]:
        fetched = await fetch_offsets(cluster, {GROUP: [PLACE]}, stable=True)
        return {place: at.offset for place, at in fetched.found[GROUP].items()}

    assert cluster.loop.run(fetch) == {PLACE: 4}
    assert brokers.faults[0].happened


def test_offsets_that_may_not_be_read_are_not_none(cluster: Cluster, brokers: WholeBrokers) -> None:
    code = codes.GROUP_AUTHORIZATION_FAILED
    brokers.faults = [Fault(api="OffsetFetch", code=code, at=At.OUTER)]
    with pytest.raises(Refused):
        cluster.loop.run(group_offsets, cluster, GROUP, [PLACE])
    brokers.faults = [Fault(api="OffsetFetch", code=code, at=At.LISTED)]

    async def fetch() -> tuple[object, ...]:
        fetched = await fetch_offsets(cluster, {GROUP: [PLACE]}, stable=True)
        return fetched.found, fetched.failed.keys()

    assert cluster.loop.run(fetch) == ({}, {GROUP})
