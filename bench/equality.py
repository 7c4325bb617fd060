"""Whether a copy equals its source, read from the brokers' own log files: without a client or Ferry's engine."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path

from ferry.dev import RunningCluster

HEADER = struct.Struct(">qiibIhiqqqhii")
TRANSACTIONAL, CONTROL = 0x10, 0x20


def _data_batches(folder: Path) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Return of each data batch: attributes without the transactional bit, both times, count; and stored records."""
    for segment in sorted(folder.glob("*.log")):
        content = memoryview(segment.read_bytes())
        at = 0
        while at + HEADER.size <= len(content):
            _, length, _, _, _, attributes, delta, first, last, _, _, _, count = HEADER.unpack_from(content, at)
            if length <= 0:
                break
            if not attributes & CONTROL:
                facts = (attributes & ~TRANSACTIONAL, delta, first, last, count)
                yield facts, bytes(content[at + HEADER.size : at + 12 + length])
            at += 12 + length


def fingerprint(cluster: RunningCluster, topic: str) -> dict[str, tuple[str, int, int]]:
    """Return for each partition a digest over all data batches in order, their bytes with headers, and their count."""
    found = {}
    for folder in sorted(cluster.broker(1).data.glob(f"{topic}-*")):
        if folder.name.removeprefix(f"{topic}-").isdigit():
            digest, size, records = hashlib.blake2b(), 0, 0
            for facts, payload in _data_batches(folder):
                digest.update(repr(facts).encode())
                digest.update(payload)
                size += HEADER.size + len(payload)
                records += facts[-1]
            found[folder.name.removeprefix(f"{topic}-")] = digest.hexdigest(), size, records
    return found
