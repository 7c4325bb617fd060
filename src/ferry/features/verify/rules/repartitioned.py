"""Repartitioned topics in a comparison: chunk by chunk, by their receipts. Pure.

A receipt shows which source offsets its chunk covers, and where on the target its records are. The same transform over
these offsets, repartitioned by the same rule, gives the same records in the same order: by source partition, then by
offset. So records are compared by their number in the chunk.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from ferry.features.verify.rules.differences import Comparison
from ferry.features.verify.rules.transformed import Rule
from ferry.ledger.units import covering, is_next
from ferry.model import (
    Difference,
    DifferenceKind,
    Era,
    NotCompared,
    NotComparedKind,
    Offsets,
    Range,
    Receipt,
    RecordContent,
    TopicPartition,
)
from ferry.words import count_of


class Chunk(NamedTuple):
    """A receipt's chunk: `records` records of source offsets `[begins, reached)` are on the target from `start` on.

    Nothing else may be there before `stop`, the beginning of the next chunk.
    """

    begins: Offsets
    reached: Offsets
    records: int
    start: int
    stop: int

    @property
    def ranges(self) -> dict[int, Range]:
        """Return the offsets that the chunk covers, by number of the source partition."""
        return {
            number: (begin, end)
            for number, end in enumerate(self.reached)
            if (begin := self.begins[number] if number < len(self.begins) else 0) < end
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtCopy:
    """A target partition with the chunks of it that are compared, ascending.

    Records from `covered_until` on are in no receipt that was read.
    """

    topic: str
    target: TopicPartition
    partitions: int
    chunks: tuple[Chunk, ...]
    covered_until: int
    transform: str

    @property
    def records(self) -> int:
        """Count the records that the receipts have."""
        return sum(chunk.records for chunk in self.chunks)

    @property
    def pieces(self) -> list[Range]:
        """Return what is read of the target: chunks that directly follow each other are one range."""
        found: list[Range] = []
        for chunk in self.chunks:
            if found and found[-1][1] == chunk.start:
                found[-1] = found[-1][0], chunk.stop
            elif chunk.start < chunk.stop:
                found.append((chunk.start, chunk.stop))
        return found


class Sides(NamedTuple):
    """Where the logs of a topic's partitions begin and end, by number: `(first offset, end)`.

    The target's end is its last stable offset. Partitions that do not answer are left out.
    """

    source: Mapping[int, Range]
    target: Mapping[int, Range]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The receipts that are asked for: those of `run` (None: all), one of `sample` chunks by `seed` (None: each)."""

    run: str | None = None
    sample: int | None = None
    seed: int = 0


def dealt_copies(
    era: Era, receipts: Mapping[int, Sequence[Receipt]], sides: Sides, chosen: Chosen
) -> tuple[list[DealtCopy], list[NotCompared]]:
    """Return what can be compared of a topic, by target partition, and sentences about what cannot.

    `receipts` are those that the ledger still has, ascending, by number of the target's partition.
    """
    found: list[DealtCopy] = []
    left = _Left(era)
    for number, mine in sorted(receipts.items()):
        target = TopicPartition(era.target_topic, number)
        if number not in sides.target:
            left.add(NotComparedKind.UNREADABLE, mine)
            continue
        end = sides.target[number][1]
        chunks = []
        for receipt, chunk in _chunks(mine, end, of_run=chosen.run is not None):
            if chosen.run not in (None, receipt.run):
                continue
            why = _why_not(receipt, chunk, era, sides, number)
            if why is None:
                chunks.append(chunk)
            else:
                left.add(why, [receipt])
        if chosen.sample is not None and chunks:
            first = random.Random(f"{chosen.seed}/{target.topic}/{number}").randrange(min(chosen.sample, len(chunks)))
            chunks = chunks[first :: chosen.sample]
        if chunks:
            until = max((one.target_next or 0 for one in mine), default=0)
            copy = DealtCopy(
                topic=era.source_topic,
                target=target,
                partitions=era.partitions,
                chunks=tuple(chunks),
                covered_until=until,
                transform=era.digest,
            )
            found.append(copy)
    return found, left.entries(by_run=chosen.run is not None)


def _chunks(receipts: Sequence[Receipt], end: int, *, of_run: bool) -> list[tuple[Receipt, Chunk]]:
    """Return the chunks of a target partition that ends at `end`; one without records is where the next one begins.

    If the next receipt is missing, or only those of a run are there, a chunk stops at the end of its own records.
    """
    found: list[tuple[Receipt, Chunk]] = []
    stop, after = end, None
    for receipt in reversed(receipts):
        if of_run or (after is not None and not is_next(receipt.ends, after.starts)):
            stop = receipt.target_next or 0
        start = stop if receipt.target_start is None else receipt.target_start
        stop = max(start, stop)
        found.append((receipt, Chunk(receipt.starts, receipt.ends, receipt.records, start, stop)))
        stop, after = start, receipt
    return found[::-1]


