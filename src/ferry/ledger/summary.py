"""A summary of the ledger inside the ledger: what a reader needs of everything before an offset (ADR 20).

Every record that it replaces stays where it is, so the summary itself decides nothing. A reader that cannot read it, or
an earlier Ferry, reads the whole ledger and gets the same result. It is written in parts, sealed with count and digest:
a summary that was not written to its end does not exist.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ferry.codec.form import F, Form
from ferry.errors import BadInput
from ferry.ledger.block_index import NO_LINKS, Block, BlockIndex, LedgerDigest, Links, grown, packed_blocks
from ferry.ledger.codec import LEDGER_VERSION, SEAL, SOURCE, TARGET, compact, decode_key, encode, head
from ferry.ledger.kinds import KINDS
from ferry.ledger.ledger import LedgerView, resume_at
from ferry.ledger.map_block import MapEntry, ReceiptChain, unpack
from ferry.ledger.plan_codec import PART_BYTES, is_idle_seal
from ferry.ledger.pruning import without_pruned
from ferry.ledger.reading import checked, read_as, reading, whole
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.run_codec import parse_run
from ferry.model import Fate, LedgerRecord, OpenedRun, Record

SUMMARY = "summary"
MAP = "map"

SUMMARISED_FROM = 20_000
"""Records after the last summary from which on a new one is written; or twice what the summary has, if that is more.

Reading this many takes a quarter of a second.
"""

_LEFT = frozenset(name for name, kind in KINDS.items() if not kind.in_summary)
"""Kinds that are not in summaries. Plans with nothing to do are in them: they are short.

They show a run which runs it may delete first.
"""

_BLOCKS_A_LINE = 10_000
_KEYS_A_LINE = 200


def rolled_up(view: LedgerView) -> LedgerView:
    """Return the same view in short: receipts that are finally decided become rows of offset maps.

    Raises BadInput on records of a newer format.
    """
    upto = resume_at(view)
    rows: dict[ReceiptChain, list[MapEntry]] = {}
    kept: dict[str, LedgerRecord] = {}
    left = dict(view.rolled.left)
    mapped = {block.at for links in view.rolled.chains.values() for block in links.blocks}
    deleted = {(key[1], key[2]): record.offset for key, record in view.of_kind("deleted")}
    for key, record in view.by_key.items():
        kind = _kind(key)
        if record.offset >= upto:
            kept[key] = record
        elif kind == "receipt" and record.value is not None:
            _, lane, topic, *_ = decode_key(record.key)
            if record.offset < deleted.get((lane, topic), -1):
                continue  # its tombstone is on the way
            receipt = read_as(record, parse_receipt)
            rows.setdefault(ReceiptChain.of(receipt), []).append(MapEntry.of(receipt, record.offset))
        elif kind == "plan" and _is_idle(view, record):
            kept[key] = record
        elif kind in _LEFT or (kind == MAP and record.offset not in mapped):
            left[key] = record.offset
        elif kind != MAP:
            kept[key] = record
    chains = dict(view.rolled.chains)
    for of, more in rows.items():
        chains[of] = grown(of, chains.get(of, NO_LINKS), more)
    chains = without_pruned(chains, view)
    return replace(view, by_key=kept, rolled=replace(view.rolled, upto=upto, chains=chains, left=left))


def _is_idle(view: LedgerView, part: LedgerRecord) -> bool:
    """Return whether a piece of a plan belongs to one that has nothing to do."""
    seal = view.by_key.get(encode([*decode_key(part.key)[:4], SEAL]).decode())
    return seal is not None and is_idle_seal(seal.value)


def _kind(key: str) -> str:
    """Return the kind in a key as it is written, without decoding all of it."""
    return key[2 : key.find('"', 2)] if key.startswith('["') else ""


def block_records(blocks: Sequence[tuple[ReceiptChain, Block]], generation: int) -> list[Record]:
    """Make the records of new blocks. Their keys are used once: a summary names a block by its ledger offset."""
    return [
        Record(
            key=encode([MAP, of.lane, of.target.topic, of.target.partition, generation, number]),
            value=encode(
                {
                    "v": LEDGER_VERSION,
                    "kind": MAP,
                    "topic": of.source.topic,
                    "partition": of.source.partition,
                    "start": block.start,
                    "end": block.end,
                    "rows": block.rows,
                    "data": b64encode(block.data).decode(),
                }
            ),
        )
        for number, (of, block) in enumerate(blocks)
    ]


def parse_block(record: LedgerRecord, of: ReceiptChain) -> list[MapEntry]:
    """Return the rows in a block's record. Raises BadInput when it is not one."""
    where = f"block of the offset map of {of.target} at ledger offset {record.offset}"
    if record.value is None or decode_key(record.key)[:1] != [MAP]:
        raise BadInput(f"{where} is not there: restore the ledger with `ferry ledger rebuild`")
    return read_as(record, lambda body: unpack(b64decode(body["data"]), of))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """What makes a summary exist: its parts are before the seal at `at`, from `first` on."""

    at: int
    generation: int
    parts: int
    digest: str
    first: int
    upto: int
    at_ms: int


