"""The ledger's records as JSON, keys and values; any Kafka consumer can read them (docs/ledger.md).

Their kinds are in `ferry.ledger.kinds`. This module has what all records share, and the small ones. Runs, receipts,
plans and others have modules of their own.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import SINGLE, by_partition, const, enum, or_minus_one, typed
from ferry.errors import BadInput
from ferry.ledger.kinds import KINDS
from ferry.model import Flow, Gap, Pause, Record, RefusalKind, Resolution, TopicPartition
from ferry.words import has_utf8

LEDGER_VERSION = 1
UNIT_VERSION = 2
"""The format of what the record path writes (unit_codec).

A Ferry that reads only format 1 would copy such topics again.
"""
IDENTICAL_VERSION = 3
"""The format of receipts and producer ids of identical offsets.

A Ferry that reads only formats 1 and 2 would continue such topics in transactions, whose markers move offsets.
"""
SEAL = "seal"
Json = dict[str, Any]
REMEDY = (
    "read it with `ferry ledger export`; take WRITE on the ledger away from others (kafka-acls.sh --list shows them); "
    "then delete the ledger topic and write it again from an export that lacks it (`ferry ledger rebuild`)"
)
"""What to do about a record that Ferry did not write."""

_TEXT, _WHOLE = rb'"[ !#-\[\]-~]*"', rb"(?:0|[1-9]\d{0,17})"
_USUAL = re.compile(
    rb"\[(?:%b)\]"
    % b"|".join(
        b",".join([b'"%b"' % kind, *[_TEXT] * texts, *[_WHOLE] * numbers])
        for kind, texts, numbers in ((b"receipt", 2, 2), (b"last", 2, 1), (b"unit", 3, 2), (b"map", 2, 3))
    )
)
"""The most frequent keys, made of plain texts and numbers."""
_LEAST, _MOST = -(2**63), 2**63 - 1


SOURCE = (F("topic", "source.topic"), F("partition", "source.partition"))
TARGET = (F("target_topic", "target.topic"), F("target_partition", "target.partition"))
"""The fields of a source partition and of a target partition in a form."""


def head(kind: str, version: Callable[[Any], int] = lambda _: LEDGER_VERSION) -> tuple[F, F]:
    """Return the first fields of a record: its format and its kind.

    They are only written: the key shows how to read it.
    """
    return (
        F("v", version, typed(int), says="format of the ledger"),
        F("kind", lambda _: kind, const(kind)),
    )


def encode(value: object) -> bytes:
    """Encode for the ledger, as `compact` does. Raises BadInput for a text that no reader takes (`is_unicode`)."""
    data = compact(value)
    if b"\\ud" in data and not is_unicode(value):
        wrong = next(text for text in _texts(value) if not has_utf8(text))
        raise BadInput(
            f"the ledger takes no text that UTF-8 cannot write, such as {wrong!r}: correct it where it is given, which "
            "is an option, a parameter of Airflow, or a name on this machine"
        )
    return data


def compact(value: object) -> bytes:
    """Encode as compact JSON with a stable key order, so that equal facts give equal bytes."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _texts(value: object) -> Iterator[str]:
    """Yield each text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)


def decode_key(key: bytes) -> list[Any]:
    """Return the parts of a ledger key; an empty list when it is not one of Ferry's.

    Records of others mean nothing here.
    """
    parts = key_parts(key)
    return parts if _is_key(parts, key) else []


def is_key(key: bytes) -> bool:
    """Return whether a key is one of Ferry's, without decoding the most frequent ones."""
    return _USUAL.fullmatch(key) is not None or _is_decoded_key(key)


@functools.lru_cache(maxsize=4096)  # a ledger is read again and again
def _is_decoded_key(key: bytes) -> bool:
    return bool(decode_key(key))


def key_parts(key: bytes) -> list[Any]:
    """Return the parts of a key of any ledger; none when it is not a JSON array."""
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return []
    return parts if isinstance(parts, list) else []


def _is_key(parts: list[Any], key: bytes) -> bool:
    """Return whether the parts of a key are of the kinds that Ferry writes."""
    kind = KINDS.get(parts[0]) if parts and isinstance(parts[0], str) else None
    if kind is None:
        return True  # of a newer Ferry, or of another ledger
    absent = len(kind.key) - len(parts[1:])
    if absent > 0 and absent not in kind.optional:
        return False
    for part, of in zip(parts[1:], kind.key.values(), strict=False):
        if not isinstance(part, of) or (isinstance(part, int) and not _LEAST <= part <= _MOST):
            return False
    return b"\\ud" not in key or is_unicode(parts)


def is_unicode(value: object) -> bool:
    """Return whether the texts in a JSON value can be written as UTF-8: JSON can name half a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def decode_value(value: bytes, where: str) -> Json:
    """Return a ledger value as a JSON object. Raises BadInput when a newer Ferry or another program wrote it."""
    try:
        body = json.loads(value)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("v", 0), int):
        raise BadInput(f"{where} is not a JSON object of Ferry's: {REMEDY}")
    if b"\\ud" in value and not is_unicode(body):
        raise BadInput(f"{where} has a text that is not Unicode: {REMEDY}")
    if body.get("v", 0) > IDENTICAL_VERSION:
        raise BadInput(
            f"{where} was written in ledger format {body['v']}, this Ferry reads up to {IDENTICAL_VERSION}: "
            "upgrade Ferry on this machine"
        )
    return body


def claim_record(topic: str, flow: Flow, lane: str) -> Record:
    """Make a lane's claim on a target topic; the first unreleased claim in the ledger wins."""
    body = {"v": LEDGER_VERSION, "kind": "claim", "flow": str(flow), "lane": lane, "topic": topic}
    return Record(key=encode(["claim", topic, lane]), value=encode(body))


