"""Which chunks cover an offset of a repartitioned topic: a record of that offset is in one of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ferry.ledger.units import family, of_partition, places_of
from ferry.model import Era, Receipt, TopicPartition


class Dealt(StrEnum):
    """How far a target partition has come with an offset."""

    PASSED = "passed"
    """A chunk covers it: its record was written there, if it was for that partition."""
    FORGOTTEN = "forgotten"
    """It was passed, and the receipt was deleted with its run."""
    EARLIER = "earlier"
    """The offset is before the rule in force and no receipt covers it any more, or it is before the lane's start."""
    AHEAD = "ahead"
    """Not copied yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtAt:
    """A target partition, and the chunk that covers the offset, if there is one.

    `keyless`: a record without a key goes to this partition, in one of the topic's target topics.
    """

    target: TopicPartition
    state: Dealt
    chunk: Receipt | None
    keyless: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dealing:
    """What the ledger shows about a repartitioned source topic: the rules in force, at least one.

    `lasts` and `receipts` are by target partition: the last one of each, and all that are left, ascending.
    """

    eras: Sequence[Era]
    lasts: Mapping[TopicPartition, Receipt]
    receipts: Mapping[TopicPartition, Sequence[Receipt]]

    @property
    def newest(self) -> Era:
        """The newest rule; one of those that began with it, where there are several target topics."""
        return max(self.eras, key=lambda era: era.since)


def dealt_at(
    eras: Iterable[Era], receipts: Mapping[TopicPartition, Sequence[Receipt]], source: TopicPartition, offset: int
) -> list[DealtAt]:
    """Return what is known of a source offset, by target partition; empty: the topic was never repartitioned.

    `receipts` are those that the ledger still has, by target partition, with the last ones, ascending.
    """
    known = [era for era in eras if era.source_topic == source.topic]
    if not known:
        return []
    newest = max(known, key=lambda era: era.since)
    places = {place for era in family(known, newest) for place in places_of(era)}
    found = []
    for place in sorted(places | receipts.keys()):
        mine = receipts.get(place, ())
        chunk = next((one for one in mine if _has(one, source.partition, offset)), None)
        if chunk is None and place not in places:
            continue
        keyless = place in places and place.partition == (source.partition + offset) % newest.partitions
        is_new = of_partition(newest.begins, source.partition) <= offset
        state = Dealt.PASSED if chunk is not None else _state(newest, mine, source.partition, offset)
        found.append(DealtAt(target=place, state=state, chunk=chunk, keyless=keyless and is_new))
    return found


def _has(chunk: Receipt, partition: int, offset: int) -> bool:
    return of_partition(chunk.starts, partition) <= offset < of_partition(chunk.ends, partition)


def _state(era: Era, receipts: Sequence[Receipt], partition: int, offset: int) -> Dealt:
    begin = of_partition(era.begins, partition)
    reached = max([begin, *(of_partition(one.ends, partition) for one in receipts if one.since == era.since)])
    if offset >= reached:
        return Dealt.AHEAD
    return Dealt.EARLIER if offset < begin else Dealt.FORGOTTEN
