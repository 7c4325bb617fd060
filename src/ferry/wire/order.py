"""The order of batches: a log's offsets only rise, and no checksum covers the base offset that a batch names.

A jump forward is no proof of damage: compaction, now or formerly, removes whole batches (Kafka's `LogCleaner`). A base
offset that was read before is one: a broker appends behind its log's end, and nowhere else. So is one by which records
lie behind what can be read: a log ends where its last batch does. Brokers look for a batch by the same number, so
one that leads back, and is the first that they would give, is left out by them; its offsets are counted as missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferry.model import TopicPartition
from ferry.wire.batch import DAMAGED, Batch


def disorder(found: Sequence[Batch], index: int, position: int, place: TopicPartition, *, begun: bool) -> str | None:
    """Why the batch at `index` of an answer cannot lie where it says; None when it can.

    `position` is the source offset that is due. The first batch that is taken may begin before it; `begun` says that
    there was one. Which of two batches that contradict each other is damaged is not known: neither is taken.
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
    to = "" if behind is None else f" (--to {behind}, if the header of a later batch is to be believed)"
    return f"the batch of {place} that is due at offset {position} {why}: {DAMAGED}{to}"


def beyond(batch: Batch, readable: int, place: TopicPartition) -> str:
    """Why a batch that ends behind the offsets that can be read cannot lie where it says.

    A broker tells the end that it had before it read: that of a later answer has to be `readable`.
    """
    return (
        f"a batch of {place} says that it has offsets {batch.base_offset} to {batch.next_offset - 1}, and they can be "
        f"read up to {readable - 1} only: {DAMAGED} (--to {readable}, if nothing of it is wanted)"
    )
