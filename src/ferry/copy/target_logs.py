"""Whether the target still has the records after which an attempt continues, and the leader epochs of what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferry.copy.part import Part
from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epoch_check import UNKNOWN_EPOCH, Mark
from ferry.kafka.produce.kept import Cut, cut_since, leader_epochs
from ferry.model import Slice, TopicPartition
from ferry.protocol.drops import Drop, drop, verdict


class TargetLogs:
    """The target partitions of one attempt: the ends that the last receipt, or chunk, gave them (ADR 19).

    A log that was cut is refused, even if it was filled up again: before an attempt writes, and before each commit.
    """

    def __init__(self, target: Cluster) -> None:
        self._target = target
        self._written: dict[TopicPartition, Mark] = {}

    async def check(self, todo: Iterable[Slice]) -> None:
        """Begin with the rests of slices; the target's metadata must be current.

        Raises Dropped for logs that were cut since the last receipt, Blocked for those whose leader does not answer
        now.
        """
        begun = {piece.target: piece for piece in todo}
        self._written = {
            place: Mark.of(piece.target_epoch, piece.target_next)
            for place, piece in begun.items()
            if piece.target_epoch is not None
        }
        cuts = await cut_since(self._target, self._written.items())
        drops = [self._cut(begun[place], begun[place].start, cut) for place, cut in cuts.found.items()]
        drops += [self._silent(begun[place], begun[place].start) for place in sorted(cuts.unanswered)]
        if drops:
            raise verdict(drops)

    async def vouch(self, parts: Sequence[Part]) -> None:
        """Note in the parts of a chunk the leader epochs in which the logs reach their ends.

        All writes must be acknowledged. The next chunk and the next plan use the epochs to find a cut. Raises Dropped
        if records before the chunk are gone; Retryable if the chunk's own are, or if a leader does not answer.
        """
        wrote = {part.piece.target: part for part in parts if part.wrote}
        ends = {place: part.target_next for place, part in wrote.items() if part.target_next is not None}
        epochs = await leader_epochs(self._target, ends)
        # Uses the metadata with which those leaders were found.
        before = ((place, self._written[place]) for place in wrote if place in self._written)
        cuts = await cut_since(self._target, before)
        if cuts.found:
            raise verdict(self._cut(wrote[place].piece, wrote[place].start, cut) for place, cut in cuts.found.items())
        if cuts.unanswered:
            raise Retryable(f"the leader of {min(cuts.unanswered)} on cluster {self._target.alias} does not answer")
        self._written |= {place: Mark(epochs[place], end) for place, end in ends.items()}
        for part in parts:
            known = self._written.get(part.piece.target)
            part.target_epoch = UNKNOWN_EPOCH if known is None else known.epoch

    def _cut(self, piece: Slice, offset: int, cut: Cut) -> Drop:
        return drop(
            "target.cut.at-work",
            piece,
            offset,
            place=str(piece.target),
            cluster=self._target.alias,
            end=cut.mark.end,
            cut=cut.at,
            epoch=cut.mark.epoch,
        )

    def _silent(self, piece: Slice, offset: int) -> Drop:
        place, cluster = str(piece.target), self._target.alias
        return drop("target.silent", piece, offset, passing=True, place=place, cluster=cluster)
