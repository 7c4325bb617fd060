"""Whether the target still has what an attempt goes on behind, and in which leader epochs it took what was written."""

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
    """The target partitions of one attempt: where the last receipt, or chunk, has left them (ADR 19).

    A log that is cut is refused, whoever fills it up again: before an attempt writes, and before each commit.
    """

    def __init__(self, target: Cluster) -> None:
        self._target = target
        self._written: dict[TopicPartition, Mark] = {}

    async def check(self, todo: Iterable[Slice]) -> None:
        """Begin with what is left of slices; the target's metadata are as of now.

        Raises Dropped where a log was cut since the last receipt, Hindered where nobody can tell now.
        """
        begun = {piece.target: piece for piece in todo}
        self._written = {
            place: Mark(piece.target_epoch, piece.target_next)
            for place, piece in begun.items()
            if piece.target_epoch != UNKNOWN_EPOCH
        }
        cuts = await cut_since(self._target, self._written.items())
        drops = [self._cut(begun[place], begun[place].start, cut) for place, cut in cuts.found.items()]
        drops += [self._silent(begun[place], begun[place].start) for place in sorted(cuts.unanswered)]
        if drops:
            raise verdict(drops)

    async def vouch(self, parts: Sequence[Part]) -> None:
        """Note in the parts of a chunk in which leader epochs the logs reach their ends; all writes are acknowledged.

        By these the next chunk and the next plan know of a cut. Raises Dropped where what lay before the chunk is gone,
        Retryable where the chunk's own records are, or nobody can tell.
        """
        wrote = {part.piece.target: part for part in parts if part.segments}
        epochs = await leader_epochs(self._target, {place: part.target_next for place, part in wrote.items()})
        # By the metadata that those leaders were found in.
        before = ((place, self._written[place]) for place in wrote if place in self._written)
        cuts = await cut_since(self._target, before)
        if cuts.found:
            raise verdict(self._cut(wrote[place].piece, wrote[place].start, cut) for place, cut in cuts.found.items())
        if cuts.unanswered:
            raise Retryable(f"the leader of {min(cuts.unanswered)} on cluster {self._target.alias} does not answer")
        self._written |= {place: Mark(epochs[place], part.target_next) for place, part in wrote.items()}
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
