"""Hostile inputs for every reader of Ferry's: each ends as it is declared to, soon, and within its bound of memory."""

from __future__ import annotations

import json
import math
import random
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ferry.features.migrate.rules.connect_offsets import connector_offsets
from ferry.features.records.spark.decoding import Unclear, fields, header_lists, unpacked
from ferry.model import Codec, Compression, Fate, LedgerRecord
from ferry.wire.age import first_timestamp
from ferry.wire.batch import MAGIC, Batch, batches, check, marker_type
from ferry.wire.codecs import Malformed, Room, TooLong, compressed, decompressed
from ferry.wire.columns import columns
from ferry.wire.content import contents
from ferry.wire.headers import parse_headers
from ferry.wire.mirror_records import parse_checkpoint, parse_heartbeat, parse_offset_sync
from ferry.wire.records import open_batch, record_digests
from ferry.wire.transcode import Unsplittable, transcoded
from tests.pure.decide.test_hostile_ledger import DOCUMENTED, mutated, mutations, read_all
from tests.pure.decide.values import lying
from tests.pure.wire.captured import TOPICS, captured, old_sets
from tests.pure.wire.fuzz_texts import DECLARED as DECLARED_OF_TEXTS
from tests.pure.wire.fuzz_texts import cases
from tests.pure.wire.hostile import flipped, raw_batch, record
from tests.pure.wire.readers import read_as_committed

MOST = 16 << 20
"""Bytes that readers may decompress here."""
MOST_SECONDS = 1.0
DECLARED = (Malformed, TooLong, Unsplittable, Unclear, *DECLARED_OF_TEXTS)


@dataclass(slots=True)
class Account:
    """What the readers did: inputs by reader, how many ended as declared, and what must not be."""

    inputs: Counter[str] = field(default_factory=Counter)
    declared: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: dict[str, float] = field(default_factory=dict)

    def tried(self, name: str, read: Callable[[], object], shown: bytes) -> None:
        """Let a reader read; by the time that this process worked, because other work on the machine counts not."""
        begun = time.process_time()
        self.inputs[name] += 1
        try:
            read()
        except DECLARED:
            self.declared[name] += 1
        except Exception as error:  # that is what is looked for
            self.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]} for {shown[:200].hex()}")
        spent = time.process_time() - begun
        self.slowest[name] = max(self.slowest.get(name, 0), spent)
        if spent > MOST_SECONDS:
            self.wrong.append(f"{name}: {spent:.1f} s for {shown[:200].hex()}")


def fuzzed(seed: int, *, rounds: float = math.inf, seconds: float = math.inf) -> Account:
    """Feed all readers for so many rounds, or so long."""
    rng, account = random.Random(seed), Account()
    golden = [batch for topic in TOPICS for batch in captured(topic).batches]
    golden += [batch for old in old_sets() for batch in batches(old.data)]
    until = time.monotonic() + seconds
    with TemporaryDirectory() as folder:
        while rounds > 0 and time.monotonic() < until:
            rounds -= 1
            for _ in range(40):
                for batch in batches(_batch(rng, golden)):
                    _read_batch(account, batch, rng)
            for _ in range(20):
                _read_small(account, rng)
            for _ in range(10):
                for name, read, shown in cases(rng, Path(folder)):
                    account.tried(name, read, shown)
            _read_ledger(account, rng)
    return account


def megabytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _batch(rng: random.Random, golden: list[Batch]) -> bytes:
    """A golden batch with changed bytes, or one made up: its records changed, compressed again, its checksum right."""
    one = rng.choice(golden)
    if rng.random() < 0.25:
        return flipped(bytes(one.data), rng)
    codec = rng.choice(list(Codec))
    if rng.random() < 0.5 and one.magic == MAGIC:
        payload, count = bytes(decompressed(one.codec, one.payload, MOST)), one.record_count
    else:
        count = rng.randrange(5)
        made = (record(index, rng.randbytes(rng.randrange(9)), None, [(b"\xff", b"1")]) for index in range(count))
        payload = b"".join(made)
        if rng.random() < 0.02:  # a bomb
            payload += record(count, b"", bytes(rng.choice([1 << 20, 3 * MOST])))
            count += 1
    if rng.random() < 0.7:
        payload = flipped(payload, rng)
    data = bytes(compressed(Compression(codec=codec), payload))
    if rng.random() < 0.2:
        data = flipped(data, rng)
    return raw_batch(
        data,
        codec=codec if rng.random() < 0.95 else rng.randrange(8),
        count=rng.choice([count, count, count, 0, -1, 2**31 - 1, -(2**31), count + 1]),
        base=rng.choice([0, 5, -1, 2**62]),
        attributes=rng.choice([0, 0, 0, 0x08, 0x10, 0x20, 0x30, 0x40]),
        last_delta=rng.choice([None, None, -1, 2**31 - 1]),
    )


def _read_batch(account: Account, batch: Batch, rng: random.Random) -> None:
    data = bytes(batch.data)

    def tried(name: str, read: Callable[[], object]) -> None:
        account.tried(name, read, data)

    tried("check", lambda: check(batch, "t", 0))
    tried("contents", lambda: [parse_headers(one.headers) for one in contents(batch, MOST)])
    tried("columns", lambda: columns(batch, MOST))
    tried("ledger's", lambda: list(open_batch(batch)))
    tried("digests", lambda: list(record_digests(batch, MOST)))
    tried("committed", lambda: read_as_committed([batch]))
    tried("first timestamp", lambda: first_timestamp(batch.data))
    if batch.magic == MAGIC:
        tried("marker", lambda: marker_type(batch))
        tried("arrow", lambda: header_lists(fields([unpacked("t", 0, 0, batch, 0, 2**62, MOST)])))
    compression = rng.choice([None, Compression(codec=Codec.LZ4)])
    fresh = next(iter(batches(bytearray(data))))
    tried(
        "transcoded",
        lambda: transcoded([fresh], 0, place="t-0", compression=compression, limit=1 << 20, room=Room(MOST)),
    )


_CHECKPOINT = (b"\0\1g\0\1t\0\0\0\0", b"\0\0" + bytes(16) + b"\0\0")
_HEARTBEAT = (b"\0\1a\0\1b", b"\0\0" + bytes(8))
_SYNC = (b"\0\1t\0\0\0\0", bytes(16))


def _read_small(account: Account, rng: random.Random) -> None:
    """MirrorMaker 2's records, and the offsets of its connectors."""
    for name, parse, good in (
        ("checkpoint", parse_checkpoint, _CHECKPOINT),
        ("heartbeat", parse_heartbeat, _HEARTBEAT),
        ("offset sync", parse_offset_sync, _SYNC),
    ):
        key, value = (None if rng.random() < 0.02 else flipped(part, rng) for part in good)
        account.tried(name, partial(parse, key, value), (key or b"") + (value or b""))
    body = ["MirrorSourceConnector", {"cluster": "a", "topic": "t", "partition": 0}]
    key = json.dumps(mutated(body, rng)).encode()
    if rng.random() < 0.5:
        key = flipped(key, rng)
    value = json.dumps(mutated({"offset": 5}, rng)).encode()
    one = LedgerRecord(offset=0, key=key, value=value, fate=Fate.COMMITTED, producer_id=-1)
    account.tried(
        "connector offsets", lambda: connector_offsets([(0, one)], "MirrorSourceConnector", "a", "t"), key + value
    )


def _read_ledger(account: Account, rng: random.Random) -> None:
    records = lying(*(mutations(one, rng) if rng.random() < 0.1 else one for one in DOCUMENTED))
    account.tried("ledger of all kinds", lambda: read_all(records), b"".join(one.value or b"" for one in records)[:200])
