"""The file of stranded records is on the disk, its name too, before the ledger can say that the step is done."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.errors import BadInput
from ferry.features.switch.acts import stranded
from ferry.kafka.fetch.committed import ReadRecord
from ferry.model import Codec, TopicPartition
from ferry.wire.batch import batches
from tests.golden import Golden
from tests.pure.wire.hostile import packed, raw_batch, record
from tests.pure.wire.readers import read_as_committed

PLACE = TopicPartition(topic="orders", partition=0)
WRITTEN = 3


@pytest.fixture(autouse=True)
def records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that has a record at every offset; nobody fetches it."""

    async def read(
        _: object, __: TopicPartition, start: int, end: int, take: Callable[[ReadRecord], None], ___: object
    ) -> None:
        for offset in range(start, end):
            take(ReadRecord(offset=offset, timestamp_ms=1, key=None, value=b"v", headers=()))

    monkeypatch.setattr(stranded, "read_committed", read)


def exported(path: Path, count: int = WRITTEN) -> tuple[list[dict[str, Any]], str]:
    connections: Any = SimpleNamespace(target=None)
    return asyncio.run(stranded.write_stranded(connections, {PLACE: [(0, count)]}, path, {PLACE: count}))


def test_the_file_is_synced_before_its_name_and_its_name_before_the_step_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "stranded.jsonl", []
    sync = os.fsync

    def seen(descriptor: int) -> None:
        sync(descriptor)
        what = Path(f"/proc/self/fd/{descriptor}").readlink()
        lines = what.read_bytes().count(b"\n") if what.is_file() else None
        synced.append((what.suffix, lines, path.exists()))

    monkeypatch.setattr(os, "fsync", seen)
    rows, _ = exported(path)
    assert synced == [(".part", WRITTEN, False), (tmp_path.suffix, None, True)]
    assert (rows[0]["records"], path.read_bytes().count(b"\n")) == (WRITTEN, WRITTEN)


def test_a_disk_that_does_not_take_it_is_told_and_the_file_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    path = tmp_path / "stranded.jsonl"

    def full(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput) as wrong:
        exported(path)
    golden(wrong.value)
    assert not path.exists()


def test_nothing_left_leaves_no_file(tmp_path: Path) -> None:
    assert exported(tmp_path / "stranded.jsonl", 0) == ([], "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_cannot_be_opened_is_in_the_file_as_bytes_and_blocks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A header name that is not text, a damaged batch, a bomb: the file has all of them."""
    bomb = packed(Codec.ZSTD, record(0, b"k", bytes(80 << 20)), base=3)
    good = packed(Codec.SNAPPY, record(0, b"k", b"v", [(b"\xff", b"1"), (b"name", None)]), base=1)
    (damaged,) = batches(raw_batch(b"\x1f\x8b\x08", codec=Codec.GZIP, base=2))
    flipped = bytearray(packed(Codec.SNAPPY, record(0, b"k", b"v"), base=4).data)
    flipped[-1] ^= 1
    (rotten,) = batches(bytes(flipped))
    records, unopened = read_as_committed([good, damaged, bomb, rotten])
    assert [one.offset for one in unopened] == [2, 3, 4]

    async def read(*arguments: Any) -> None:
        *_, take, keep = arguments
        for one in records:
            take(one)
        for batch in unopened[:2]:
            keep(batch)

    monkeypatch.setattr(stranded, "read_committed", read)
    path = tmp_path / "stranded.jsonl"
    connections: Any = SimpleNamespace(target=None)
    rows, _ = asyncio.run(stranded.write_stranded(connections, {PLACE: [(1, 2), (2, 4)]}, path, {PLACE: 4}))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["headers"] == [{"name_base64": "/w==", "value": "1"}, {"name": "name", "value": None}]
    found = [line for line in lines if "batch_base64" in line]
    assert [base64.b64decode(line["batch_base64"]) for line in found] == [bytes(damaged.data), bytes(bomb.data)]
    assert [(line["offset"], line["end"], bool(line["why"])) for line in found] == [(2, 3, True), (3, 4, True)]
    (row,) = rows
    assert (row["start"], row["end"], row["records"], row["unopened"]) == (1, 4, 2, 2)


def test_a_file_that_is_there_is_replaced_by_nothing_but_its_own_content(tmp_path: Path) -> None:
    """The path is read from the ledger, where others may have written that this step has begun."""
    path, victim = tmp_path / "stranded.jsonl", tmp_path / "authorized_keys"
    exported(path)
    first = path.read_bytes()
    exported(path)  # an attempt that was killed before the ledger had its step
    assert path.read_bytes() == first
    victim.write_text("ssh-ed25519 mine")
    with pytest.raises(BadInput):
        exported(victim)
    link = tmp_path / "link"
    link.symlink_to(victim)
    with pytest.raises(BadInput):
        exported(link)
    assert victim.read_text() == "ssh-ed25519 mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["authorized_keys", "link", "stranded.jsonl"]


def test_drafts_have_names_that_cannot_be_known_and_follow_no_link(tmp_path: Path) -> None:
    """A link that waits at a name that could be guessed leads nowhere, and what is written is the owner's alone."""
    path, victim = tmp_path / "stranded.jsonl", tmp_path / "victim"
    victim.write_text("mine")
    for what in ("part", "probe"):
        (tmp_path / f".stranded.jsonl.{what}").symlink_to(victim)
    before = os.umask(0)
    try:
        exported(path)
    finally:
        os.umask(before)
    assert (victim.read_text(), path.stat().st_mode & 0o777) == ("mine", 0o600)
