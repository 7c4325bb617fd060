"""The order of batches: a log's offsets only rise, and no checksum covers the base offset of a batch.

A jump forward is not proof of damage: compaction, now or earlier, removes whole batches (Kafka's `LogCleaner`). A base
offset that was read before is one: a broker appends only at its log's end. So is a base offset that puts records after
what can be read: a log ends where its last batch does. Brokers search for a batch by the same number. So they leave out
a batch whose number leads back if it would be their first; its offsets are counted as missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferry.model import TopicPartition
from ferry.wire.batch import DAMAGED, Batch


def disorder(found: Sequence[Batch], index: int, position: int, place: TopicPartition, *, begun: bool) -> str | None:
    """Return why the batch at `index` of an answer cannot have its offsets; None when it can.

    `position` is the source offset that is due. The first batch that is taken may begin before it; `begun` means that
    there was one. Of two batches that contradict each other it is not known which is damaged: neither is taken.
    """
    batch = found[index]
    after = found[index + 1] if index + 1 < len(found) else None
    if begun and batch.base_offset < position:
        why = f"says that it begins at offset {batch.base_offset}"
    elif batch.base_offset > position and after is not None and position <= after.base_offset < batch.next_offset:
        why = f"says that it has offsets up to {batch.next_offset - 1}, and the next one begins at {after.base_offset}"
    else:
        return None
    behind = next((later.base_offset for later in found[index + 1 :] if later.base_offset > position), None)
    to = "" if behind is None else f" (--to {behind}, if the header of a later batch is correct)"
    return f"the batch of {place} that is due at offset {position} {why}: {DAMAGED}{to}"


def beyond(batch: Batch, readable: int, place: TopicPartition) -> str:
    """Return why a batch that ends after the offsets that can be read cannot have its offsets.

    A broker reports the end that it had before it read, so `readable` must come from a later answer.
    """
    return (
        f"a batch of {place} says that it has offsets {batch.base_offset} to {batch.next_offset - 1}, and they can be "
        f"read up to {readable - 1} only: {DAMAGED} (--to {readable}, if nothing of it is wanted)"
    )
