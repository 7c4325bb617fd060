"""Checks that the rows were read from one history of each log, and that it is still there (ADR 19).

Many tasks read a log, at different times. If it is cut between them, and grows again, some records are from before and
some from after. So the leader epoch at the end of the range is asked for before the first task reads, and again after
the last one. A slot that reads while it writes asks when the leader epochs of its batches change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ferry.config.client_options import ConnectionOptions
from ferry.copy.chunk import PartProgress
from ferry.features.records.acts.cluster import connected
from ferry.features.records.acts.cutoffs import Cutoff, Failure
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epoch_check import UNKNOWN_EPOCH, Mark
from ferry.kafka.produce.kept import Cut, cut_since, reached_epochs
from ferry.ledger.units import read_ranges
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import refused
from ferry.model import RefusalKind, Slice, TopicPartition
from ferry.protocol.drops import Blocked, Drop, Dropped, drop

_LOOKS_BEFORE = 7
"""Tries to find a leader before anything is read: 13 s, longer than most elections take."""

Marks = Mapping[TopicPartition, Mark]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Leader epochs in which logs reached what is to be read of them, and partitions whose leader did not answer."""

    marks: Marks
    silent: Mapping[TopicPartition, Failure]


def seen_before(
    alias: str, options: ConnectionOptions, ranges: Mapping[TopicPartition, tuple[int, int]], *, patience_s: float
) -> Seen:
    """Ask for the leader epochs of the logs of which these offsets `[start, end)` are to be read, before any is read.

    Raises Unreachable.
    """
    if not ranges:
        return Seen(marks={}, silent={})
    with connected(alias, options, patience_s=patience_s) as cluster:
        found: Seen = cluster.loop.run(look_before, cluster, ranges)
        return found


async def look_before(cluster: Cluster, ranges: Mapping[TopicPartition, tuple[int, int]]) -> Seen:
    """Ask for the leader epochs of the logs of which these offsets `[start, end)` are to be read, on a connection."""
    ends = {place: end for place, (_, end) in ranges.items()}
    await cluster.refresh({place.topic for place in ends})
    now = await reached_epochs(cluster, ends, looks=_LOOKS_BEFORE)
    marks = {place: Mark(epoch, ends[place]) for place, epoch in now.epochs.items()}
    marks |= now.short  # the task that reads it reports that it is short
    silent = {
        place: Failure(
            kind=RefusalKind.NO_LEADER,
            message=sentence("source.silent", place=str(place), cluster=cluster.alias),
            offset=ranges[place][0],
        )
        for place in now.silent
    }
    return Seen(marks=marks, silent=silent)


class EpochNotes:
    """The leader epochs of batches, as a slot reads them that writes meanwhile."""

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, list[int]] = {}
        self._epochs: dict[TopicPartition, list[int]] = {}

    def note(self, place: TopicPartition, mark: Mark) -> None:
        """Record that a log was read up to `mark.end`, where it is of that leader epoch; ends ascend."""
        ends, epochs = self._ends.setdefault(place, []), self._epochs.setdefault(place, [])
        if epochs and epochs[-1] == mark.epoch:
            ends[-1] = max(ends[-1], mark.end)
        else:
            ends.append(mark.end)
            epochs.append(mark.epoch)

    def epoch(self, place: TopicPartition, end: int) -> int:
        """Return a leader epoch in which the log that was read reached this offset; UNKNOWN_EPOCH: none is noted."""
        at = bisect_left(self._ends.get(place, []), end)
        epochs = self._epochs.get(place, [])
        return epochs[at] if at < len(epochs) else UNKNOWN_EPOCH


