"""The ledger's records as JSON, keys and values; any Kafka consumer can read them (docs/ledger.md).

A key is a compact JSON array whose first element is the kind, so that compaction keeps the last record of each:

```
["run", lane, run]                        opens a run; its offset is the run's generation
["fenced", lane]                          the last run that fenced the lane's slots, and how many there were
["plan", lane, run, generation, part]     a piece of the plan; part "seal" makes it exist
["attempt", lane, run]                    the last execution of the run's copy step began (its offset is its number),
                                          or was called off
["receipt", lane, topic, partition, start]  one chunk of one target partition (history, for the offset map);
                                          a sixth part, `since`, where a run went back on the partition
["last", lane, topic, partition]          the same value again: a target partition's last receipt
["outcome", lane, run]                    what the run's tasks refused
["claim", topic, lane]                    a lane of this flow owns a target topic
["share", topic]                          this flow agrees to write a target topic together with other flows
["accounted", lane, topic]                how far a target topic was looked through for records of others
["deleted", lane, topic]                  a copy was deleted after its source; its receipts and claim are tombstones
["seen", lane, topic]                     when the lane last had all of a compacted source topic
["gap", lane, topic, partition, start]    source offsets that were passed over on purpose; two more parts, `since`
                                          and `why`, but where retention took them first
["map", lane, topic, partition, generation, number]  a block of an offset map (ferry.decide.ledger.summary)
["summary", generation, part]             a piece of a summary of the ledger; part "seal" makes it exist
["pause", topic]                          a pause; topic "" means the whole flow
```
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from ferry.errors import BadInput
from ferry.model import (
    Attempt,
    ChangeKind,
    Flow,
    Gap,
    Lifted,
    Origin,
    Pause,
    Plan,
    Receipt,
    Record,
    Refusal,
    RefusalKind,
    RunRecord,
    Segment,
    Slice,
    Throttled,
    TopicChange,
    TopicPartition,
    parse_topic_id,
)

LEDGER_VERSION = 1
SEAL = "seal"
Json = dict[str, Any]


def encode(value: object) -> bytes:
    """Compact JSON with a stable key order, so that equal facts give equal bytes."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def decode_key(key: bytes) -> list[Any]:
    """A ledger key as its parts; none when it is not one of Ferry's: a record of whoever else means nothing here."""
    try:
        parts = json.loads(key)
    except ValueError:
        return []
    return parts if isinstance(parts, list) else []


def decode_value(value: bytes, where: str) -> Json:
    """A ledger value; BadInput when a newer Ferry wrote it, or somebody else."""
    try:
        body = json.loads(value)
    except ValueError:
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("v", 0), int):
        raise BadInput(f"{where} is not a JSON object of Ferry's: somebody else wrote to the ledger; look at its ACLs")
    if body.get("v", 0) > LEDGER_VERSION:
        raise BadInput(
            f"{where} was written in ledger format {body['v']}, this Ferry reads up to {LEDGER_VERSION}: "
            "upgrade Ferry on this machine"
        )
    return body


def run_record(run: RunRecord) -> Record:
    """The record that opens a run."""
    body = {"v": LEDGER_VERSION, "kind": "run", **asdict(run), "flow": str(run.flow)}
    return Record(key=encode(["run", run.lane, run.run]), value=encode(body))


def fenced_record(lane: str, run: str, generation: int, slots: int) -> Record:
    """The slots that a run has fenced: what earlier writers left behind lies before this record.

    It also keeps the number of slots when the run records that named it are compacted away.
    """
    body = {"v": LEDGER_VERSION, "kind": "fenced", "run": run, "generation": generation, "slots": slots}
    return Record(key=encode(["fenced", lane]), value=encode(body))


def parse_run(body: Json) -> RunRecord:
    """Inverse of `run_record`."""
    return RunRecord(
        flow=Flow.parse(body["flow"]),
        lane=body["lane"],
        run=body["run"],
        slots=body["slots"],
        config_digest=body["config_digest"],
        started_ms=body["started_ms"],
        origin=Origin(**body["origin"]),
        # Absent in records of earlier Ferrys, which pass these two over in turn: no new version of the format.
        deployment=body.get("deployment", ""),
        took_over=body.get("took_over", ""),
    )


def attempt_record(lane: str, run: str, generation: int, started_ms: int, origin: Origin) -> Record:
    """The record that begins an execution of a run's copy step; its offset is the attempt's number."""
    return _attempt_record(lane, run, generation, started_ms, origin, ends=None)


def ended_record(lane: str, attempt: Attempt) -> Record:
    """The record that calls an attempt off."""
    return _attempt_record(
        lane, attempt.run, attempt.generation, attempt.started_ms, attempt.origin, ends=attempt.number
    )


