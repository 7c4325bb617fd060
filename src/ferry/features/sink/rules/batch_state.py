"""The state of one batch in an application's ledger, and what prevents writing it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ferry.features.sink.rules import codec
from ferry.features.sink.rules.codec import (
    ATTEMPT,
    DELIVERED,
    FENCED,
    FORGOTTEN,
    RECEIPT,
    SETTLED,
    parse_offsets,
    parse_receipt,
    parse_settled,
    parse_value,
)
from ferry.ledger.codec import key_parts
from ferry.ledger.reading import reading, slots
from ferry.model import Fate, LedgerRecord, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, KnownBatches, Settled, Written, WrittenPart

KEPT_BATCHES = 1000
"""How many delivered batches an application's ledger keeps."""

_SHOWN = 3


@dataclass(slots=True, kw_only=True)
class BatchState:
    """The state that committed records show, up to an offset."""

    attempts: dict[str, int] = field(default_factory=dict)
    """The generations of attempts without a tombstone, by id."""
    slots: int = 0
    """The most slots that any attempt may have used."""
    settled: Settled | None = None
    receipts: dict[TopicPartition, DeliveryReceipt] = field(default_factory=dict)
    delivered: dict[TopicPartition, tuple[int, int]] | None = None
    """The first and the last target offsets of a batch that is written whole."""
    batches: set[int] = field(default_factory=set)
    """All batches that are known to be written whole."""
    begun: set[int] = field(default_factory=set)
    """All batches that are settled, and not written whole."""
    forgotten: int = -1
    undecided: set[TopicPartition] = field(default_factory=set)
    """Partitions with a receipt of the batch in an open transaction."""
    first_open: int | None = None
    """The offset of the first record of an open transaction."""

    @property
    def newest(self) -> int:
        """The generation of the newest attempt; -1: there is none."""
        return max(self.attempts.values(), default=-1)

    def upto(self, generation: int) -> int:
        """Return the offset from which an attempt of this generation must read again.

        It is its own record, or the first undecided one.
        """
        return generation if self.first_open is None else min(generation, self.first_open)

    def known(self, generation: int) -> KnownBatches | None:
        """Return what that attempt records for later ones; None if that is too much for a record."""
        if len(self.begun) > KEPT_BATCHES:
            return None
        return KnownBatches(
            upto=self.upto(generation),
            written=frozenset(self.batches),
            begun=frozenset(self.begun),
            forgotten=self.forgotten,
        )


def last_known(records: Sequence[LedgerRecord], where: str) -> KnownBatches | None:
    """Return what the last attempt that fenced all slots recorded of all batches.

    It is None if there is none, or an earlier Ferry's.
    """
    for record in reversed(records):
        if record.fate is Fate.COMMITTED and record.value is not None and key_parts(record.key)[:1] == [FENCED]:
            with reading(f"{where}, ledger record at offset {record.offset},"):
                return codec.parse_known(parse_value(record.value, where))
    return None


def standing(
    records: Iterable[LedgerRecord],
    batch: int,
    where: str,
    own: Collection[int] = (),
    *,
    before: BatchState | KnownBatches | None = None,
) -> BatchState:
    """Fold the ledger's records, in order, for one batch. Raises Refused for those of a newer Ferry.

    Records at the offsets `own` are known to be committed: their markers may be after what was read. `before` is what
    is known already: the state up to the first undecided record, or batches of which this is none.
    """
    found = _begin(before)
    for record in records:
        if record.fate is Fate.ABORTED:
            continue
        if record.fate is Fate.OPEN and record.offset not in own:
            found.first_open = record.offset if found.first_open is None else found.first_open
            key = key_parts(record.key)
            if key[:2] == [RECEIPT, batch]:
                with reading(f"{where}, ledger record at offset {record.offset},"):
                    found.undecided.add(TopicPartition(key[2], key[3]))
            continue
        key = key_parts(record.key)
        if key:
            with reading(f"{where}, ledger record at offset {record.offset},"):
                _take(found, record, key, batch, where)
    return found


def _begin(before: BatchState | KnownBatches | None) -> BatchState:
    if before is None:
        return BatchState()
    if isinstance(before, KnownBatches):
        return BatchState(batches=set(before.written), begun=set(before.begun), forgotten=before.forgotten)
    return replace(
        before,
        attempts=dict(before.attempts),
        receipts=dict(before.receipts),
        batches=set(before.batches),
        begun=set(before.begun),
        undecided=set(),
        first_open=None,
    )