@dataclass(slots=True, kw_only=True)
class SourceLogs:
    """The logs that the rows of one slot come from.

    `seen` is for rows that were all read before the slot begins; `notes` for rows that are read while it writes.
    """

    source: Cluster
    seen: Marks
    notes: EpochNotes | None
    cuts: dict[TopicPartition, Cutoff] = field(default_factory=dict)
    """Logs that were found to be cut: nothing more of them is written."""
    _before: dict[TopicPartition, Mark] = field(default_factory=dict)
    """What was written of slices, by the receipt or the last chunk."""

    async def check(self, pieces: Iterable[Slice]) -> dict[TopicPartition, int]:
        """Begin with what is left. Return the leader epochs at its end, if all of it was read before.

        What was cut is added to `cuts`, and has no epoch. Raises Blocked if it is not known now whether a log was cut.
        """
        every = list(pieces)
        self._before = {piece.source: Mark.of(piece.read_epoch, piece.read_end) for piece in every if not piece.dealt}
        ends = ends_of(every)
        if self.notes is not None or not ends:
            return {}
        await self.source.refresh({place.topic for place in ends})
        found = await reached_epochs(self.source, ends)
        # After that: what is still there now was there when it was read, and when its epoch was returned.
        cuts = await cut_since(self.source, [*self._seen_of(ends), *_marks_of(every)])
        short = {place: Cut(Mark(one.epoch, ends[place]), one.end) for place, one in found.short.items()}
        cut = {**short, **cuts.found}
        self.cuts |= {place: self._cutoff(place, one) for place, one in cut.items()}
        silent = cuts.unanswered | found.silent
        hindered = [
            self._hindered(piece, min(lost))
            for piece in every
            if (lost := ends_of([piece]).keys() & silent - cut.keys())
        ]
        if hindered:
            raise Blocked(hindered)
        return {place: epoch for place, epoch in found.epochs.items() if place not in cut}

    async def vouch(self, parts: Sequence[PartProgress]) -> None:
        """Note in the parts of a chunk the leader epochs of what was read; brokers are asked only if an epoch changed.

        A leader epoch has one log: records of the epoch that was written last are of that log. Raises Dropped for a log
        that has lost what was written of it before the chunk, Blocked if that is not known now.
        """
        if self.notes is None:
            return
        for part in parts:
            part.source_epoch = self.notes.epoch(part.piece.source, part.end)
        by_place = {part.piece.source: part for part in parts}
        before = {
            place: mark
            for place, part in by_place.items()
            if (mark := self._before.get(place)) is not None and mark.epoch != part.source_epoch
        }
        before = {place: mark for place, mark in before.items() if mark.epoch != UNKNOWN_EPOCH}
        if before:
            await self.source.refresh({place.topic for place in before})
            cuts = await cut_since(self.source, before.items())
            drops = [
                Drop(piece=by_place[place].piece, refusal=self._cutoff(place, one).refusal, offset=one.mark.end)
                for place, one in cuts.found.items()
            ]
            if drops:
                raise Dropped(drops)
            if cuts.unanswered:
                raise Blocked([self._hindered(by_place[place].piece, place) for place in sorted(cuts.unanswered)])
        self._before |= {
            place: Mark(part.source_epoch, part.end)
            for place, part in by_place.items()
            if part.source_epoch != UNKNOWN_EPOCH
        }

    def _seen_of(self, ends: Iterable[TopicPartition]) -> list[tuple[TopicPartition, Mark]]:
        return [(place, self.seen[place]) for place in ends if place in self.seen]

    def _hindered(self, piece: Slice, place: TopicPartition) -> Drop:
        cluster = self.source.alias
        return drop("source.silent", piece, piece.start, passing=True, place=str(place), cluster=cluster)

    def _cutoff(self, place: TopicPartition, cut: Cut) -> Cutoff:
        code = "source.truncated.before" if cut.mark == self.seen.get(place) else "source.truncated.read"
        cluster, mark = self.source.alias, cut.mark
        refusal = refused(code, *place, cluster=cluster, end=mark.end, cut=cut.at, epoch=mark.epoch)
        return Cutoff(offset=0, refusal=refusal)


def ends_of(pieces: Iterable[Slice]) -> dict[TopicPartition, int]:
    """Return the offsets up to which source partitions are read for these pieces."""
    return {place: end for place, (_, end) in read_ranges(pieces).items()}


def _marks_of(pieces: Iterable[Slice]) -> list[tuple[TopicPartition, Mark]]:
    """Return what was written of the logs that these pieces continue to read."""
    return [
        (place, Mark.of(epoch, end))
        for piece in pieces
        for (place, epoch, end), upto in zip(piece.marks, piece.ends)  # noqa: B905 - marks may be fewer
        if end is not None and end < upto
    ]
