"""A modelled target cluster: logs with producer state, a transaction coordinator, markers that travel one by one.

Rules of the brokers (KIP-98, KIP-360, KIP-890), transactions of version 1 and 2:

* A partition refuses a producer epoch lower than the highest it has seen, a marker's epoch included.
* A batch that would begin a transaction on a partition is verified by the coordinator: version 1 wants the partition
  added before, version 2 adds it. A lower epoch than the coordinator's is refused, a closing transaction says "busy".
* A partition keeps the last five batches of a producer's epoch: one of them is answered once more. Any other batch must
  follow the last one; a new epoch begins with sequence 0. A producer that the partition does not know may begin
  anywhere in version 1, at 0 in version 2.
* InitProducerId raises the epoch. An open transaction is aborted first, with markers of the raised epoch, even when
  the request names an older epoch; a closing one is completed first. Until then it answers "busy".
* EndTxn of version 1 leaves the epoch as it is, its markers carry it; version 2 raises it. The same EndTxn once more is
  answered again; of version 2 with the epoch before. In version 2 a transaction without members can be aborted.
* A writer whose epochs are used up gets another producer id, with epoch 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from ferry.model import Fate

LEDGER = "ledger"
POSITIONS = "positions"
LAST_EPOCH = 32_766
"""Of a producer id; markers may have one more."""
KEPT_BATCHES = 5
"""Kafka's ProducerStateEntry.NUM_BATCHES_TO_RETAIN."""


class BrokerError(Exception):
    """An answer with an error code."""


class Fenced(BrokerError):
    """INVALID_PRODUCER_EPOCH or PRODUCER_FENCED."""


class Busy(BrokerError):
    """CONCURRENT_TRANSACTIONS: the transaction before is still being completed."""


class Rejected(BrokerError):
    """Any other refusal: INVALID_TXN_STATE, unless a class below says another one."""


class OutOfOrder(Rejected):
    """OUT_OF_ORDER_SEQUENCE_NUMBER."""


class NotAdded(Rejected):
    """TRANSACTION_ABORTABLE: the partition is not in the transaction."""


class Unknown(Rejected):
    """INVALID_PRODUCER_ID_MAPPING: the transactional id has no producer, or another one."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """One record or marker; `committed` is what a marker says, None for a record."""

    payload: object = None
    producer: int = -1
    committed: bool | None = None
    compacted: bool = False


@dataclass(slots=True, kw_only=True)
class ProducerState:
    """What a partition knows of a producer. `batches`: first sequence, next one and offset of the last ones."""

    epoch: int
    open: bool = False
    batches: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Log:
    """One partition."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    producers: dict[int, ProducerState] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.entries)

    def append(self, payloads: Sequence[object]) -> int:
        """Write outside transactions, without a producer id; the offset of the last record."""
        self.entries += [Entry(payload=payload) for payload in payloads]
        return self.end - 1

    def write(
        self,
        producer: int,
        epoch: int,
        sequence: int | None,
        payloads: Sequence[object],
        verify: Callable[[], None] | None,
        *,
        anywhere: bool = True,
    ) -> int:
        """Write; the offset of the first record. `sequence` None: not checked (group offsets).

        `verify` asks the coordinator; None: outside transactions. `anywhere`: a producer that is not known may begin
        with any sequence.
        """
        state = self.producers.get(producer)
        if verify is not None and (state is None or not state.open or state.epoch != epoch):
            verify()
        known = state.batches if state is not None and state.epoch == epoch else []
        first = -1 if sequence is None else sequence
        following = first + len(payloads)
        for *same, base in known:
            if sequence is not None and same == [first, following]:
                return base
        if state is not None and epoch < state.epoch:
            raise Fenced(self.name)
        begins = state is None and anywhere
        if sequence is not None and not begins and sequence != (known[-1][1] if known else 0):
            raise OutOfOrder(f"sequence {sequence} on {self.name}")
        if verify is None and state is not None and state.open:
            raise Rejected(f"{self.name} has a transaction of the producer")
        if state is None or state.epoch != epoch:
            state = self.producers[producer] = ProducerState(epoch=epoch)
        state.open = verify is not None
        base = self.end
        if sequence is not None:
            state.batches = [*state.batches, (first, following, base)][-KEPT_BATCHES:]
        self.entries += [Entry(payload=payload, producer=producer if state.open else -1) for payload in payloads]
        return base

    def mark(self, producer: int, epoch: int, committed: bool) -> None:
        """Append a marker."""
        state = self.producers.get(producer)
        if state is None or epoch > state.epoch:
            self.producers[producer] = ProducerState(epoch=epoch)
        else:
            state.open = False
        self.entries.append(Entry(producer=producer, committed=committed))

    def fates(self, start: int, end: int) -> dict[int, Fate]:
        """The fate of every record in `[start, end)` as far as the markers in it tell."""
        found: dict[int, Fate] = {}
        undecided: dict[int, list[int]] = {}
        for offset in range(start, end):
            entry = self.entries[offset]
            if entry.committed is not None:
                fate = Fate.COMMITTED if entry.committed else Fate.ABORTED
                found.update(dict.fromkeys(undecided.pop(entry.producer, ()), fate))
            elif entry.producer >= 0:
                found[offset] = Fate.OPEN
                undecided.setdefault(entry.producer, []).append(offset)
            else:
                found[offset] = Fate.COMMITTED
        return found

    def stable_end(self) -> int:
        """The last stable offset: no record before it is undecided."""
        fates = self.fates(0, self.end)
        return min((offset for offset, fate in fates.items() if fate is Fate.OPEN), default=self.end)

    def committed(self) -> Iterator[tuple[int, object]]:
        """What a read_committed consumer gets: offset and payload."""
        fates = self.fates(0, self.end)
        for offset in range(self.stable_end()):
            if fates.get(offset) is Fate.COMMITTED:
                yield offset, self.entries[offset].payload

    def writers_of_open_records(self) -> frozenset[int]:
        """Producer ids with undecided records."""
        fates = self.fates(0, self.end)
        return frozenset(self.entries[offset].producer for offset, fate in fates.items() if fate is Fate.OPEN)