def _why_not(receipt: Receipt, chunk: Chunk, era: Era, sides: Sides, number: int) -> NotComparedKind | None:
    """Return why a chunk is not compared; None when it is."""
    begins, end = sides.target[number]
    if receipt.since != era.since:
        return NotComparedKind.TRANSFORM_CHANGED
    if receipt.records and chunk.start < begins:
        return NotComparedKind.TARGET_DELETED
    if receipt.records and end < (receipt.target_next or 0):
        return NotComparedKind.NOT_STABLE
    return _why_not_source(chunk, sides.source)


def _why_not_source(chunk: Chunk, source: Mapping[int, Range]) -> NotComparedKind | None:
    if any(part not in source for part in chunk.ranges):
        return NotComparedKind.UNREADABLE
    if any(last > source[part][1] for part, (_, last) in chunk.ranges.items()):
        return NotComparedKind.SOURCE_REPLACED
    if any(first < source[part][0] for part, (first, _) in chunk.ranges.items()):
        return NotComparedKind.SOURCE_DELETED
    return None


_WHY = {
    NotComparedKind.TRANSFORM_CHANGED: "were repartitioned by an earlier rule, with another number of partitions or "
    "another transform: what is on the target cannot be verified by today's rule",
    NotComparedKind.UNREADABLE: "cannot be compared, because partitions of one side have no leader that answers",
    NotComparedKind.SOURCE_REPLACED: "were made of records that the source's logs, which end before them, do not have "
    "any more: they were cut, or the topic created again; `ferry plan` shows what to do",
    NotComparedKind.SOURCE_DELETED: "were made of records of which the source has deleted some",
    NotComparedKind.TARGET_DELETED: "are deleted on the target, wholly or in part",
    NotComparedKind.NOT_STABLE: "cannot be read yet, because a transaction is open before them, or they were cut off "
    "on the target: verify again when it has ended; `ferry plan` shows what is cut off",
}
_NO_MATTER = frozenset({NotComparedKind.SOURCE_DELETED, NotComparedKind.TARGET_DELETED})


class _Left:
    """Chunks that are not compared, counted by reason: receipts do not show which of their source offsets is where."""

    def __init__(self, era: Era) -> None:
        self._era = era
        self._receipts: dict[NotComparedKind, list[Receipt]] = {}

    def add(self, why: NotComparedKind, receipts: Sequence[Receipt]) -> None:
        self._receipts.setdefault(why, []).extend(receipts)

    def entries(self, *, by_run: bool) -> list[NotCompared]:
        """Make one entry for each reason: `start` and `end` are of the source's partition 0.

        `by_run`: the chunks of a run were asked for.
        """
        found = []
        for why, mine in self._receipts.items():
            records = count_of(sum(one.records for one in mine), "record")
            what = f"{records} of {self._era.target_topic}, in {count_of(len(mine), 'chunk')} repartitioned from topic"
            begins = min(one.starts[0] if one.starts else 0 for one in mine)
            found.append(
                NotCompared(
                    source=TopicPartition(self._era.source_topic, 0),
                    start=begins,
                    end=max(begins, *(one.ends[0] if one.ends else 0 for one in mine)),
                    why=why,
                    message=f"{what} {self._era.source_topic}, {_WHY[why]}",
                    asked=why not in _NO_MATTER and (by_run or why is not NotComparedKind.TRANSFORM_CHANGED),
                )
            )
        return found


def gone_receipts(
    era: Era, receipts: Mapping[int, Sequence[Receipt]], target: Mapping[int, Range]
) -> NotCompared | None:
    """Make the entry that the ledger lacks receipts of some of what is on the target; None: it has all."""
    for number, mine in receipts.items():
        first = next((one.target_start for one in mine if one.records), None) or 0
        if target.get(number, (first, 0))[0] < first:
            break
        if not all(is_next(one.ends, two.starts) for one, two in pairwise(mine)):
            break
    else:
        return None
    message = (
        f"some records of {era.target_topic} are not compared, because the ledger no longer keeps their receipts: "
        f"those of topic {era.source_topic} are removed with their runs, and no others show where records went"
    )
    return _of_topic(era.source_topic, message, NotComparedKind.DEALT, asked=False)


def left_whole(era: Era, why: str, kind: NotComparedKind, *, asked: bool) -> NotCompared:
    """Make the entry that a topic is not compared, in one sentence for all of its partitions."""
    return _left_whole(era.source_topic, era.target_topic, era.partitions, why, kind, asked=asked)


def _left_whole(
    topic: str, target: str, partitions: int, why: str, kind: NotComparedKind, *, asked: bool
) -> NotCompared:
    message = f"topic {topic}, repartitioned into the {partitions} partitions of {target}, is not compared: {why}"
    return _of_topic(topic, message, kind, asked=asked)


def _of_topic(topic: str, message: str, kind: NotComparedKind, *, asked: bool) -> NotCompared:
    """Make the entry for a repartitioned topic. No range of offsets shows what is left: the message has all."""
    source = TopicPartition(topic, 0)
    return NotCompared(source=source, start=0, end=0, why=kind, message=message, asked=asked)


