"""What is said of a partition that leaves an attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from ferry.copy.dropped import answered_drop, leader_of, out_of_time
from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.model import RefusalKind, TopicPartition
from ferry.protocol.drops import Blocked
from ferry.protocol.slot import MAX_FAILURES
from tests.golden import Golden
from tests.pure.decide.values import piece
from tests.pure.protocol.world import TOPIC
from tests.pure.scripted.faults import Asked, At, Fault
from tests.pure.scripted.lane import Lane, at_work, place


@pytest.mark.parametrize(
    "told",
    [["Timestamp 9 is out of range", "Invalid"], [None, "Invalid"], [None]],
    ids=["for a record", "for the batch", "without words"],
)
def test_a_refused_timestamp_names_the_limits_that_are_to_be_raised(told: list[str | None], golden: Golden) -> None:
    found = out_of_time(piece(), 17, "b", told)
    assert (found.offset, found.refusal.kind, found.passing) == (17, RefusalKind.INVALID_CONFIG, False)
    golden(found.refusal.message)


class Leaderless:
    """A cluster that has no leader for any partition."""

    def leader(self, of: TopicPartition) -> int:
        raise Retryable(f"{of} has no leader at the moment")


def test_a_partition_without_a_leader_keeps_back_itself_alone() -> None:
    with pytest.raises(Blocked) as blocked:
        leader_of(cast("Cluster", Leaderless()), piece(), 17)
    (found,) = blocked.value.drops
    assert (found.piece, found.offset, found.refusal.code) == (piece(), 17, "target.leaderless")


PASSING = {
    codes.NOT_ENOUGH_REPLICAS: RefusalKind.TOO_FEW_REPLICAS,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND: RefusalKind.TOO_FEW_REPLICAS,
    codes.KAFKA_STORAGE_ERROR: RefusalKind.STORAGE,
}


@pytest.mark.parametrize("code", PASSING)
@pytest.mark.parametrize("times", [1, 1000], ids=["passes", "stays"])
def test_a_condition_that_may_pass_is_waited_for_and_is_a_refusal_then(code: int, times: int) -> None:
    lane = Lane([[3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, code=code, times=times))
        result = lane.copy(attempt)
        found = {one: refusal.kind for one, refusal in result.refusals.items()}
        if times == 1:
            assert (found, result.retries, lane.is_whole()) == ({}, 1, True)
        else:
            assert (found, result.retries, lane.copied(0)) == ({place(): PASSING[code]}, MAX_FAILURES + 1, [])


def test_a_partition_that_may_not_be_written_is_refused_at_once_and_alone() -> None:
    lane = Lane([[3], [2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        denied = Fault(api="Produce", topic=TOPIC, code=codes.TOPIC_AUTHORIZATION_FAILED, skip=1)
        lane.target.faults.append(denied)
        result = lane.copy(attempt, request_bytes=1)
        (refused,) = result.refusals
        assert (denied.happened, result.retries) == (1, 0)
        assert result.refusals[refused].kind is RefusalKind.NOT_AUTHORIZED
        assert {number: lane.copied(number) for number in (0, 1)} == {
            refused.partition: [],
            1 - refused.partition: list(range(sum(lane.sizes[1 - refused.partition]))),
        }


def of_partition(number: int) -> Callable[[Asked], bool]:
    """Whether a produce request has a batch for this partition of the topic."""
    return lambda asked: any(part.index == number for one in asked.request.topic_data for part in one.partition_data)


PARTITION_CODES = {
    codes.UNKNOWN_SERVER_ERROR: (RefusalKind.NO_LEADER, "target.fails", MAX_FAILURES + 1),
    codes.LEADER_NOT_AVAILABLE: (RefusalKind.NO_LEADER, "target.fails", MAX_FAILURES + 1),
    codes.NOT_LEADER_OR_FOLLOWER: (RefusalKind.NO_LEADER, "target.fails", MAX_FAILURES + 1),
    codes.REQUEST_TIMED_OUT: (RefusalKind.NO_LEADER, "target.fails", MAX_FAILURES + 1),
    codes.NOT_ENOUGH_REPLICAS: (RefusalKind.TOO_FEW_REPLICAS, "target.answers", MAX_FAILURES + 1),
    codes.UNSUPPORTED_FOR_MESSAGE_FORMAT: (RefusalKind.INVALID_CONFIG, "batch.old-format", 0),
    codes.UNSUPPORTED_COMPRESSION_TYPE: (RefusalKind.INVALID_CONFIG, "batch.compression", 0),
}


@pytest.mark.parametrize("applied", [False, True], ids=["not written", "written"])
@pytest.mark.parametrize("code", PARTITION_CODES)
def test_a_lasting_error_of_one_partition_leaves_that_one_out_and_the_others_are_copied(
    code: int, applied: bool
) -> None:
    lane = Lane([[3], [2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lasting = Fault(
            api="Produce", topic=TOPIC, code=code, times=1000, only=of_partition(1), at=At.INNER, applied=applied
        )
        lane.target.faults.append(lasting)
        result = lane.copy(attempt, request_bytes=1)
        lane.target.deliver_markers()
        kind, word, retries = PARTITION_CODES[code]
        assert [(at, one.kind, one.code) for at, one in result.refusals.items()] == [(place(1), kind, word)]
        assert (result.retries <= retries, lane.copied(0), lane.copied(1)) == (True, [0, 1, 2], [])
        lane.target.faults.clear()
        lane.copy(lane.begin(lane.open("again")))
        lane.target.deliver_markers()
        assert lane.is_whole()


@pytest.mark.parametrize("code", sorted(codes.OF_TRANSACTION))
def test_a_code_of_the_transaction_is_no_partitions_own(code: int) -> None:
    assert answered_drop(piece(), 17, code, "b", "write to", "WRITE") is None