@dataclass(slots=True, kw_only=True)
class Txn:
    """One transactional id at the coordinator.

    `closing` is the verdict while markers are on their way, `closed` that of the last transaction if the producer was
    not initialised since. `before`: the epoch that was raised to this one, by a request that named it or by an end.
    """

    producer: int
    epoch: int = -1
    before: int = -1
    closed: bool | None = None
    members: set[str] = field(default_factory=set)
    closing: bool | None = None
    marker_producer: int = -1
    marker_epoch: int = -1
    waiting: set[str] = field(default_factory=set)


class Target:
    """The target cluster."""

    def __init__(self, places: Iterable[str], version: int) -> None:
        self.version = version
        self.logs = {name: Log(name) for name in (*places, LEDGER, POSITIONS)}
        self.txns: dict[str, Txn] = {}
        self._producers = count(1_000)

    def init_producer(self, name: str) -> tuple[int, int]:
        """InitProducerId: producer id and epoch, or Busy."""
        if name not in self.txns:
            self.txns[name] = Txn(producer=next(self._producers))
        txn = self.txns[name]
        if txn.closing is None and txn.members:
            self._abort(txn)
        if txn.closing is not None:
            raise Busy(name)
        txn.epoch, txn.before, txn.closed = txn.epoch + 1, -1, None
        self._renew(txn)
        return txn.producer, txn.epoch

    def holds(self, name: str, epoch: int) -> bool:
        """DescribeTransactions: whether the transactional id has an open transaction of this epoch."""
        txn = self.txns.get(name)
        return txn is not None and txn.epoch == epoch and txn.closing is None and bool(txn.members)

    def leave(self, name: str, epoch: int) -> None:
        """InitProducerId with the own epoch: Busy, Fenced, or it is raised.

        The coordinator looks at the epoch only when no transaction is open. An open one it aborts, whosever it is.
        """
        txn = self._known(name)
        if txn.closing is None and txn.members:
            self._abort(txn)
        if txn.closing is not None:
            raise Busy(name)
        if txn.epoch == epoch:
            txn.epoch, txn.before = txn.epoch + 1, epoch
            self._renew(txn)
        elif txn.before != epoch:
            raise Fenced(name)
        txn.closed = None

    def expire(self, name: str) -> None:
        """The coordinator aborts a transaction whose writer fell silent."""
        txn = self.txns[name]
        if txn.closing is None and txn.members:
            self._abort(txn)

    def _known(self, name: str) -> Txn:
        if name not in self.txns:
            raise Unknown(name)
        return self.txns[name]

    def _abort(self, txn: Txn) -> None:
        txn.epoch, txn.before = txn.epoch + 1, txn.epoch
        self._close(txn, committed=False, marker_epoch=txn.epoch)
        self._renew(txn)

    @staticmethod
    def _close(txn: Txn, *, committed: bool, marker_epoch: int) -> None:
        txn.closing, txn.waiting = committed, set(txn.members)
        txn.marker_producer, txn.marker_epoch = txn.producer, marker_epoch

    def _renew(self, txn: Txn) -> None:
        """Give a writer whose epochs are used up another producer id; markers under way keep the old one.

        Kafka's TransactionMetadata.isProducerEpochExhausted.
        """
        if txn.epoch > LAST_EPOCH:
            txn.producer, txn.epoch = next(self._producers), 0

    def add(self, name: str, epoch: int, member: str) -> None:
        """AddPartitionsToTxn, AddOffsetsToTxn; what version 2 does at the first batch."""
        txn = self._known(name)
        self._current(txn, name, epoch)
        txn.members.add(member)

    def verify(self, name: str, epoch: int, member: str) -> None:
        """What a partition's leader asks the coordinator before a batch may begin a transaction there."""
        if self.version >= 2:
            self.add(name, epoch, member)
            return
        txn = self._known(name)
        self._current(txn, name, epoch)
        if member not in txn.members:
            raise NotAdded(f"{member} is not in the transaction of {name}")

    @staticmethod
    def _current(txn: Txn, name: str, epoch: int) -> None:
        if epoch != txn.epoch:
            raise Fenced(name)
        if txn.closing is not None:
            raise Busy(name)

    def end_txn(self, name: str, epoch: int, committed: bool) -> int:
        """EndTxn: the epoch to go on with; the markers are only on their way."""
        txn = self._known(name)
        raises = self.version >= 2
        again = epoch == (txn.before if raises else txn.epoch) and not txn.members and txn.closed is not None
        if again and (txn.closed == committed or raises):
            if txn.closed != committed:
                raise Rejected(f"the transaction of {name} was ended otherwise")
            return txn.epoch
        self._current(txn, name, epoch)
        if not txn.members and (committed or not raises):
            raise Rejected(f"{name} has no transaction")
        if raises:
            txn.epoch, txn.before = txn.epoch + 1, epoch
        if txn.members:
            self._close(txn, committed=committed, marker_epoch=txn.epoch)
        else:
            txn.closed = committed
        self._renew(txn)
        return txn.epoch

    def write(self, name: str, epoch: int, member: str, sequence: int | None, payloads: Sequence[object]) -> int:
        """Produce and TxnOffsetCommit; the offset of the first record."""
        producer, anywhere = self._known(name).producer, self.version < 2
        verify = partial(self.verify, name, epoch, member)
        return self.logs[member].write(producer, epoch, sequence, payloads, verify, anywhere=anywhere)

    def markers(self) -> list[tuple[str, str]]:
        """Markers on their way: transactional id and log."""
        return [(name, member) for name, txn in sorted(self.txns.items()) for member in sorted(txn.waiting)]

    def deliver_marker(self, name: str, member: str) -> None:
        """One marker arrives; the last one completes the transaction."""
        txn = self.txns[name]
        assert txn.closing is not None
        self.logs[member].mark(txn.marker_producer, txn.marker_epoch, txn.closing)
        txn.waiting.discard(member)
        if not txn.waiting:
            txn.closing, txn.closed = None, txn.closing
            txn.members.clear()

    def open_transactions(self) -> list[str]:
        """Transactional ids with an open transaction."""
        return [name for name, txn in sorted(self.txns.items()) if txn.members and txn.closing is None]