def _take(found: BatchState, record: LedgerRecord, key: list[Any], batch: int, where: str) -> None:
    """Add a committed record. Of other batches only the keys are read, because there may be very many."""
    kind, offset, is_there = key[0], record.offset, record.value is not None
    if kind in (SETTLED, DELIVERED) and len(key) > 1:
        (found.begun.add if kind == SETTLED and is_there else found.begun.discard)(key[1])
    if kind == DELIVERED and len(key) > 1:
        (found.batches.add if is_there else found.batches.discard)(key[1])
    of_batch = len(key) > 1 and key[1] == batch
    if not of_batch and kind not in (ATTEMPT, FENCED, FORGOTTEN):
        return
    value = None if record.value is None else parse_value(record.value, where)
    if kind == ATTEMPT:
        if value is None:
            found.attempts.pop(key[1], None)
        else:
            found.attempts[key[1]] = offset
            found.slots = max(found.slots, slots(value["slots"]))
    elif kind == FENCED and value is not None:
        found.slots = max(found.slots, slots(value["slots"]))
    elif kind == FORGOTTEN and value is not None:
        found.forgotten = max(found.forgotten, value["batch"])
    elif of_batch:
        _take_of_batch(found, key, value)


def _take_of_batch(found: BatchState, key: list[Any], value: dict[str, Any] | None) -> None:
    if key[0] == SETTLED and value is not None:
        found.settled = parse_settled(value)
    elif key[0] == RECEIPT:
        place = TopicPartition(key[2], key[3])
        if value is None:
            found.receipts.pop(place, None)
        else:
            found.receipts[place] = parse_receipt(key, value)
    elif key[0] == DELIVERED:
        found.settled = None if value is None else parse_settled(value)
        found.delivered = None if value is None else parse_offsets(value)


def foreign_record(
    records: Iterable[LedgerRecord],
    batch: int,
    generation: int,
    own: Collection[int],
    places: Collection[TopicPartition],
) -> str | None:
    """Return what prevents a commit among the records since the slot was taken over; None if nothing does.

    That is a newer attempt, or a receipt of another writer for one of the slot's partitions that is not aborted. For
    a flow's runs its twin is `ferry.protocol.slot.foreign_record`.
    """
    receipts = [[RECEIPT, batch, place.topic, place.partition] for place in places]
    for record in records:
        if record.fate is Fate.ABORTED or record.offset in own or record.value is None:
            continue
        key = key_parts(record.key)
        if not key:
            continue
        if key[0] == ATTEMPT and record.offset > generation:
            return f"a newer attempt began at ledger offset {record.offset}"
        if key[:4] in receipts:
            return f"another writer's receipt for {key[2]}-{key[3]} is at ledger offset {record.offset}"
    return None


def other_content(what: str, known: Mapping[TopicPartition, Due], found: Mapping[TopicPartition, Due]) -> str | None:
    """Say that a frame has other records than that of an earlier attempt; None if they are the same."""
    different = sorted(place for place in known.keys() | found.keys() if known.get(place) != found.get(place))
    if not different:
        return None
    return other_sentence(what, [(place, known.get(place), found.get(place)) for place in different])


def other_sentence(what: str, different: list[tuple[TopicPartition, Due | None, Due | None]]) -> str:
    """Say what differs in the first few partitions, and the remedy."""
    nothing = Due(0, 0)
    shown = []
    for place, before, now in different[:_SHOWN]:
        one, two = (before or nothing).records, (now or nothing).records
        shown.append(f"{place} had {one} records and has {two}" if one != two else f"{place} has {one} others")
    more = f" and {len(different) - _SHOWN} partitions more" if len(different) > _SHOWN else ""
    return (
        f"{what} has other records than when it began ({', '.join(shown)}{more}): give the frame that it had then, "
        "without what changes each time (clocks, random numbers, tables that grow), or give the batch another number"
    )


def written(
    application: str,
    batch: int,
    settled: Settled,
    offsets: Mapping[TopicPartition, tuple[int, int]],
    *,
    already: bool,
) -> Written:
    """Return the answer, with a row for each target partition, in order."""
    parts = tuple(
        WrittenPart(place.topic, place.partition, *offsets[place], due.records)
        for place, due in sorted(settled.due.items())
    )
    return Written(application=application, batch=batch, already=already, parts=parts)


def expired(found: BatchState, batch: int) -> list[int]:
    """Return the batches that are forgotten when this one is delivered: the lowest numbers beyond KEPT_BATCHES."""
    known = sorted(found.batches | {batch})
    return [one for one in known[: max(0, len(known) - KEPT_BATCHES)] if one != batch]
