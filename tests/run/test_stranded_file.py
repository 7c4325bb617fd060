"""The file of stranded records is on the disk, its name too, before the ledger can say that the step is done."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.errors import BadInput
from ferry.model import TopicPartition
from ferry.net.fetch.committed import ReadRecord
from ferry.run.switch import stranded

PLACE = TopicPartition(topic="orders", partition=0)
WRITTEN = 3


@pytest.fixture(autouse=True)
def records(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that has a record at every offset; nobody fetches it."""

    async def read(_: object, __: TopicPartition, start: int, end: int, take: Callable[[ReadRecord], None]) -> None:
        for offset in range(start, end):
            take(ReadRecord(offset=offset, timestamp_ms=1, key=None, value=b"v", headers=()))

    monkeypatch.setattr(stranded, "read_committed", read)


def exported(path: Path, count: int = WRITTEN) -> tuple[list[dict[str, Any]], str]:
    connections: Any = SimpleNamespace(target=None)
    return asyncio.run(stranded._exported(connections, {PLACE: [(0, count)]}, path, {PLACE: count}))


def test_the_file_is_synced_before_its_name_and_its_name_before_the_step_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "stranded.jsonl", []
    sync = os.fsync

    def seen(descriptor: int) -> None:
        sync(descriptor)
        what = Path(f"/proc/self/fd/{descriptor}").readlink()
        lines = what.read_bytes().count(b"\n") if what.is_file() else None
        synced.append((what.name, lines, path.exists()))

    monkeypatch.setattr(os, "fsync", seen)
    rows, _ = exported(path)
    assert synced == [(".stranded.jsonl.part", WRITTEN, False), (tmp_path.name, None, True)]
    assert (rows[0]["records"], path.read_bytes().count(b"\n")) == (WRITTEN, WRITTEN)


def test_a_disk_that_does_not_take_it_is_told_and_the_file_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stranded.jsonl"

    def full(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match=r"stranded.jsonl cannot be written \(Input/output error\)"):
        exported(path)
    assert not path.exists()


def test_nothing_left_leaves_no_file(tmp_path: Path) -> None:
    assert exported(tmp_path / "stranded.jsonl", 0) == ([], "")
    assert list(tmp_path.iterdir()) == []
