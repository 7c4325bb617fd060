"""What a lane with identical offsets writes under its producer id, as records: each comes before what it says (ADR 57).

One has the lane's id. One more for each target partition says that a batch may have been sent there. A batch that was
sent may arrive late, so it is not enough to know what has receipts. Another one says up to which offset there are empty
records instead of the source's: the broker compares sequence numbers, and no contents.

A record of another kind says until when a slot sends markers to a target partition, which pass the source's holes.
One more says where a lane continues after records of clients, that a switch had moved to its target.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from ferry.codec.form import F, Form
from ferry.ledger.codec import IDENTICAL_VERSION, decode_key, encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import TOPIC_ID
from ferry.ledger.receipts import last_receipts
from ferry.model import LedgerRecord, Receipt, Record, TopicPartition

PRODUCER, MARKING, CONTINUED = "producer", "marking", "continued"


@dataclass(frozen=True, slots=True)
class _Producer:
    producer_id: int
    run: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class _Marking:
    until_ms: int
    run: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """Where a lane continues in a target partition, after records of other producers, and under which producer id.

    The source's log has the same records before that offset. A producer state of an earlier id would compare the next
    batch with the lane's own last one.
    """

    at: int
    producer_id: int
    run: str
    """The run of the switch that wrote it."""
    at_ms: int
    source_topic_id: str
    """The id of the source's topic then; empty: it has none."""
    source_cluster_id: str


_PRODUCER = Form(_Producer, *head(PRODUCER, lambda _: IDENTICAL_VERSION), F("producer_id"), F("run"), F("at_ms"))
_MARKING = Form(_Marking, *head(MARKING, lambda _: IDENTICAL_VERSION), F("until_ms"), F("run"), F("at_ms"))
_CONTINUED = Form(
    Continued,
    *head(CONTINUED, lambda _: IDENTICAL_VERSION),
    F("at"),
    F("producer_id"),
    F("run"),
    F("at_ms"),
    F("source_topic_id", kind=TOPIC_ID),
    F("source_cluster_id"),
)


def producer_record(lane: str, *, producer_id: int, run: str, at_ms: int) -> Record:
    """Make the record of a lane's producer id. The lane uses no other, and the record outlives the lane."""
    return Record(key=encode([PRODUCER, lane]), value=_body(producer_id, run, at_ms))


def sending_records(
    lane: str, place: TopicPartition, *, first: int | None, producer_id: int, run: str, at_ms: int
) -> list[Record]:
    """Make the records that a run is about to send a first batch to a target partition. They outlive the lane.

    `first` is the first offset with a record of the source; those before get empty records. Each has a key of its own,
    also 0, so that no late record of an older run takes the place of another one. None: the ledger has it already.
    """
    key, value = [PRODUCER, lane, place.topic, place.partition], _body(producer_id, run, at_ms)
    keys = [key] if first is None else [key, [*key, first]]
    return [Record(key=encode(one), value=value) for one in keys]


def _body(producer_id: int, run: str, at_ms: int) -> bytes:
    return encode(_PRODUCER.dump(_Producer(producer_id, run, at_ms)))


def marking_record(lane: str, place: TopicPartition, *, until_ms: int, run: str, at_ms: int) -> Record:
    """Make the record that a run sends markers to a target partition until `until_ms`, by wall clocks.

    0: all markers were answered, also those of earlier runs. The record outlives the lane.
    """
    value = encode(_MARKING.dump(_Marking(until_ms, run, at_ms)))
    return Record(key=encode([MARKING, lane, place.topic, place.partition]), value=value)


def marking_of(record: LedgerRecord, lane: str) -> tuple[TopicPartition, int] | None:
    """Return of which target partition a record is, and until when markers are sent; None: it is not such a record."""
    key = decode_key(record.key)
    if key[:2] != [MARKING, lane] or record.value is None:
        return None
    return TopicPartition(topic=key[2], partition=key[3]), read_as(record, _MARKING.load).until_ms


def markings(view: LedgerView, lane: str) -> dict[TopicPartition, int]:
    """Return until when a lane's runs may have sent markers, by target partition; 0: all were answered.

    A partition that is missing never got one.
    """
    found = (marking_of(record, lane) for _, record in view.of_kind(MARKING))
    return dict(one for one in found if one is not None)


def continued_record(lane: str, place: TopicPartition, one: Continued) -> Record:
    """Make the record of where a lane continues in a target partition. It outlives the lane."""
    return Record(key=encode([CONTINUED, lane, place.topic, place.partition]), value=encode(_CONTINUED.dump(one)))


