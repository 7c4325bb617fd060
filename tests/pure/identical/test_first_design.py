"""The first design, fillers as the coordinator's transactions, against the modelled broker: why it was left.

There, data goes under the producer id of the slot's transactional id, without the transactional flag. A transaction
of n - 1 empty records passes n offsets and is aborted. A successor fences, reads the log's end, and continues.
"""

from __future__ import annotations

import pytest

from tests.pure.identical.broker import Coordinator, OldEpoch, OutOfOrder, Partition, WrongState
from tests.pure.identical.world import EXPIRATION, START

P = 7
NOW, OLD = START, START - 3 * EXPIRATION

versions = pytest.mark.parametrize("version", [1, 2])


class Target:
    """A partition and the coordinator of the slot's transactional id."""

    def __init__(self, version: int) -> None:
        self.log = Partition()
        self.slot = Coordinator(P, version)
        self.version = version
        self.epoch = self.slot.initialise()

    def data(self, sequence: int, count: int, *, epoch: int | None = None, timestamp: int = NOW) -> int:
        """A batch without the transactional flag; the base offset of the answer."""
        records: list[tuple[str | None, int]] = [("d", timestamp)] * count
        return self.log.produce(P, self.epoch if epoch is None else epoch, sequence, records, transactional=False)

    def filler(self, offsets: int, sequence: int = 0) -> None:
        """A transaction that is to pass so many offsets, up to its last request."""
        self.slot.begin(self.epoch)
        if offsets > 1:
            self.log.produce(P, self.epoch, sequence, [(None, NOW)] * (offsets - 1), transactional=True)

    def abort(self) -> int:
        """EndTxn(abort) and its marker; the marker's epoch."""
        self.epoch = self.slot.end(self.epoch)
        return self.marked()

    def marked(self) -> int:
        """The coordinator's marker arrives."""
        marker = self.slot.closing
        assert marker is not None
        self.slot.deliver(self.log, NOW)
        self.log.hw = self.log.end
        self.slot.follow(self.log)
        return marker

    def fence(self) -> None:
        """A successor's InitProducerId; no transaction is open."""
        self.epoch = self.slot.initialise()


@versions
@pytest.mark.parametrize("offsets", [1, 3])
def test_a_filler_passes_what_it_should(version: int, offsets: int) -> None:
    target = Target(version)
    target.filler(offsets)
    target.abort()
    assert target.log.end == offsets


@versions
@pytest.mark.parametrize("offsets", [1, 3])
def test_a_marker_that_the_coordinator_sends_once_more_passes_one_more(version: int, offsets: int) -> None:
    """Its answer was lost, or the coordinator moved: transactions of neither version refuse the second one."""
    target = Target(version)
    target.filler(offsets)
    epoch = target.abort()
    target.log.mark(P, epoch, coordinator=0, now=NOW, commit=False, version=version)
    assert target.log.end == offsets + 1


@versions
def test_it_may_come_when_data_is_behind_the_first(version: int) -> None:
    target = Target(version)
    target.filler(3)
    epoch = target.abort()
    sequence = 0 if version == 2 else 2  # version 1 keeps the epoch
    assert target.data(sequence, 2) == 3
    target.log.mark(P, epoch, coordinator=0, now=NOW, commit=False, version=version)
    assert target.data(sequence + 2, 1) == 6


@versions
def test_a_filler_and_a_late_batch_for_the_same_offset(version: int) -> None:
    """H1: the source's cleaner removed what the batch holds."""
    target = Target(version)
    target.data(0, 3)
    late = target.epoch
    target.fence()  # the successor reads that the log ends at 3
    assert target.data(3, 1, epoch=late) == 3  # the predecessor's batch
    target.filler(1)
    target.abort()
    assert target.log.end == 5  # and the hole was one offset


def test_with_version_1_a_marker_fences_nothing() -> None:
    """H8: EndTxn of version 1 leaves the epoch, so a late batch lands after the marker."""
    target = Target(1)
    target.data(0, 3)
    target.filler(1)
    target.abort()
    assert target.data(3, 1) == 4


def test_with_version_2_a_marker_fences_older_epochs() -> None:
    target = Target(2)
    target.data(0, 3)
    late = target.epoch
    target.filler(1)
    target.abort()
    with pytest.raises(OldEpoch):
        target.data(3, 1, epoch=late)


def test_a_fence_reaches_no_partition_without_a_transaction() -> None:
    target = Target(2)
    target.data(0, 3)
    late = target.epoch
    target.fence()
    assert target.data(3, 1, epoch=late) == 3


def test_an_epoch_that_data_begins_is_compared_with_nothing() -> None:
    target = Target(2)
    target.data(0, 3)
    late = target.epoch
    target.fence()
    target.data(3, 1, epoch=late)
    assert target.data(0, 1) == 4  # the successor had read 3


@pytest.mark.parametrize("timestamp", [OLD, NOW])
def test_the_state_ages_by_the_records_timestamps(timestamp: int) -> None:
    """H9: a copy of old records has no producer state after the broker's next check, ten minutes at most."""
    target = Target(2)
    target.data(0, 3, timestamp=timestamp)
    target.data(3, 3, timestamp=timestamp)
    target.log.expire(NOW, EXPIRATION)
    if timestamp == NOW:
        assert target.data(3, 3) == 3  # the same batch once more
    else:
        assert target.data(3, 3) == 6


def test_the_sequence_by_describe_producers_and_the_end_by_the_high_watermark() -> None:
    """H3: a batch is in the leader's log and not replicated: the successor's next batch is accepted after it."""
    target = Target(2)
    target.data(0, 3)
    target.log.hw = target.log.end
    target.data(3, 3)
    described = target.log.states[P].batches[-1][1] + 1
    assert target.log.hw == 3
    assert target.data(described, 3) == 6


def test_another_slots_marker_fences_nothing() -> None:
    """A partition that another slot copies now, or producer ids whose epochs are used up."""
    target = Target(2)
    target.data(0, 3)
    target.log.mark(P + 1, 5, coordinator=0, now=NOW, commit=False, version=2)
    assert target.data(3, 1) == 4


def test_plain_data_amid_the_slots_transaction_is_refused() -> None:
    target = Target(2)
    target.filler(3)
    with pytest.raises(WrongState):
        target.data(2, 1)


def test_a_marker_behind_expired_state_begins_the_sequences_anew() -> None:
    """The leader wants 0 then, and a replica whose state did not expire the next one."""
    target = Target(2)
    target.data(0, 3, timestamp=OLD)
    target.log.expire(NOW, EXPIRATION)
    target.log.mark(P, target.epoch, coordinator=0, now=NOW, commit=False)
    with pytest.raises(OutOfOrder):
        target.data(3, 1)
    target.log.fail_over(target.log.end)
    assert target.data(3, 1) == 4


def test_a_seal_refuses_markers_of_older_epochs() -> None:
    target = Target(2)
    target.filler(3)
    epoch = target.abort()
    target.log.mark(P, epoch + 1, coordinator=0, now=NOW, commit=True)
    with pytest.raises(OldEpoch):
        target.log.mark(P, epoch, coordinator=0, now=NOW, commit=False, version=2)
