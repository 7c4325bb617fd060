"""Units of the record path: which offsets each target partition still needs, and what an attempt has done (ADR 39).

A record belongs to one *era* of its topic, and within it to one target partition. While the transform and the number of
target partitions stay, each target partition continues from its own position. Before either changes, all of them must
be at the same position: otherwise a record would be written by both rules, or by none. So a change first finishes, by
the old rule, what some partitions have and others lack. The next plan begins the new era at the position of all of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ferry.errors import BadInput
from ferry.model import Era, Offsets, Reads, Receipt, Slice, TopicPartition


class Log(NamedTuple):
    """A source partition now: its first offset, and its last stable offset."""

    start: int
    end: int


class Passed(NamedTuple):
    """Offsets `[start, end)` of a source partition that retention deleted before a target partition had them."""

    partition: int
    start: int
    end: int


class Cut(NamedTuple):
    """A source partition whose log ends before what was read of it."""

    partition: int
    reached: int
    end: int


class Replanned(NamedTuple):
    """What a plan makes of a topic: the era's rule, and `[starts, ends)` of each target partition.

    `finishing`: the wanted rule has changed, and this plan only finishes what the rule before it has begun.
    """

    era: Era
    ranges: tuple[tuple[Offsets, Offsets], ...]
    """One entry for each target partition, in the order of `places_of`."""
    finishing: bool = False
    passed: tuple[Passed, ...] = ()
    cut: tuple[Cut, ...] = ()


def places_of(era: Era, names: Sequence[str] = ()) -> list[TopicPartition]:
    """Return the target partitions of an era.

    They are those of its own topic, or of all `names` where records choose among several.
    """
    return [TopicPartition(name, number) for name in names or (era.target_topic,) for number in range(era.partitions)]


def standings(era: Era, lasts: Iterable[Receipt], names: Sequence[str] = ()) -> list[Offsets]:
    """Return the position of each of `places_of` in an era, by the last receipts of all."""
    reached = {last.target: last.ends for last in lasts if last.since == era.since}
    return [reached.get(place, era.begins) for place in places_of(era, names)]


def family(eras: Iterable[Era], era: Era) -> tuple[Era, ...]:
    """Return the eras that began with this one, by target topic: one for each topic that the records go to."""
    mine = (one for one in eras if (one.source_topic, one.since) == (era.source_topic, era.since))
    return tuple(sorted(mine, key=lambda one: one.target_topic))


def least_dealt(eras: Iterable[Era], lasts: Iterable[Receipt]) -> dict[TopicPartition, int]:
    """Return by source partition the offset that all target partitions have reached.

    The newest rule of each topic counts.
    """
    of_target: dict[str, list[Receipt]] = {}
    for last in lasts:
        of_target.setdefault(last.target.topic, []).append(last)
    newest: dict[str, list[Era]] = {}
    for era in sorted(eras, key=lambda one: one.since):
        known = newest.get(era.source_topic, ())
        newest[era.source_topic] = [*known, era] if known and known[0].since == era.since else [era]
    found: dict[TopicPartition, int] = {}
    for topic, mine in newest.items():
        places = [place for era in mine for place in standings(era, of_target.get(era.target_topic, ()))]
        for number in range(min(map(len, places))):  # a partition that some of them do not know has no position yet
            found[TopicPartition(topic, number)] = min(place[number] for place in places)
    return found


def joined(vectors: Sequence[Offsets]) -> Offsets:
    """Return the least vector that no given vector exceeds.

    A partition that is not in a vector has offset 0 there.
    """
    width = max(map(len, vectors))
    return tuple(max((v[number] if number < len(v) else 0) for v in vectors) for number in range(width))


def of_partition(vector: Offsets, number: int) -> int:
    """Return a vector's offset of a source partition; 0 for one that is newer than the vector."""
    return vector[number] if number < len(vector) else 0


def is_next(reached: Offsets, begins: Offsets) -> bool:
    """Return whether `begins` continues at `reached`; partitions that are new begin at 0."""
    width = max(len(reached), len(begins))
    return _widened(reached, (), width) == _widened(begins, (), width)


def is_level(vectors: Sequence[Offsets]) -> bool:
    """Return whether all of them are the same position."""
    common = joined(vectors)
    return all(_widened(vector, (), len(common)) == common for vector in vectors)