def not_applied(
    copies: Sequence[DealtCopy], why: str, kind: NotComparedKind, *, asked: bool = True
) -> list[NotCompared]:
    """Make the entries that the rule was not applied to these again, by topic."""
    topics = {(one.topic, one.target.topic): one for one in copies}
    return [
        _left_whole(topic, target, one.partitions, why, kind, asked=asked)
        for (topic, target), one in sorted(topics.items())
    ]


def dealt_by_todays_rule(
    copies: Sequence[DealtCopy], rules: Mapping[str, Rule], *, asked: bool
) -> tuple[list[DealtCopy], list[NotCompared]]:
    """Return the copies that today's rules made, which can be compared, and a sentence for each other topic.

    `rules` are those of source topics that have one. `asked`: these very records were asked for.
    """
    held, left = [], []
    for topic in dict.fromkeys(one.topic for one in copies):
        mine, rule = [one for one in copies if one.topic == topic], rules.get(topic)
        if rule is not None:  # topics that records cannot choose any more have another rule than the others
            held += [one for one in mine if one.transform == rule.digest]
            mine = [one for one in mine if one.transform != rule.digest]
        if not mine:
            continue
        today = (
            "the file has no transform for it any more"
            if rule is None
            else f"it was repartitioned by another transform than ferry.transform.{rule.name} is today, or on another "
            "version of Spark"
        )
        why = f"{today}, and what is on the target cannot be verified by today's rule"
        left += not_applied(mine, why, NotComparedKind.TRANSFORM_CHANGED, asked=asked)
    return held, left


def source_ranges(copies: Sequence[DealtCopy]) -> dict[TopicPartition, Range]:
    """Return what has to be read of the source to compare these."""
    return covering(
        (TopicPartition(copy.topic, number), begin, end)
        for copy in copies
        for chunk in copy.chunks
        for number, (begin, end) in chunk.ranges.items()
    )


def unfinished(copy: DealtCopy, settled: int, why: str) -> NotCompared:
    """Make the entry that the comparison of a target partition ended early, after so many chunks."""
    left = copy.chunks[settled:]
    message = (
        f"{count_of(sum(one.records for one in left), 'record')} of {copy.target}, in {count_of(len(left), 'chunk')} "
        f"repartitioned from topic {copy.topic}, could not be compared: {why}"
    )
    return _of_topic(copy.topic, message, NotComparedKind.UNREADABLE, asked=True)


def not_read(
    place: TopicPartition, target: TopicPartition, chunks: Sequence[Chunk], offset: int, why: str
) -> NotCompared:
    """Make the entry that chunks are not compared, because a source partition cannot be read from `offset` on."""
    records = count_of(sum(one.records for one in chunks), "record")
    message = (
        f"{records} of {target}, in {count_of(len(chunks), 'chunk')} repartitioned from topic {place.topic}, could not "
        f"be compared: {why}"
    )
    end = max(chunk.reached[place.partition] for chunk in chunks)
    return NotCompared(source=place, start=offset, end=end, why=NotComparedKind.UNREADABLE, message=message, asked=True)


class ByNumber(Comparison):
    """The comparison of one chunk.

    Offsets of the source's side are numbers in it, and mean nothing where records differ.
    """

    def _match(self, source: RecordContent, target: RecordContent) -> None:
        self.records += 1
        self._next_source, self._next_target = source.offset + 1, target.offset + 1
        self._goes_on = False


Origin = tuple[int, int]
"""A source partition, and an offset in it."""


def source_differences(
    topic: str, differences: Sequence[Difference], origins: Sequence[Origin], chunk: Chunk
) -> list[Difference]:
    """Put the source's partitions and offsets in place of numbers in a chunk's differences: `origins`, by number.

    A difference over several source partitions becomes one for each.
    """
    found = []
    for one in differences:
        start, end = one.source_range
        if start == end:
            part, offset = _place(start, origins, chunk)
            found.append(replace(one, source=TopicPartition(topic, part), source_range=(offset, offset)))
            continue
        firsts = [at for at in range(start, end) if at == start or origins[at][0] != origins[at - 1][0]]
        in_pairs = one.target_range[1] - one.target_range[0] == end - start and one.kind is not DifferenceKind.ORDER
        for first, last in pairwise([*firsts, end]):
            part = origins[first][0]
            shift = one.target_range[0] - start
            seen = [record for record in one.source_records if first <= record.offset < last]
            there = one.target_range if not in_pairs else (first + shift, last + shift)
            found.append(
                replace(
                    one,
                    source=TopicPartition(topic, part),
                    source_range=(origins[first][1], origins[last - 1][1] + 1),
                    target_range=there,
                    source_records=tuple(replace(record, offset=origins[record.offset][1]) for record in seen),
                    target_records=tuple(w for w in one.target_records if there[0] <= w.offset < there[1]),
                )
            )
    return found


def _place(at: int, origins: Sequence[Origin], chunk: Chunk) -> Origin:
    """Return where a record before the one of that number would have come from."""
    if at < len(origins):
        return origins[at]
    if origins:
        return origins[-1][0], origins[-1][1] + 1
    return next(((part, begin) for part, (begin, _) in sorted(chunk.ranges.items())), (0, 0))
