"""Receipts as records: one chunk of one target partition, under its own key and as the newest."""

from __future__ import annotations

from dataclasses import asdict

from ferry.ledger.codec import LEDGER_VERSION, UNIT_VERSION, Json, encode
from ferry.model import Ages, Flow, Origin, Receipt, Record, Segment, Throttled, TopicPartition, parse_topic_id


def receipt_records(receipt: Receipt) -> tuple[Record, Record]:
    """A receipt under its own key and again as the target partition's last one."""
    value = encode(receipt_json(receipt))
    target = receipt.target
    return (
        Record(key=receipt_key(receipt.lane, target, receipt.start, receipt.since), value=value),
        Record(key=encode(["last", receipt.lane, target.topic, target.partition]), value=value),
    )


def receipt_key(lane: str, target: TopicPartition, start: int, since: int) -> bytes:
    """The key of a receipt that begins at a source offset."""
    key: list[object] = ["receipt", lane, target.topic, target.partition, start]
    if since >= 0:  # the same source offset may have been copied before
        key.append(since)
    return encode(key)


def receipt_json(receipt: Receipt) -> Json:
    """A receipt as the documented JSON object; `adopted` and `transform` where there is something to say.

    One of transformed records has format 2: a Ferry that does not know them would go on with bytes.
    """
    return {
        **({"adopted": receipt.adopted} if receipt.adopted else {}),
        **(
            {
                "transform": receipt.transform,
                "transform_digest": receipt.transform_digest,
                "dead_letters": receipt.dead_letters,
            }
            if receipt.transform
            else {}
        ),
        "v": UNIT_VERSION if receipt.transform else LEDGER_VERSION,
        "kind": "receipt",
        "flow": str(receipt.flow),
        "lane": receipt.lane,
        "run": receipt.run,
        "generation": receipt.generation,
        "slot": receipt.slot,
        "topic": receipt.source.topic,
        "partition": receipt.source.partition,
        "target_topic": receipt.target.topic,
        "target_partition": receipt.target.partition,
        "start": receipt.start,
        "end": receipt.end,
        "target_next": receipt.target_next,
        "segments": [[part.source_start, part.target_start, part.count] for part in receipt.segments],
        "records": receipt.records,
        "bytes": receipt.bytes,
        "batches": receipt.batches,
        "digest": receipt.digest,
        "at_ms": receipt.at_ms,
        "transcoded": receipt.transcoded,
        "aborted_batches": receipt.aborted_batches,
        "control_batches": receipt.control_batches,
        "missing": receipt.missing,
        "max_timestamp_ms": receipt.max_timestamp_ms,
        "min_timestamp_ms": receipt.min_timestamp_ms,
        "mean_timestamp_ms": receipt.mean_timestamp_ms,
        "record_age_ms": ages_row(receipt.ages),
        "source_epoch": receipt.source_epoch,
        "source_topic_id": receipt.source_topic_id,
        "target_topic_id": receipt.target_topic_id,
        "source_cluster_id": receipt.source_cluster_id,
        "target_cluster_id": receipt.target_cluster_id,
        "since": receipt.since,
        "target_epoch": receipt.target_epoch,
        "origin": asdict(receipt.origin),
        "throttled_ms": asdict(receipt.throttled),
    }


def parse_receipt(body: Json) -> Receipt:
    """Inverse of `receipt_json`."""
    return Receipt(
        flow=Flow.parse(body["flow"]),
        lane=body["lane"],
        run=body["run"],
        generation=body["generation"],
        slot=body["slot"],
        source=TopicPartition(topic=body["topic"], partition=body["partition"]),
        target=TopicPartition(topic=body["target_topic"], partition=body["target_partition"]),
        start=body["start"],
        end=body["end"],
        target_next=body["target_next"],
        segments=tuple(Segment(source_start=s, target_start=t, count=n) for s, t, n in body["segments"]),
        records=body["records"],
        bytes=body["bytes"],
        batches=body["batches"],
        digest=body["digest"],
        at_ms=body["at_ms"],
        transcoded=body["transcoded"],
        aborted_batches=body["aborted_batches"],
        control_batches=body["control_batches"],
        max_timestamp_ms=body["max_timestamp_ms"],
        source_epoch=body["source_epoch"],
        source_topic_id=parse_topic_id(body["source_topic_id"]),
        target_topic_id=parse_topic_id(body["target_topic_id"]),
        source_cluster_id=body["source_cluster_id"],
        # These are absent in records of earlier Ferrys, which pass them over in turn.
        target_cluster_id=body.get("target_cluster_id", ""),
        missing=body.get("missing"),
        min_timestamp_ms=body.get("min_timestamp_ms", -1),
        mean_timestamp_ms=body.get("mean_timestamp_ms", -1),
        ages=parse_ages(body.get("record_age_ms")),
        since=body.get("since", -1),
        target_epoch=body.get("target_epoch", -1),
        adopted=body.get("adopted", ""),
        transform=body.get("transform", ""),
        transform_digest=body.get("transform_digest", ""),
        dead_letters=body.get("dead_letters", 0),
        origin=Origin(**body["origin"]),
        throttled=Throttled(**body.get("throttled_ms", {})),
    )


def ages_row(ages: Ages | None) -> list[int] | None:
    """The least, the mean, the most, and of how many."""
    return None if ages is None else [ages.min, ages.mean, ages.max, ages.records]


def parse_ages(row: list[int] | None) -> Ages | None:
    """Inverse of `ages_row`; None also in records of earlier Ferrys."""
    if row is None:
        return None
    youngest, mean, oldest, records = row
    return Ages(min=youngest, mean=mean, max=oldest, records=records)
