"""One attempt at a delivery of a frame: open it, settle what the batch is, let slots write, close it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from ferry.errors import FerryError, Refused
from ferry.features.records.acts.cluster import connected
from ferry.features.sink.acts.attempt import Attempt
from ferry.features.sink.acts.ids import DeliverySpec, SlotSpec
from ferry.features.sink.rules.batch_state import BatchState, other_content, written
from ferry.features.sink.rules.dealing import first_numbers, slot_of
from ferry.kafka.connect.cluster import Cluster
from ferry.model import TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, Settled, TargetShape, Written


@contextmanager
def delivering(spec: DeliverySpec, topics: Sequence[str], slots: int) -> Iterator[Delivering]:
    """Open an attempt with at most this many slots.

    Raises Superseded if a newer attempt began meanwhile. Raises BadInput for a topic that does not exist. Raises
    Refused for a batch or topic that cannot be written.
    """
    with connected(spec.alias, spec.connection, patience_s=spec.patience_s) as cluster:
        attempt = Attempt(cluster, spec)
        try:
            found: BatchState = cluster.loop.run(attempt.open, slots)
            shapes: dict[str, TargetShape] = cluster.loop.run(attempt.shapes, topics, found)
            yield Delivering(cluster, spec, attempt, found, shapes, slots)
        except FerryError:
            cluster.loop.run(attempt.leave)
            raise


class Delivering:
    """The state of a delivery after the fence, and the steps that are left."""

    def __init__(
        self,
        cluster: Cluster,
        spec: DeliverySpec,
        attempt: Attempt,
        found: BatchState,
        shapes: Mapping[str, TargetShape],
        slots: int,
    ) -> None:
        self._cluster = cluster
        self._spec = spec
        self._attempt = attempt
        self._found = found
        self._shapes = shapes
        self._settled = found.settled
        self.counts = {name: shape.partitions for name, shape in shapes.items()}
        """The number of partitions of each target topic."""
        self.slots = max(1, min(slots, sum(self.counts.values())))

    def settle(self, due: Mapping[TopicPartition, Due]) -> Written | None:
        """Record what the batch is, or compare it with the record.

        Return the answer if the batch is written whole already. Raises Refused if the frame has other records than that
        of an earlier attempt.
        """
        known = self._settled
        if known is not None:
            other = other_content(str(self._spec), known.due, due)
            if other is not None:
                raise Refused(other)
            if self._found.delivered is not None:
                spec = self._spec
                return written(spec.application, spec.batch, known, self._found.delivered, already=True)
            return None
        self._settled = Settled(topics=self._shapes, due=dict(due))
        self._cluster.loop.run(self._attempt.settle, self._settled)
        return None

    def slot_specs(self) -> dict[int, SlotSpec]:
        """Return what the slots write, for each slot that has something left."""
        due = {} if self._settled is None else self._settled.due
        receipts = self._found.receipts
        firsts = first_numbers(self.counts)
        places: dict[int, list[TopicPartition]] = {}
        for place in sorted(due):
            places.setdefault(slot_of(firsts, place, self.slots), []).append(place)
        return {
            slot: SlotSpec(
                delivery=self._spec,
                slot=slot,
                generation=self._attempt.generation,
                due={place: due[place] for place in mine},
                receipts={place: receipts[place] for place in mine if place in receipts},
                chunk_seconds=self._spec.chunk_seconds,
            )
            for slot, mine in places.items()
            if any(place not in receipts or receipts[place].done != due[place] for place in mine)
        }

    def close(self, receipts: Mapping[TopicPartition, DeliveryReceipt]) -> Written:
        """Record that the batch is written whole; `receipts` are those of the slots that wrote."""
        settled = self._settled
        if settled is None:
            raise Refused(f"{self._spec} was not settled (a bug): nothing of it was written")
        every = {**self._found.receipts, **receipts}
        lacking = [place for place, due in settled.due.items() if place not in every or every[place].done != due]
        if lacking:
            raise Refused(f"{self._spec} is not written whole, {min(lacking)} lacks records (a bug): try again")
        self._cluster.loop.run(self._attempt.close, settled, every, self._found)
        offsets = {place: (every[place].first, every[place].last) for place in settled.due}
        return written(self._spec.application, self._spec.batch, settled, offsets, already=False)