_SEAL = Form(Seal, *head(SUMMARY), F("parts"), F("digest"), F("first"), F("upto"), F("at_ms"))


def summary_parts(view: LedgerView, generation: int, part_bytes: int = PART_BYTES) -> list[Record]:
    """Return the parts of a summary of a rolled up view whose blocks are written; to be sealed by `seal_record`."""
    parts: list[list[bytes]] = [[]]
    filled = 0
    for line in _lines(view):
        if filled + len(line) > part_bytes and parts[-1]:
            parts.append([])
            filled = 0
        parts[-1].append(line)
        filled += len(line) + 1
    return [
        Record(key=encode([SUMMARY, generation, index]), value=b"\n".join(part)) for index, part in enumerate(parts)
    ]


def seal_record(parts: Sequence[Record], view: LedgerView, generation: int, first: int, at_ms: int) -> Record:
    """Make the record that makes a summary exist; `first` is the ledger offset of its first part."""
    seal = Seal(
        at=-1,
        generation=generation,
        parts=len(parts),
        digest=_digest(part.value or b"" for part in parts),
        first=first,
        upto=view.rolled.upto,
        at_ms=at_ms,
    )
    return Record(key=encode([SUMMARY, generation, SEAL]), value=encode(_SEAL.dump(seal)))


def _lines(view: LedgerView) -> Iterator[bytes]:
    upto = view.rolled.upto
    for key, record in view.by_key.items():
        if record.offset < upto and record.value is not None:
            yield compact({"record": [record.offset, key, record.value.decode(errors="surrogateescape")]})
    left = sorted(view.rolled.left.items())
    for at in range(0, len(left), _KEYS_A_LINE):
        yield encode({"left": left[at : at + _KEYS_A_LINE]})
    for of, links in view.rolled.chains.items():
        head = CHAIN.dump(of)
        for at in range(0, len(links.blocks), _BLOCKS_A_LINE):
            directory = packed_blocks(links.blocks[at : at + _BLOCKS_A_LINE])
            yield encode({"chain": {**head, "blocks": b64encode(directory).decode()}})
        if links.rest:
            yield encode({"chain": {**head, "rest": b64encode(links.rest).decode()}})


def seals(records: Iterable[LedgerRecord]) -> list[Seal]:
    """Return the seals among records, the one that reaches furthest first.

    Raises BadInput when a newer Ferry wrote one.
    """
    found = []
    for record in records:
        key = decode_key(record.key)
        if record.fate is Fate.COMMITTED and record.value is not None and key[:1] == [SUMMARY] and key[2:] == [SEAL]:
            found.append(read_as(record, partial(_SEAL.load, at=record.offset, generation=key[1])))
    return sorted(found, key=lambda seal: (-seal.upto, seal.at))


