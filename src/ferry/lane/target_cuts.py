"""Where target logs were cut since a lane wrote to them, by their leader epochs (KIP-101)."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epoch_check import Mark
from ferry.kafka.produce.kept import cut_since
from ferry.model import Receipt, TopicPartition


async def target_cuts(target: Cluster, lasts: Iterable[Receipt]) -> dict[TopicPartition, int]:
    """Return where target logs were cut, by target partition of these last receipts.

    From that offset on the log has other records than were written, or none. `target` must have the metadata of its
    topics. Left out are those about which leader epochs show nothing: receipts without them, copies that were
    created again, and leaders that do not answer. A copy task asks such leaders again before it writes.
    """
    written: dict[TopicPartition, Mark] = {}
    for last in lasts:
        info = target.topics.get(last.target.topic)
        if info is None or (last.target_topic_id and info.id_text not in ("", last.target_topic_id)):
            continue
        if last.target_next is not None:
            written[last.target] = Mark.of(last.target_epoch, last.target_next)
    return {place: cut.at for place, cut in (await cut_since(target, written.items())).found.items()}
