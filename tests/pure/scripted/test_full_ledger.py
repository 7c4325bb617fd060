"""The ledger's disk is full, and those of the copies are not: the ledger is named, and nothing counts as copied."""

from __future__ import annotations

import re

import pytest

from ferry.commands.copying import report_of_ends
from ferry.copy.slot_end import end_of, refusals_of
from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.model import RefusalKind
from ferry.protocol.names import ledger_topic
from ferry.protocol.slot import SlotProgress
from tests.golden import Golden
from tests.pure.protocol.world import FLOW
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import Lane, at_work, place

LEDGER = ledger_topic(FLOW.source)
ALWAYS = 1_000_000
both_versions = pytest.mark.parametrize("version", [1, 2])


def full(*, after: int = 0) -> Fault:
    """From some writes on, the ledger's directory takes nothing more."""
    return Fault(api="Produce", topic=LEDGER, code=codes.KAFKA_STORAGE_ERROR, times=ALWAYS, skip=after)


def named(error: FerryError | None) -> None:
    """The sentence names the ledger, its cluster and where to look."""
    assert error is not None
    assert f"ledger {LEDGER} on cluster {FLOW.target}: " in str(error)
    assert f"{codes.advised(codes.KAFKA_STORAGE_ERROR)}" in str(error)


@pytest.mark.slow
@both_versions
@pytest.mark.parametrize("chunks", [0, 1])
def test_what_has_its_receipts_is_said_as_copied_and_the_rest_is_aborted(version: int, chunks: int) -> None:
    lane = Lane([[3, 2], [4]], version=version)
    with at_work(lane):
        plan = lane.open("r")
        attempt = lane.begin(plan)
        lane.target.faults.append(full(after=chunks))
        result, failure = SlotProgress(), None
        try:
            lane.copy(attempt, result=result, chunk_bytes=1)
        except FerryError as error:
            failure = error
        named(failure)
        lane.target.deliver_markers()
        claimed = {one.source: one.end for one in result.receipts}
        assert len(result.receipts) == chunks
        assert lane.ends() == claimed
        for number in range(2):
            assert lane.copied(number) == list(range(claimed.get(place(number), 0)))

        ends = [end_of(0, result, failure)]
        report = report_of_ends(plan, attempt.started_ms, ends)
        assert report.records == sum(one.records for one in result.receipts)
        assert {one.kind for one in refusals_of(plan, ends)} == {RefusalKind.SLOT_FAILED}

        lane.target.faults.clear()
        lane.copy(lane.begin(lane.open("again")), chunk_bytes=1)
        assert lane.is_whole()


@pytest.mark.slow
@both_versions
def test_a_record_that_is_too_large_for_the_ledger_is_refused_at_once_with_the_remedy(
    version: int, golden: Golden
) -> None:
    """However often it is sent, the broker takes it only when its limit is raised: nothing waits for that."""
    lane = Lane([[3, 2]], version=version)
    with at_work(lane):
        plan = lane.open("r")
        attempt = lane.begin(plan)
        fault = Fault(api="Produce", topic=LEDGER, code=codes.MESSAGE_TOO_LARGE, times=ALWAYS)
        lane.target.faults.append(fault)
        with pytest.raises(Refused) as outside:
            lane.begin(plan)
        with pytest.raises(Refused) as inside:
            lane.copy(attempt)
        assert fault.happened == 2
        for caught in (outside, inside):
            assert LEDGER in str(caught.value)
            assert "max.message.bytes" in str(caught.value)
        golden(re.sub(r"\d+ bytes", "N bytes", str(outside.value)), "outside of a transaction")
        lane.target.faults.clear()
        lane.target.deliver_markers()
        lane.copy(lane.begin(lane.open("again")))
        assert lane.is_whole()


@pytest.mark.slow
def test_no_run_is_opened_in_a_ledger_that_takes_no_plan() -> None:
    lane = Lane([[3]])
    with at_work(lane):
        lane.target.faults.append(full())
        with pytest.raises((Retryable, Unreachable)) as caught:
            lane.open("r")
        named(caught.value)
        lane.target.deliver_markers()
        assert lane.view().runs == ()
        lane.target.faults.clear()
        lane.copy(lane.begin(lane.open("again")))
        assert lane.is_whole()


@pytest.mark.slow
def test_no_attempt_is_begun_that_the_ledger_does_not_take() -> None:
    lane = Lane([[3]])
    with at_work(lane):
        plan = lane.open("r")
        lane.target.faults.append(full())
        with pytest.raises((Retryable, Unreachable)) as caught:
            lane.begin(plan)
        named(caught.value)
        assert lane.copied(0) == []
        lane.target.faults.clear()
        lane.copy(lane.begin(plan))
        assert lane.is_whole()