def share_record(topic: str, flow: Flow) -> Record:
    """Make a flow's consent to write a target topic together with other flows."""
    body = {"v": LEDGER_VERSION, "kind": "share", "flow": str(flow), "topic": topic}
    return Record(key=encode(["share", topic]), value=encode(body))


def released_claim(topic: str, lane: str) -> Record:
    """Make the tombstone of a claim under which nothing was written."""
    return Record(key=encode(["claim", topic, lane]), value=None)


def accounted_records(
    lane: str, offsets: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None
) -> list[Record]:
    """Make the records of how far target partitions were searched for other producers' records.

    `ids` are the ids of the topics, where they are known.
    """
    by_topic: dict[str, dict[int, int]] = {}
    for place, offset in offsets.items():
        by_topic.setdefault(place.topic, {})[place.partition] = offset
    found = (Accounted(topic, parts, (ids or {}).get(topic, "")) for topic, parts in sorted(by_topic.items()))
    return [Record(key=encode(["accounted", lane, one.topic]), value=encode(ACCOUNTED.dump(one))) for one in found]


@dataclass(frozen=True, slots=True)
class Accounted:
    """Up to which offset each partition of a target topic was searched; an empty `topic_id` is not known."""

    topic: str
    offsets: Mapping[int, int]
    topic_id: str


ACCOUNTED = Form(
    Accounted, *head("accounted"), F("topic"), F("offsets", kind=by_partition(SINGLE)), F("topic_id", default="")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedCopy:
    """A copy that was deleted after its source, by which run, and up to where each partition was copied."""

    topic: str
    target_topic: str
    source_topic_id: str
    target_topic_id: str
    ends: Mapping[int, int]
    run: str
    at_ms: int


DELETED = Form(
    DeletedCopy,
    *head("deleted"),
    F("topic"),
    F("target_topic"),
    F("source_topic_id"),
    F("target_topic_id"),
    F("ends", kind=by_partition(SINGLE)),
    F("run"),
    F("at_ms"),
)


def deleted_record(lane: str, found: DeletedCopy) -> Record:
    """Make the record of a copy that was deleted after its source; its receipts become tombstones."""
    return Record(key=encode(["deleted", lane, found.target_topic]), value=encode(DELETED.dump(found)))


def gap_record(lane: str, gap: Gap) -> Record:
    """Make the record of a place that a lane skips, or goes back from, on purpose."""
    key: list[object] = ["gap", lane, gap.source.topic, gap.source.partition, gap.start]
    if gap.why is not RefusalKind.RETENTION_PASSED or gap.since >= 0:
        key += [gap.since, gap.why.value]
    return Record(key=encode(key), value=encode({"v": LEDGER_VERSION, "kind": "gap", **gap_json(gap)}))


GAP = Form(
    Gap,
    *SOURCE,
    F("start", says="skip: first source offset in it; restart: where the lane stood"),
    F("end", says="skip: first source offset that is not in it; restart: where the lane continues"),
    F(
        "why",
        kind=enum(RefusalKind, more=True),
        says="the word of the refusal that was lifted, as retention-passed, or stuck (ferry skip); more may come",
    ),
    F("run"),
    F("at_ms"),
    # Some records of kept ledgers lack the rest.
    F("how", kind=enum(Resolution), default=Resolution.SKIP),
    F("who", default="", says="user@host, or the key of the policy; empty: the record lacks it"),
    F("reason", default=""),
    F(
        "generation",
        default=-1,
        least=-1,
        says="of the run; receipts of runs before it do not hold from void_from on; -1: a dry run, or the record "
        "lacks it",
    ),
    F(
        "since",
        default=-1,
        least=-1,
        says="the run, by its generation, that had gone back on the partition before; -1: none",
    ),
    F("void_from", kind=or_minus_one(), default=None, says="source offset; -1: all receipts hold"),
    F("topic_id", default=""),
    F(
        "stranded",
        default=False,
        omit=lambda gap: not gap.stranded,
        says="true: a switch left out its records, which were never copied to the target",
    ),
)

gap_json = GAP.dump
"""Return a gap as the documented JSON object."""

parse_gap = GAP.load
"""Return the gap of a JSON object that `gap_json` made."""


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
"""Return the pause of a record that `pause_record` made."""


def pause_record(pause: Pause) -> Record:
    """Make the record of a pause of a topic or (topic empty) of the whole flow."""
    return Record(key=encode(["pause", pause.topic]), value=encode(PAUSE.dump(pause)))


def lifted_record(pause: Pause, who: str, now_ms: int) -> Record:
    """End a pause, and keep who paused and who ended it. An earlier Ferry reads that its time is over."""
    return pause_record(replace(pause, until_ms=now_ms, lifted_by=who, lifted_ms=now_ms))


def resume_record(topic: str) -> Record:
    """End a pause of Ferry's own. When an operator ends a pause, `lifted_record` keeps who did it."""
    return Record(key=encode(["pause", topic]), value=None)
