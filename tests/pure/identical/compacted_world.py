"""The modelled world of a compacted topic: the source's brokers clean on their own, and so does the target's."""

from __future__ import annotations

from ferry.features.identical.rules.values import Limits, Look
from tests.pure.identical import exclusive_writer
from tests.pure.identical.broker import Refused
from tests.pure.identical.marking_writer import MarkingWriter
from tests.pure.identical.world import LIMITS, Near, Task, World
from tests.pure.identical.writer import LANE


class CompactedNear(Near):
    """The world as one writer sees it."""

    world: CompactedWorld
    shown_epoch: int = 0

    def look(self, asked_at: int) -> tuple[Look, bool]:
        """ListOffsets, a fetch of the last batches, DescribeProducers."""
        state = self.world.target.states.get(LANE)
        self.shown_epoch = 0 if state is None else state.epoch
        return super().look(asked_at)

    def epoch(self) -> int:
        """The epoch of the lane's producer id that the last reading showed; 0: there is no state."""
        return self.shown_epoch

    def agrees(self, start: int, end: int) -> bool:
        """A reading of both sides; what the target's cleaner took is right."""
        world = self.world
        return all(
            offset in world.cleaned
            or (exclusive_writer.keeps_marker if entry.marker else exclusive_writer.keeps_record)(
                entry, world.source.has(offset)
            )
            for offset, entry in list(enumerate(world.target.entries))[start:end]
        )


class CompactedWorld(World):
    """One partition of one lane."""

    def __init__(self, shape: str, *, version: int = 2, limits: Limits = LIMITS) -> None:
        super().__init__(shape, version=version, limits=limits)
        self.cleaned: set[int] = set()
        """What the target's cleaner took."""

    def start_other(self) -> Task:
        """A run begins that takes the topic for one that is not compacted."""
        task = Task("abcdefghijklmnop"[len(self.tasks)], MarkingWriter(cluster=CompactedNear(self)))
        self.tasks.append(task)
        return task

    def forget(self) -> None:
        """A broker loads the log again, and its cleaner took the producer's batches: there is no state."""
        self.trace.append(f"{self.now} forget")
        self.target.states.clear()

    def clean_target(self, offset: int) -> None:
        """The target's cleaner takes a record, or a marker."""
        if offset < self.target.hw - 1:
            self.cleaned.add(offset)

    def doubt(self, task: Task) -> None:
        """A write arrives, and is answered by an error that means "maybe": a follower was slow, say."""
        request = task.pending
        if request is None or request.arrived or not request.writes:
            return
        self._arrive(task.name, request)
        if not isinstance(request.answer, Refused):
            self.trace.append("   answered by an error")
            request.answer, request.needs = Refused("maybe"), 0
        self.settle()

    def check(self) -> None:
        """Each record at its offset with its content; nothing passed that all brokers of the source have."""
        if not self.checking:
            return
        assert self.target.end <= self.ledger.planned, self.say("the target is past what was planned")
        assert self.ledger.receipts <= self.target.hw, self.say("receipts past the end")
        for offset, entry in enumerate(self.target.entries):
            if entry.value is None:
                assert self.source.may_be_passed(offset), self.say(f"the record at {offset} was passed")
            else:
                there = self.source.truth[offset]
                assert there is not None, self.say(f"a record at {offset}, where the source has none")
                assert there.value == entry.value, self.say(f"record {entry.value} at offset {offset}")
        for start, end in self.ledger.covered:
            for offset in range(start, end):
                entry = self.target.entries[offset]
                assert entry.value is not None or entry.marker, self.say(f"a receipt, and an empty record at {offset}")