def _attempt_record(
    lane: str, run: str, generation: int, started_ms: int, origin: Origin, *, ends: int | None
) -> Record:
    body = {
        "v": LEDGER_VERSION,
        "kind": "attempt",
        "generation": generation,
        "started_ms": started_ms,
        "origin": asdict(origin),
        "ends": ends,
    }
    return Record(key=encode(["attempt", lane, run]), value=encode(body))


def parse_attempt(run: str, offset: int, body: Json) -> Attempt:
    """Inverse of `attempt_record` and `ended_record`; the run's id is in the key, `offset` is where the record lies."""
    ends = body["ends"]
    return Attempt(
        run=run,
        generation=body["generation"],
        number=offset if ends is None else ends,
        started_ms=body["started_ms"],
        origin=Origin(**body["origin"]),
        ended=ends is not None,
    )


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
    """A receipt as the documented JSON object; `adopted` where there is something to say."""
    return {
        **({"adopted": receipt.adopted} if receipt.adopted else {}),
        "v": LEDGER_VERSION,
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
        "source_epoch": receipt.source_epoch,
        "source_topic_id": receipt.source_topic_id,
        "target_topic_id": receipt.target_topic_id,
        "source_cluster_id": receipt.source_cluster_id,
        "target_cluster_id": receipt.target_cluster_id,
        "since": receipt.since,
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
        since=body.get("since", -1),
        adopted=body.get("adopted", ""),
        origin=Origin(**body["origin"]),
        throttled=Throttled(**body.get("throttled_ms", {})),
    )


def refusal_json(refusal: Refusal) -> Json:
    """A refusal as the documented JSON object."""
    return {
        "topic": refusal.topic,
        "partition": refusal.partition,
        "kind": refusal.kind.value,
        "message": refusal.message,
    }


def parse_refusal(body: Json) -> Refusal:
    """Inverse of `refusal_json`."""
    return Refusal(
        topic=body["topic"], partition=body["partition"], kind=RefusalKind(body["kind"]), message=body["message"]
    )


def outcome_record(lane: str, run: str, refusals: Sequence[Refusal], time_over: Sequence[int]) -> Record:
    """What the tasks of a run refused, and the slots that ended because the run's time was over."""
    body = {
        "v": LEDGER_VERSION,
        "kind": "outcome",
        "refusals": [refusal_json(item) for item in refusals],
        "time_over": list(time_over),
    }
    return Record(key=encode(["outcome", lane, run]), value=encode(body))


def claim_record(topic: str, flow: Flow, lane: str) -> Record:
    """A lane's claim on a target topic; the first unreleased claim in the ledger wins."""
    body = {"v": LEDGER_VERSION, "kind": "claim", "flow": str(flow), "lane": lane, "topic": topic}
    return Record(key=encode(["claim", topic, lane]), value=encode(body))


def share_record(topic: str, flow: Flow) -> Record:
    """A flow's consent to write a target topic together with other flows."""
    body = {"v": LEDGER_VERSION, "kind": "share", "flow": str(flow), "topic": topic}
    return Record(key=encode(["share", topic]), value=encode(body))


def released_claim(topic: str, lane: str) -> Record:
    """Takes back a claim under which nothing was written."""
    return Record(key=encode(["claim", topic, lane]), value=None)


def accounted_records(
    lane: str, offsets: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None
) -> list[Record]:
    """Up to where the partitions of target topics were looked through; `ids` are the topics', where they are known."""
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for place, offset in sorted(offsets.items()):
        by_topic.setdefault(place.topic, []).append((place.partition, offset))
    return [
        Record(
            key=encode(["accounted", lane, topic]),
            value=encode(
                {
                    "v": LEDGER_VERSION,
                    "kind": "accounted",
                    "topic": topic,
                    "offsets": parts,
                    "topic_id": (ids or {}).get(topic, ""),
                }
            ),
        )
        for topic, parts in by_topic.items()
    ]


def gap_record(lane: str, gap: Gap) -> Record:
    """A place that a lane passes over, or goes back from, on purpose."""
    key: list[object] = ["gap", lane, gap.source.topic, gap.source.partition, gap.start]
    if gap.why is not RefusalKind.RETENTION_PASSED or gap.since >= 0:
        key += [gap.since, gap.why.value]
    return Record(key=encode(key), value=encode({"v": LEDGER_VERSION, "kind": "gap", **gap_json(gap)}))


