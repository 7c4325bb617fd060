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
["unit", lane, run, topic, partition, n]  one chunk of one target partition of a transformed topic (unit_codec)
["era", lane, topic]                      by which rule records are dealt to a target topic (there, too)
["outcome", lane, run]                    what the run's tasks refused
["began", lane], ["start", lane, topic]   where the lane's first run began (ferry.plan.rules.starts)
["claim", topic, lane]                    a lane of this flow owns a target topic
["share", topic]                          this flow agrees to write a target topic together with other flows
["accounted", lane, topic]                how far a target topic was looked through for records of others
["deleted", lane, topic]                  a copy was deleted after its source; its receipts and claim are tombstones
["seen", lane, topic]                     when the lane last had all of a compacted source topic
["gap", lane, topic, partition, start]    source offsets that were passed over on purpose; two more parts, `since`
                                          and `why`, but where retention took them first
["adopted", lane, topic, partition, end]  what another replicator had copied and the lane took over (adoption_codec)
["acl", lane, ...], ["acls", lane]        an ACL that Ferry made; the last whole sync of them (acl_codec)
["mirror", lane]                          what was written last to MirrorMaker 2's topics (mirror_state)
["group", lane, group]                    what is meant to be written of a consumer group (features.groups, rules.codec)
["offsets", lane, snapshot, group]        what a group had on the target, and what was written over it (there, too)
["snapshot", lane, snapshot]              names a snapshot of groups (there, too)
["checkpoint", lane, run]                 what became of the groups in a run (ferry.ledger.checkpoint_codec)
["map", lane, topic, partition, generation, number]  a block of an offset map (ferry.ledger.summary)
["pruned", lane, topic, partition]         receipts that are given up (ferry.ledger.pruning)
["summary", generation, part]             a piece of a summary of the ledger; part "seal" makes it exist
["verified", lane, run]                    what came of a run that verified itself (verified_codec)
["window", lane, topic, window]           which offsets a window of a source topic is (ferry.ledger.window_codec)
["dropped", lane]                         who dropped a lane, when, and what it held
["rebuilt", upto]                         who wrote the ledger again from an export, up to this offset
["pause", topic]                          a pause; topic "" means the whole flow
["approval", run]                         what a person approved in Airflow (ferry.features.switch.rules.approvals)
["switch", id], ["switch", id, step]      a switchover, failover or failback (ferry.ledger.switch_codec)
```

Here are what all of them share, and the small ones; runs, receipts, plans and others have modules of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import const, enum, typed
from ferry.errors import BadInput
from ferry.model import Flow, Gap, Lifted, Pause, Record, RefusalKind, TopicPartition

LEDGER_VERSION = 1
UNIT_VERSION = 2
"""Of what the record path writes (unit_codec). A Ferry that reads 1 alone would copy such topics a second time."""
SEAL = "seal"
Json = dict[str, Any]
REMEDY = (
    "look at what it says with `ferry ledger export`, take WRITE on the ledger away from others (kafka-acls.sh --list "
    "shows them), then delete the ledger topic and write it again from an export that lacks it (`ferry ledger rebuild`)"
)
"""What to do about a record that Ferry did not write."""

_KEYS: dict[str, tuple[Any, ...]] = {
    "run": (str, str), "fenced": (str,), "plan": (str, str, int, (int, str)), "attempt": (str, str),
    "receipt": (str, str, int, int, int), "last": (str, str, int), "unit": (str, str, str, int, int),
    "era": (str, str), "outcome": (str, str), "began": (str,), "start": (str, str), "claim": (str, str),
    "share": (str,), "accounted": (str, str), "deleted": (str, str), "seen": (str, str),
    "gap": (str, str, int, int, int, str), "adopted": (str, str, int, int), "acl": (str,) * 8, "acls": (str,),
    "mirror": (str,), "group": (str, str), "offsets": (str, str, str), "snapshot": (str, str),
    "checkpoint": (str, str), "map": (str, str, int, int, int), "pruned": (str, str, int, int),
    "summary": (int, (int, str)), "verified": (str, str), "window": (str, str, str), "dropped": (str,),
    "rebuilt": (int,), "pause": (str,), "switch": (str, str, int),
    "approval": (str,),
}  # fmt: skip
"""What the parts of a key are, behind its kind."""
_REQUIRED = {"receipt": 4, "gap": 4, "pruned": 3, "switch": 1}
"""Of how many of them, where not all are there always."""
_TEXT, _WHOLE = rb'"[ !#-\[\]-~]*"', rb"(?:0|[1-9]\d{0,17})"
_USUAL = re.compile(
    rb"\[(?:%b)\]"
    % b"|".join(
        b",".join([b'"%b"' % kind, *[_TEXT] * texts, *[_WHOLE] * numbers])
        for kind, texts, numbers in ((b"receipt", 2, 2), (b"last", 2, 1), (b"unit", 3, 2), (b"map", 2, 3))
    )
)
"""Keys as there are most of, of plain texts and numbers."""
_LEAST, _MOST = -(2**63), 2**63 - 1


SOURCE = (F("topic", "source.topic"), F("partition", "source.partition"))
TARGET = (F("target_topic", "target.topic"), F("target_partition", "target.partition"))
"""A source and a target partition in a form."""


def head(kind: str, version: Callable[[Any], int] = lambda _: LEDGER_VERSION) -> tuple[F, F]:
    """The first fields of a record: its format and its kind. Only written: the key says how a record is read."""
    return (
        F("v", version, typed(int), says="format of the ledger"),
        F("kind", lambda _: kind, const(kind)),
    )


def encode(value: object) -> bytes:
    """Compact JSON with a stable key order, so that equal facts give equal bytes."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def decode_key(key: bytes) -> list[Any]:
    """A ledger key as its parts; none when it is not one of Ferry's: what others write means nothing here."""
    parts = key_parts(key)
    return parts if _is_key(parts, key) else []


def is_key(key: bytes) -> bool:
    """Whether a key is one of Ferry's; without reading those that there are most of."""
    return _USUAL.fullmatch(key) is not None or bool(decode_key(key))


def key_parts(key: bytes) -> list[Any]:
    """The parts of a key of whatever ledger; none when it is no JSON array."""
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return []
    return parts if isinstance(parts, list) else []


def _is_key(parts: list[Any], key: bytes) -> bool:
    """Whether the parts of a key are of the kinds that Ferry writes."""
    kinds = _KEYS.get(parts[0]) if parts and isinstance(parts[0], str) else None
    if kinds is None:
        return True  # of a newer Ferry, or of another ledger
    if len(parts) <= _REQUIRED.get(parts[0], len(kinds)):
        return False
    for part, kind in zip(parts[1:], kinds, strict=False):
        if not isinstance(part, kind) or (isinstance(part, int) and not _LEAST <= part <= _MOST):
            return False
    return b"\\ud" not in key or is_unicode(parts)


def is_unicode(value: object) -> bool:
    """Whether the texts in a JSON value can be written as UTF-8: JSON can name half a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def decode_value(value: bytes, where: str) -> Json:
    """A ledger value; BadInput when a newer Ferry wrote it, or somebody else."""
    try:
        body = json.loads(value)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("v", 0), int):
        raise BadInput(f"{where} is not a JSON object of Ferry's: {REMEDY}")
    if b"\\ud" in value and not is_unicode(body):
        raise BadInput(f"{where} has a text that is no Unicode: {REMEDY}")
    if body.get("v", 0) > UNIT_VERSION:
        raise BadInput(
            f"{where} was written in ledger format {body['v']}, this Ferry reads up to {UNIT_VERSION}: "
            "upgrade Ferry on this machine"
        )
    return body


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


GAP = Form(
    Gap,
    *SOURCE,
    F("start", says="skip: first source offset in it; restart: where the lane stood"),
    F("end", says="skip: first source offset that is not in it; restart: where the lane goes on"),
    F(
        "why",
        kind=enum(RefusalKind, more=True),
        says="the word of the refusal that was lifted, as retention-passed, or stuck (ferry skip); more may come",
    ),
    F("run"),
    F("at_ms"),
    # The rest is absent in records of earlier Ferrys, which pass it over in turn.
    F("how", kind=enum(Lifted), default=Lifted.SKIP),
    F("who", default="", says="user@host, or the key of the policy; empty: an earlier version wrote it"),
    F("reason", default=""),
    F(
        "generation",
        default=-1,
        least=-1,
        says="of the run; receipts of runs before it do not hold from void_from on; -1: a dry run, or an earlier "
        "version",
    ),
    F(
        "since",
        default=-1,
        least=-1,
        says="the run, by its generation, that had gone back on the partition before; -1: none",
    ),
    F("void_from", default=-1, least=-1, says="source offset; -1: all receipts hold"),
    F("topic_id", default=""),
)

gap_json = GAP.dump
"""A gap as the documented JSON object."""

parse_gap = GAP.load
"""Inverse of `gap_json`."""


PAUSE = Form(
    Pause,
    *head("pause"),
    F("topic"),
    F("who"),
    F("why"),
    F("since_ms"),
    F("until_ms"),
    F("lifted_by", default="", omit=lambda pause: not pause.lifted_by),
    F("lifted_ms", default=0, omit=lambda pause: not pause.lifted_ms),
)

parse_pause = PAUSE.load
"""Inverse of `pause_record`."""


def pause_record(pause: Pause) -> Record:
    """A pause of a topic or (topic empty) of the whole flow."""
    return Record(key=encode(["pause", pause.topic]), value=encode(PAUSE.dump(pause)))


def lifted_record(pause: Pause, who: str, now_ms: int) -> Record:
    """Takes a pause back, and keeps whose it was and who did that. An earlier Ferry reads that its time is over."""
    return pause_record(replace(pause, until_ms=now_ms, lifted_by=who, lifted_ms=now_ms))


def resume_record(topic: str) -> Record:
    """Takes back a pause of Ferry's own making; of one that a person lifts `lifted_record` keeps who it was."""
    return Record(key=encode(["pause", topic]), value=None)
