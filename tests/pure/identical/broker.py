"""A modelled target partition with its producer state, and one transactional id at its coordinator.

Rules of the brokers: `ProducerAppendInfo`, `ProducerStateManager`, `UnifiedLog` and `TransactionCoordinator` of Kafka
3.9.1 and 4.3.0. ADR 57 names the method of each fact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

KEPT = 5
"""Batches per producer id that the broker compares a repeated one with."""


class Refused(Exception):
    """An answer with an error code; nothing was appended."""


class OutOfOrder(Refused):
    """OUT_OF_ORDER_SEQUENCE_NUMBER."""


class OldEpoch(Refused):
    """INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, TRANSACTION_COORDINATOR_FENCED."""


class WrongState(Refused):
    """INVALID_TXN_STATE: a plain batch during a transaction of the same producer id."""


class NotLeader(Refused):
    """NOT_LEADER_OR_FOLLOWER."""


class Busy(Refused):
    """CONCURRENT_TRANSACTIONS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One offset. `value`: of a data record; None: an empty record of a transaction, or a marker."""

    producer: int
    epoch: int
    timestamp: int
    value: str | None = None
    sequence: int = -1
    base: int = -1
    last: bool = True
    """Whether it is the last one of its batch."""
    transactional: bool = False
    marker: bool = False
    commit: bool = False
    coordinator: int = -1


@dataclass(slots=True)
class State:
    """What a leader keeps of a producer id; `batches` are first and last sequence, and base offset."""

    epoch: int
    timestamp: int
    coordinator: int = -1
    open: bool = False
    batches: list[tuple[int, int, int]] = field(default_factory=list)

    def to(self, epoch: int) -> None:
        """Go to another epoch, whose sequences begin at 0."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch


class Partition:
    """A target partition: `entries` is the leader's log, committed up to `hw`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.log_start = 0
        self.hw = 0
        self.states: dict[int, State] = {}

    @property
    def end(self) -> int:
        """The end of the leader's log."""
        return len(self.entries)

    def produce(
        self, producer: int, epoch: int, sequence: int, records: list[tuple[str | None, int]], *, transactional: bool
    ) -> int:
        """Append a batch of (value, timestamp); its base offset, which may be that of the same batch before."""
        state = self.states.get(producer)
        last = sequence + len(records) - 1
        if state is not None and state.epoch == epoch:
            for first, until, base in state.batches:
                if (first, until) == (sequence, last):
                    return base
        if state is not None:
            if epoch < state.epoch:
                raise OldEpoch(f"epoch {epoch} < {state.epoch}")
            following = state.batches[-1][1] + 1 if state.batches and state.epoch == epoch else 0
            if sequence != following:
                raise OutOfOrder(f"sequence {sequence}, not {following}")
            if state.open and not transactional:
                raise WrongState
        base = self.end
        for at, (value, timestamp) in enumerate(records):
            self.entries.append(
                Entry(
                    producer=producer,
                    epoch=epoch,
                    timestamp=timestamp,
                    value=value,
                    sequence=sequence + at,
                    base=base,
                    last=at == len(records) - 1,
                    transactional=transactional,
                )
            )
        self.follow(base)
        return base

    def mark(self, producer: int, epoch: int, *, coordinator: int, now: int, commit: bool, version: int = 0) -> int:
        """Append a marker; `version` of transactions: 2 wants a higher epoch, but takes a marker once more (4.3.0)."""
        state = self.states.get(producer)
        if state is not None:
            again = version >= 2 and epoch == state.epoch and not state.open
            if not again and (epoch <= state.epoch if version >= 2 else epoch < state.epoch):
                raise OldEpoch(f"marker's epoch {epoch}, {state.epoch}")
            if coordinator < state.coordinator:
                raise OldEpoch("coordinator")
        self.entries.append(
            Entry(producer=producer, epoch=epoch, timestamp=now, marker=True, commit=commit, coordinator=coordinator)
        )
        self.follow(self.end - 1)
        return self.end - 1

    def follow(self, start: int) -> None:
        """Update the producer state by entries, as leaders, followers and recovery do."""
        for offset in range(start, self.end):
            entry = self.entries[offset]
            state = self.states.setdefault(entry.producer, State(epoch=entry.epoch, timestamp=entry.timestamp))
            state.to(entry.epoch)
            if entry.marker:
                state.coordinator, state.open, state.timestamp = entry.coordinator, False, entry.timestamp
            elif entry.last:
                base = max(entry.base, self.log_start)
                first = entry.sequence - (offset - base)
                state.batches = [*state.batches, (first, entry.sequence, base)][-KEPT:]
                # Not the newest one, but the last batch's: ProducerStateEntry.addBatch.
                state.timestamp = max(one.timestamp for one in self.entries[base : offset + 1])
                state.open = state.open or entry.transactional

    def expire(self, now: int, expiration: int) -> None:
        """Drop producers whose last timestamp is old; no open transaction expires."""
        for producer, state in list(self.states.items()):
            if not state.open and now - state.timestamp >= expiration:
                del self.states[producer]

    def fail_over(self, end: int) -> None:
        """Another replica leads: its log ends at `end`, its producer state is read from what it has."""
        del self.entries[end:]
        self.hw = min(self.hw, end)
        self.states.clear()
        self.follow(self.log_start)

    def delete_records(self, lane: int, most: int) -> None:
        """Move the log start as far as Ferry does; the producer state stays until the partition is loaded again."""
        self.log_start = max(self.log_start, min(self.deletable(lane), most))

    def deletable(self, lane: int) -> int:
        """Up to where Ferry deletes: the last data batch stays, because the log shows the next sequence."""
        data = [offset for offset in range(self.hw) if self.entries[offset].value is not None]
        return self.entries[data[-1]].base if data and self.entries[data[-1]].producer == lane else 0