def continued(
    view: LedgerView, lane: str, of: Container[TopicPartition] | None = None
) -> dict[TopicPartition, Continued]:
    """Return where a lane continues after records of other producers, by target partition: the newest of each.

    `of` are the partitions that are asked for; None: all.
    """
    found = {}
    for key, record in view.of_kind(CONTINUED):
        place = TopicPartition(topic=key[2], partition=key[3])
        if key[1] == lane and record.value is not None and (of is None or place in of):
            found[place] = read_as(record, _CONTINUED.load)
    return found


def continued_since(view: LedgerView, lane: str) -> int:
    """Return the ledger offset of the newest record of where a lane continues; -1: there is none."""
    return max((record.offset for key, record in view.of_kind(CONTINUED) if key[1] == lane), default=-1)


def receipts_of_now(
    view: LedgerView, lane: str, few: list[tuple[bytes, ...]] | None = None
) -> dict[TopicPartition, Receipt]:
    """Return a lane's last receipts by target partition (`last_receipts`), with the source that it continues from.

    The source's topic may have been made again, from the target's records, since a receipt was written. Then the
    receipt has the ids of the new one here: the lane continues after records that both sides have.
    """
    receipts = last_receipts(view, lane, few)
    for place, one in continued(view, lane, receipts).items():
        last = receipts[place]
        if one.at < (last.target_next or 0):
            continue
        ids = one.source_topic_id, one.source_cluster_id
        if ids != (last.source_topic_id, last.source_cluster_id):
            receipts[place] = replace(last, source_topic_id=ids[0], source_cluster_id=ids[1], source_epoch=None)
    return receipts


def lane_producer(view: LedgerView, lane: str) -> int | None:
    """Return the producer id under which a lane writes at the source's offsets; None: it has none.

    Where it continued after records of other producers, it has another one (`continued`).
    """
    for key, record in view.of_kind(PRODUCER):
        if key[1:] == [lane] and record.value is not None:
            return read_as(record, _PRODUCER.load).producer_id
    return None


def own_producers(view: LedgerView, lane: str) -> frozenset[int]:
    """Return the producer ids under which a lane writes at the source's offsets, by its newest records."""
    first = lane_producer(view, lane)
    later = frozenset(one.producer_id for one in continued(view, lane).values())
    return later if first is None else later | {first}


def identical_lanes(view: LedgerView) -> list[str]:
    """Return the lanes that write at the source's offsets, sorted."""
    records = [*view.of_kind(PRODUCER), *view.of_kind(CONTINUED)]
    return sorted({key[1] for key, record in records if record.value is not None})


def first_offsets(view: LedgerView, lane: str, *, current: bool = False) -> dict[TopicPartition, frozenset[int]]:
    """Return the target partitions of which the ledger says that batches may have been sent there.

    The numbers are the first offsets with a record of the source, as the lane's runs had them: one, unless runs did not
    agree. Earlier Ferrys wrote no key for the offset 0, so it is missing if one of their other runs named another one.
    `current`: only of copies that were not deleted or dropped since, although late batches may come there.
    """
    dropped, deleted = _gone(view, lane) if current else (-1, {})
    found: dict[TopicPartition, set[int]] = {}
    for key, record in view.of_kind(PRODUCER):
        if key[1] != lane or len(key) == 2 or record.value is None:
            continue
        if record.offset > max(dropped, deleted.get(key[2], -1)):
            found.setdefault(TopicPartition(topic=key[2], partition=key[3]), set()).update(key[4:])
    return {place: frozenset(firsts or {0}) for place, firsts in found.items()}


def _gone(view: LedgerView, lane: str) -> tuple[int, dict[str, int]]:
    """Return at which ledger offset the lane was dropped last (-1: never), and copies were deleted, by target topic."""
    dropped = max((record.offset for key, record in view.of_kind("dropped") if key[1] == lane), default=-1)
    return dropped, {key[2]: record.offset for key, record in view.of_kind("deleted") if key[1] == lane}


def sent_places(view: LedgerView, lane: str) -> frozenset[TopicPartition]:
    """Return the target partitions to which the lane may have sent batches at the source's offsets.

    They may be in the log, or arrive late, whether or not receipts show them.
    """
    received = {place for place, last in last_receipts(view, lane).items() if last.identical}
    return frozenset(first_offsets(view, lane).keys() | continued(view, lane).keys() | received)