def parse_summary(seal: Seal, records: Iterable[LedgerRecord]) -> LedgerView | None:
    """Return the view that a summary contains, to be continued from its `end`; None when a part is missing or changed.

    `records` are those from `seal.first` to the seal.
    """
    parts: dict[int, bytes] = {}
    for record in records:
        key = decode_key(record.key)
        if key[:2] == [SUMMARY, seal.generation] and record.value is not None and isinstance(key[2], int):
            parts[key[2]] = record.value
    if any(index not in parts for index in range(seal.parts)):
        return None
    values = [parts[index] for index in range(seal.parts)]
    if _digest(values) != seal.digest:
        return None
    with reading(f"summary at ledger offset {seal.at}"):
        return _summarised(seal, (json.loads(line) for value in values for line in value.split(b"\n") if line))


def _summarised(seal: Seal, rows: Iterable[Mapping[str, Any]]) -> LedgerView:
    by_key: dict[str, LedgerRecord] = {}
    left: dict[str, int] = {}
    chains: dict[ReceiptChain, Links] = {}
    for row in rows:
        if "record" in row:
            record = _record(*row["record"])
            if decode_key(record.key):
                by_key[row["record"][1]] = record
        elif "left" in row:
            left.update((key, whole(offset)) for key, offset in row["left"] if decode_key(key.encode()))
        elif "chain" in row:
            of = checked(CHAIN.load(row["chain"]))
            chains[of] = _with_line(chains.get(of, NO_LINKS), of, row["chain"], seal)
    return LedgerView(
        end=seal.upto,
        by_key=by_key,
        runs=tuple(_runs(by_key)),
        open=(),
        rolled=LedgerDigest(upto=seal.upto, summarised=seal.upto, chains=chains, left=left),
    )


def _record(offset: int, key: str, value: str) -> LedgerRecord:
    return LedgerRecord(
        offset=whole(offset),
        key=key.encode(),
        value=value.encode(errors="surrogateescape"),
        fate=Fate.COMMITTED,
        producer_id=-1,
    )


CHAIN = Form(
    ReceiptChain,
    F("lane"),
    *SOURCE,
    *TARGET,
    F("source_topic_id"),
    F("target_topic_id"),
    F("source_cluster_id"),
    F("since"),
    F("transform", default="", omit=lambda chain: not chain.transform),
)


def _with_line(links: Links, of: ReceiptChain, body: Mapping[str, Any], seal: Seal) -> Links:
    blocks = links.blocks
    if "blocks" in body:
        where = f"directory of {of.target} in the summary at ledger offset {seal.at}"
        begun = blocks if isinstance(blocks, BlockIndex) else BlockIndex((), where)
        blocks = begun.and_then(body["blocks"])
    return Links(blocks=blocks, rest=links.rest or b64decode(body.get("rest", "")))


def _runs(by_key: Mapping[str, LedgerRecord]) -> Iterator[OpenedRun]:
    """Yield the runs by generation. Those that were opened again under their names count once, as after compaction."""
    for key, record in sorted(by_key.items(), key=lambda entry: entry[1].offset):
        if _kind(key) == "run" and record.value is not None:
            yield OpenedRun(record=read_as(record, parse_run), generation=record.offset)


def is_due(view: LedgerView) -> bool:
    """Return whether the ledger has so many records after the last summary that a new one must be written."""
    upto = view.rolled.upto
    own = sum(record.offset < upto for record in view.by_key.values()) + len(view.rolled.chains)
    return view.end - view.rolled.summarised > max(SUMMARISED_FROM, 2 * own)


def superseded_records(view: LedgerView) -> list[Record]:
    """Return tombstones for all summaries in a rolled up view but the newest, once a new one is sealed.

    The newest stays for processes that are reading it. A block that no summary names may belong to a summary that is
    being written. It is deleted when its run is so old that the ledger has deleted the run.
    """
    runs = {run.generation for run in view.runs}
    left = {key: decode_key(key.encode()) for key in view.rolled.left}
    newest = max((parts[1] for parts in left.values() if parts[0] == SUMMARY), default=-1)
    return [
        Record(key=key.encode(), value=None)
        for key, parts in left.items()
        if (parts[0] == SUMMARY and parts[1] < newest) or (parts[0] == MAP and parts[4] not in runs)
    ]


def _digest(values: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n\n".join(values)).hexdigest()
