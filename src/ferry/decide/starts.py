"""Where a lane began: recorded with its first plan, so that a changed configuration moves nothing afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.decide.facts import Facts
from ferry.decide.ledger import LedgerView
from ferry.decide.ledger_codec import LEDGER_VERSION, decode_value, encode
from ferry.model import Record, TopicPartition


def first_run(view: LedgerView, lane: str) -> bool:
    """Whether the lane never had a plan: only then does the configured start count."""
    return not any(key[1] == lane for key, _ in view.of_kind("began"))


def start_records(lane: str, facts: Facts) -> list[Record]:
    """To be written with the lane's first plan: the start of every partition that exists by then.

    A partition without an entry came later and is copied from its beginning.
    """
    records = [
        Record(
            key=encode(["start", lane, topic.name]),
            value=encode(
                {"v": LEDGER_VERSION, "offsets": [[number, part.start] for number, part in topic.partitions.items()]}
            ),
        )
        for topic in facts.sources.values()
        if any(part.start > part.log_start for part in topic.partitions.values())
    ]
    began = encode({"v": LEDGER_VERSION, "at_ms": facts.now_ms})
    return [*records, Record(key=encode(["began", lane]), value=began)]


def recorded_starts(view: LedgerView, lane: str) -> dict[TopicPartition, int]:
    """Start per source partition as the lane's first plan recorded it."""
    return dict(_recorded(view, lane))


def _recorded(view: LedgerView, lane: str) -> Iterable[tuple[TopicPartition, int]]:
    for key, record in view.of_kind("start"):
        if key[1] == lane and record.value is not None:
            body = decode_value(record.value, f"start record at offset {record.offset}")
            for number, offset in body["offsets"]:
                yield TopicPartition(topic=key[2], partition=number), offset