class Coordinator:
    """One transactional id: its epoch, whether a transaction holds the partition, and its markers on their way."""

    def __init__(self, producer: int, version: int) -> None:
        self.producer = producer
        self.version = version
        self.epoch = -1
        self.member = False
        self.closing: int | None = None
        """The epoch of the marker that is on its way."""
        self.written: int | None = None
        """Where that marker was appended; the transaction is complete when it is committed."""

    def begin(self, epoch: int) -> None:
        """AddPartitionsToTxn, or the first batch of version 2."""
        self._current(epoch)
        self.member = True

    def end(self, epoch: int) -> int:
        """EndTxn(abort): version 1 marks with the same epoch, version 2 raises it first; the next epoch."""
        self._current(epoch)
        if self.version >= 2:
            self.epoch += 1
        self._close()
        return self.epoch

    def initialise(self) -> int:
        """InitProducerId: the new epoch, or Busy while a transaction is being aborted."""
        self.time_out()
        if self.closing is not None:
            raise Busy
        self.epoch += 1
        return self.epoch

    def time_out(self) -> None:
        """transaction.timeout.ms is over: the coordinator fences the epoch and aborts."""
        if self.member and self.closing is None:
            self.epoch += 1
            self._close()

    def _close(self) -> None:
        self.closing, self.written = self.epoch, None

    def _current(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise OldEpoch(f"epoch {epoch} at the coordinator, {self.epoch}")
        if self.closing is not None:
            raise Busy

    def deliver(self, log: Partition, now: int) -> None:
        """The marker arrives."""
        if self.closing is not None and self.written is None:
            try:
                self.written = log.mark(
                    self.producer, self.closing, coordinator=0, now=now, commit=False, version=self.version
                )
            except OldEpoch:  # TransactionMarkerRequestCompletionHandler: the transaction is ignored from then on
                self.written = -1

    def follow(self, log: Partition) -> None:
        """The transaction is complete when its marker is committed; a marker that a failover lost is sent again."""
        if self.closing is None or self.written is None:
            return
        if self.written >= log.end:
            self.written = None
        elif self.written < log.hw:
            self.closing, self.written, self.member = None, None, False