def replanned(
    known: Era | None,
    lasts: Iterable[Receipt],
    wish: Era,
    logs: Sequence[Log],
    *,
    before: Sequence[str] = (),
    names: Sequence[str] = (),
) -> Replanned:
    """Return what a run copies of a topic now. Pure.

    `wish` is the rule that the file wants. Its `begins` count where nothing is `known`, and for partitions that the
    source has got since. Otherwise it begins where the era before it ends. `logs` are those of the source partitions,
    by number. `names` are the wish's target topics, and `before` those of the known era; empty when the era has only
    its own. All target partitions must be at one position before another rule begins, because a record goes to one of
    them. Raises BadInput when the source has fewer partitions than were read.
    """
    era, ends, finishing = known, tuple(log.end for log in logs), False
    if era is None:
        era, places = wish, [wish.begins] * len(places_of(wish, names))
    else:
        places = standings(era, lasts, before)
        if max(map(len, places)) > len(logs):
            raise BadInput(
                f"topic {era.source_topic} has {len(logs)} partitions where {max(map(len, places))} were read: it was "
                "made again meanwhile; give its copy another name, or delete both"
            )
    places = [_widened(place, wish.begins, len(logs)) for place in places]
    passed, cut = _passed(places, logs, ends), _cut(places, logs)
    is_other = known is not None and {*before} != {*names}
    if is_other or (era.digest, era.partitions) != (wish.digest, wish.partitions):
        # Offsets that a log has lost delay no change of the rule.
        here = [tuple(max(at, log.start) for at, log in zip(place, logs, strict=True)) for place in places]
        if is_level(here):
            begins = joined(here)
            era = _begun(wish, begins)
            places = [begins] * len(places_of(era, names))
        else:
            ends, finishing = joined(places), True
    starts = [_behind(place, logs, ends) for place in places]
    ranges = tuple((start, tuple(map(max, start, ends))) for start in starts)
    return Replanned(era, ranges, finishing, passed, cut)


def _begun(wish: Era, begins: Offsets) -> Era:
    return Era(
        source_topic=wish.source_topic,
        target_topic=wish.target_topic,
        since=wish.since,
        begins=begins,
        digest=wish.digest,
        partitions=wish.partitions,
        source_topic_id=wish.source_topic_id,
        target_topic_id=wish.target_topic_id,
        spec=wish.spec,
    )


def _widened(vector: Offsets, begins: Offsets, width: int) -> Offsets:
    """Add partitions that the source has got since, at their beginnings: nothing of them was read."""
    more = range(len(vector), width)
    return vector + tuple(begins[number] if number < len(begins) else 0 for number in more)


def _behind(start: Offsets, logs: Sequence[Log], ends: Offsets) -> Offsets:
    """Move positions to the log's first offset if they are before it.

    Earlier offsets cannot be read, and are reported.
    """
    return tuple(min(max(at, log.start), max(at, end)) for at, log, end in zip(start, logs, ends, strict=True))


def _cut(starts: Sequence[Offsets], logs: Sequence[Log]) -> tuple[Cut, ...]:
    reached = [max(start[number] for start in starts) for number in range(len(logs))]
    pairs = enumerate(zip(reached, logs, strict=True))
    return tuple(Cut(number, at, log.end) for number, (at, log) in pairs if at > log.end)


def _passed(starts: Sequence[Offsets], logs: Sequence[Log], ends: Offsets) -> tuple[Passed, ...]:
    found = []
    for number, log in enumerate(logs):
        least = min(start[number] for start in starts)
        if least < min(log.start, ends[number]):
            found.append(Passed(number, least, min(log.start, ends[number])))
    return tuple(found)


def reached_at(unit: Slice, partition: int, offset: int) -> Offsets:
    """Return how far a unit has come after this record: partitions are read one after the other."""
    return (*unit.ends[:partition], offset + 1, *unit.starts[partition + 1 :])


def rest_of(piece: Slice, last: Receipt | None, generation: int, limit: int | None = None) -> Slice | None:
    """Return what is left of a slice in the run of this generation; None: nothing.

    `last` is the last receipt of its target partition, of whichever run. `limit` is the source offset at which the
    slice cannot continue. A repartitioned slice that cannot continue is left out, because its content cannot be cut
    short.
    """
    rest = piece
    if last is not None and last.generation == generation:
        rest = _after(piece, last)
    if limit is not None:
        rest = replace(rest, end=rest.start if piece.dealt else min(rest.end, limit))
    return rest if rest.start < rest.end else None


def _after(piece: Slice, last: Receipt) -> Slice:
    """Return the slice with what the last receipt of its run shows about both logs."""
    rest = replace(piece, target_next=last.target_next, target_epoch=last.target_epoch)
    if piece.reads is None:
        return replace(rest, start=last.end, read_epoch=last.source_epoch, read_end=last.end)
    if last.since != piece.since:
        return piece
    return rest.reading(Reads(starts=last.ends, ends=piece.ends, epochs=last.epochs))


def read_ranges(pieces: Iterable[Slice]) -> dict[TopicPartition, tuple[int, int]]:
    """Return what must be read of the source for these slices, by partition, without empty ranges."""
    return covering(span for piece in pieces for span in piece.spans)


def done_ranges(receipts: Iterable[Receipt]) -> dict[TopicPartition, tuple[int, int]]:
    """Return what was read of the source for committed chunks, once for however many target partitions."""
    return covering(span for one in receipts for span in one.spans)


def covering(ranges: Iterable[tuple[TopicPartition, int, int]]) -> dict[TopicPartition, tuple[int, int]]:
    """Return for each partition one range that covers all of its ranges, without empty ones."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for place, start, end in ranges:
        if start < end:
            low, high = found.get(place, (start, end))
            found[place] = min(low, start), max(high, end)
    return found


def is_done(unit: Slice, last: Receipt | None) -> bool:
    """Return whether a unit's target partition has reached the unit's end by now, by whichever run."""
    reached = () if last is None else last.ends
    return len(reached) >= len(unit.ends) and all(map(int.__ge__, reached, unit.ends))
