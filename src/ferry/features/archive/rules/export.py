"""A ledger as lines of a file: a head, each committed record with its offset, and an end with their number and digest.

```
{"v":1,"kind":"export","flow":"primary->backup","topic":"ferry-ledger.primary.internal","cluster_id":"…","at_ms":…}
{"offset":38,"key":["pause","audit"],"value":{…}}
{"kind":"end","upto":4712,"records":1,"digest":"…"}
```

Key and value are JSON if they are compact JSON as Ferry writes it, else `key_text` and `value_text` (a plan's parts are
lines). A tombstone's value is null. `digest` is the SHA-256 of all lines before. Markers and records of aborted
transactions are left out. All records from the first undecided one, at `upto`, are left out as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ferry.errors import BadInput
from ferry.ledger.codec import LEDGER_VERSION, compact, is_unicode
from ferry.ledger.reading import is_whole_number
from ferry.model import Record

EXPORT = "export"
END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportHead:
    """The flow and ledger of an export, and when it was read."""

    flow: str
    topic: str
    cluster_id: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A record and its ledger offset."""

    offset: int
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEnd:
    """The last line: the ledger offset up to which the export goes, and the digest of all lines before."""

    upto: int
    digest: str


def head_line(head: ExportHead) -> bytes:
    """Return the first line."""
    body = {"flow": head.flow, "topic": head.topic, "cluster_id": head.cluster_id, "at_ms": head.at_ms}
    return compact({"v": LEDGER_VERSION, "kind": EXPORT, **body})


def record_line(one: Exported) -> bytes:
    """Return the line of a record."""
    body = {"offset": one.offset, **_part("key", one.record.key), **_part("value", one.record.value)}
    return compact(body)


def _part(name: str, data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {name: None}
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if body is not None and compact(body) == data:
        return {name: body}
    return {f"{name}_text": data.decode(errors="surrogateescape")}


def _data(row: dict[str, Any], name: str) -> bytes | None:
    text = row.get(f"{name}_text")
    if text is not None:
        return str(text).encode(errors="surrogateescape")
    return None if row[name] is None else compact(row[name])


@dataclass(slots=True)
class Digest:
    """Counts and digests lines for the end line."""

    records: int = -1  # the head does not count
    _sha: Any = None

    def add(self, line: bytes) -> bytes:
        """Add a line, and return it."""
        self._sha = self._sha or hashlib.sha256()
        self._sha.update(line + b"\n")
        self.records += 1
        return line

    def end_line(self, upto: int) -> bytes:
        """Return the last line."""
        return compact({"kind": END, "upto": upto, "records": self.records, "digest": self._sha.hexdigest()})


def parse_head(line: bytes, where: str) -> ExportHead:
    """Parse the line that `head_line` makes. Raises BadInput if the file is not an export, or is of a newer Ferry."""
    body = _body(line)
    if body.get("kind") != EXPORT:
        raise BadInput(f"{where} is not an export of a ledger: give a file that `ferry ledger export` has written")
    if isinstance(body.get("v"), int) and body["v"] > LEDGER_VERSION:
        raise BadInput(f"{where} has ledger format {body['v']}, this Ferry reads up to {LEDGER_VERSION}: upgrade Ferry")
    texts, at_ms = [body.get(name) for name in ("flow", "topic", "cluster_id")], body.get("at_ms")
    if not isinstance(body.get("v"), int) or not isinstance(at_ms, int):
        raise _changed(where, 1)
    flow, topic, cluster_id = (text if isinstance(text, str) and is_unicode(text) else None for text in texts)
    if flow is None or topic is None or cluster_id is None:
        raise _changed(where, 1)
    return ExportHead(flow=flow, topic=topic, cluster_id=cluster_id, at_ms=at_ms)


def _changed(where: str, line: int) -> BadInput:
    return BadInput(f"{where} was changed: line {line} is none of an export of a ledger; export again")


def _body(line: bytes) -> dict[str, Any]:
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else {}


def parse_records(lines: Iterable[bytes], where: str) -> Iterator[Exported | ExportEnd]:
    """Yield the records after the head, ascending, and last the end. Raises BadInput if lines are missing or changed.

    `lines` begin with the head. Do nothing with the records before the end has come.
    """
    digest, ended, at = Digest(), False, -1
    for line in lines:
        body = _body(line)
        if digest.records < 0:
            digest.add(line)
        elif body.get("kind") == END:
            upto = body.get("upto")
            if not isinstance(upto, int) or not is_whole_number(upto):
                raise _changed(where, digest.records + 2)
            if digest.end_line(upto) != compact(body):
                raise BadInput(f"{where} was changed: its lines do not have the digest of its end; export again")
            ended = True
            yield ExportEnd(upto=upto, digest=str(body["digest"]))
        elif ended or not isinstance(body.get("offset"), int) or body["offset"] <= at:
            raise BadInput(f"{where} was changed: line {digest.records + 2} is not a record after offset {at}")
        else:
            digest.add(line)
            at = body["offset"]
            try:
                record = Record(key=_data(body, "key") or b"", value=_data(body, "value"))
            except (KeyError, ValueError):
                raise _changed(where, digest.records + 1) from None
            yield Exported(offset=at, record=record)
    if not ended:
        raise BadInput(f"{where} is cut off at ledger offset {at}: the export was not written to its end")