def gap_json(gap: Gap) -> Json:
    """A gap as the documented JSON object."""
    return {
        "topic": gap.source.topic,
        "partition": gap.source.partition,
        "start": gap.start,
        "end": gap.end,
        "why": gap.why.value,
        "run": gap.run,
        "at_ms": gap.at_ms,
        "how": gap.how.value,
        "who": gap.who,
        "reason": gap.reason,
        "generation": gap.generation,
        "since": gap.since,
        "void_from": gap.void_from,
        "topic_id": gap.topic_id,
    }


def parse_gap(body: Json) -> Gap:
    """Inverse of `gap_json`."""
    return Gap(
        source=TopicPartition(topic=body["topic"], partition=body["partition"]),
        start=body["start"],
        end=body["end"],
        why=RefusalKind(body["why"]),
        run=body["run"],
        at_ms=body["at_ms"],
        # The rest is absent in records of earlier Ferrys, which pass it over in turn.
        how=Lifted(body.get("how", Lifted.SKIP)),
        who=body.get("who", ""),
        reason=body.get("reason", ""),
        generation=body.get("generation", -1),
        since=body.get("since", -1),
        void_from=body.get("void_from", -1),
        topic_id=body.get("topic_id", ""),
    )


def pause_record(pause: Pause) -> Record:
    """A pause of a topic or (topic empty) of the whole flow."""
    return Record(
        key=encode(["pause", pause.topic]), value=encode({"v": LEDGER_VERSION, "kind": "pause", **asdict(pause)})
    )


def resume_record(topic: str) -> Record:
    """Takes a pause back."""
    return Record(key=encode(["pause", topic]), value=None)


def parse_pause(body: Json) -> Pause:
    """Inverse of `pause_record`."""
    return Pause(
        topic=body["topic"], who=body["who"], why=body["why"], since_ms=body["since_ms"], until_ms=body["until_ms"]
    )


_SLICE_FIELDS = tuple(one.name for one in fields(Slice) if one.name not in ("source", "target"))


def slice_json(piece: Slice) -> Json:
    """A slice as the documented JSON object."""
    body = {name: getattr(piece, name) for name in _SLICE_FIELDS}  # `asdict` takes a second for 10,000
    for name in ("since", "target_end", "read_epoch", "read_end"):  # no earlier Ferry knows them
        if body[name] < 0:
            del body[name]
    if not piece.compacted:
        del body["compacted"]
    return {
        "topic": piece.source.topic,
        "partition": piece.source.partition,
        "target_topic": piece.target.topic,
        "target_partition": piece.target.partition,
        **body,
    }


def parse_slice(body: Json) -> Slice:
    """Inverse of `slice_json`."""
    rest = {
        name: value
        for name, value in body.items()
        if name not in {"topic", "partition", "target_topic", "target_partition", "source_topic_id", "target_topic_id"}
    }
    return Slice(
        source=TopicPartition(topic=body["topic"], partition=body["partition"]),
        target=TopicPartition(topic=body["target_topic"], partition=body["target_partition"]),
        source_topic_id=parse_topic_id(body["source_topic_id"]),
        target_topic_id=parse_topic_id(body["target_topic_id"]),
        **rest,
    )


def change_json(change: TopicChange) -> Json:
    """A topic change as the documented JSON object; `was` where there is something to say."""
    body = {**asdict(change), "kind": change.kind.value, "configs": dict(change.configs), "was": dict(change.was)}
    if not change.was:
        del body["was"]
    return body


def parse_change(body: Json) -> TopicChange:
    """Inverse of `change_json`."""
    return TopicChange(
        **{
            **body,
            "kind": ChangeKind(body["kind"]),
            "configs": tuple(sorted(body["configs"].items())),
            "was": tuple(sorted(body.get("was", {}).items())),
        }
    )


def plan_head_json(plan: Plan) -> Json:
    """Everything of a plan but its slices."""
    return {
        "v": plan.version,
        "kind": "plan",
        "flow": str(plan.flow),
        "lane": plan.lane,
        "run": plan.run,
        "generation": plan.generation,
        "slots": plan.slots,
        "changes": [change_json(change) for change in plan.changes],
        "drift": [change_json(change) for change in plan.drift],
        "refusals": [refusal_json(refusal) for refusal in plan.refusals],
        "notes": list(plan.notes),
        "gaps": [gap_json(gap) for gap in plan.gaps],
        "paused": list(plan.paused),
        "source_cluster_id": plan.source_cluster_id,
        "target_cluster_id": plan.target_cluster_id,
        "max_seconds": plan.max_seconds,
        "caught_up": plan.caught_up,
        **({"lifted": [kind.value for kind in plan.lifted]} if plan.lifted else {}),
    }
