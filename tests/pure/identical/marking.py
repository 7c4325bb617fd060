"""A lane with identical offsets whose login may write markers, and clocks that are later: what tests of holes use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ferry.clock import wall_ms
from ferry.features.identical.acts import markers, slot
from ferry.features.identical.acts.markers import APART_MS, MARKING_MS
from ferry.features.identical.rules.planned import MARGIN_MS
from ferry.kafka.connect.cluster import Cluster
from ferry.ledger.producer_codec import markings
from ferry.model import Attempt
from ferry.protocol.slot import SlotProgress
from tests.pure.identical.test_slot import Identical, found
from tests.pure.protocol.world import LANE, TOPIC
from tests.pure.scripted.batches import row
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import place

LATE_MS = 600_000 + MARGIN_MS
"""How late a marker may be, with `connections.max.idle.ms` of the brokers in `found`."""
AFTER_ALL_MS = MARKING_MS + APART_MS + LATE_MS + 1


class Marking(Identical):
    """A lane whose login may write markers. `shape`: r a record, c a committed one and its marker, a an aborted one."""

    def __init__(self, *shapes: str, nodes: tuple[int, ...] = (1,)) -> None:
        super().__init__([[] for _ in shapes], nodes=nodes)
        self.found = found(may_mark=True)
        for number, shape in enumerate(shapes):
            self.grow(shape, number)

    def grow(self, shape: str, partition: int = 0) -> None:
        """More is written at the source."""
        act: dict[str, Callable[[int, int], None]] = {
            "r": self.produce, "c": self.produce_committed, "a": self.produce_aborted
        }  # fmt: skip
        for one in shape:
            act[one](partition, 1)

    def until(self, partition: int = 0) -> int | None:
        """Until when markers may be sent, as the ledger says."""
        return markings(self.view(), LANE).get(place(partition))

    def run(self, name: str, **options: Any) -> SlotProgress:
        """A run of the lane."""
        return self.copy(self.begin(self.open(name)), **options)

    def start_with_late_markers(self, attempt: Attempt, target: Cluster) -> None:
        """Begin to copy over a connection of its own; its first request with markers stays in the network."""
        late = Fault(api="WriteTxnMarkers", held=True)
        self.target.faults.append(late)
        self.start(attempt, target=target)
        self.run_until(lambda: late.happened > 0)

    def same_up_to(self, partition: int = 0) -> int:
        """Up to where the target has the source's records at their offsets, and holes; fails if anything else is there.

        A hole is a marker of the lane.
        """
        there, here = self.target.log(TOPIC, partition).entries, self.source.log(TOPIC, partition)
        wanted = {offset for offset, _ in here.committed()}
        for offset, entry in enumerate(there):
            if entry.committed is None:
                assert int(row(entry.payload)[2] or b"") == offset, "a record has another offset than at the source"
                assert offset in wanted, "a record that readers of the source do not get"
            else:
                assert offset < here.end, "a marker after the source's end"
                assert offset not in wanted, "a record was passed"
        return len(there)


@contextmanager
def later(monkeypatch: pytest.MonkeyPatch, by_ms: int) -> Iterator[None]:
    """Wall clocks are that much later."""
    with monkeypatch.context() as patched:
        for module in (slot, markers):
            patched.setattr(module, "wall_ms", lambda: wall_ms() + by_ms)
        yield
