"""InitProducerId of a slot: only an answer without an error is its fence."""

from __future__ import annotations

import pytest

from ferry.kafka.connect import codes
from ferry.protocol.names import transactional_id
from tests.pure.protocol.world import FLOW, LANE
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import Lane, at_work

SLOT = transactional_id(FLOW, LANE, 0)


@pytest.mark.parametrize(
    "code",
    [
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes.NOT_COORDINATOR,
        codes.CONCURRENT_TRANSACTIONS,
        codes.INVALID_PRODUCER_EPOCH,
        codes.PRODUCER_FENCED,
        codes.REQUEST_TIMED_OUT,
    ],
)
def test_an_error_is_no_fence_and_the_slot_asks_again(code: int) -> None:
    """Also one that would end a writer: the request names no epoch that could be fenced."""
    lane = Lane([[3, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="InitProducerId", key=SLOT, code=code, times=2))
        before = lane.target.count("InitProducerId")
        result = lane.copy(attempt)
        assert (result.retries, result.refusals, lane.is_whole()) == (0, {}, True)
        assert lane.target.count("InitProducerId") == before + 3
