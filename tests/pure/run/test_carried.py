"""What a rebuild keeps beside the export is read back as it was, and not for another export."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.errors import BadInput
from ferry.features.archive.acts.carried import CarriedFile
from ferry.features.archive.rules.export import ExportHead
from ferry.ledger.codec import encode, pause_record
from ferry.model import Pause, Record
from tests.golden import Golden

HEAD = ExportHead(flow="a->b", topic="ferry-ledger.a.internal", cluster_id="C1", at_ms=7)


def test_what_was_kept_is_read_back_and_removed(tmp_path: Path, golden: Golden) -> None:
    kept = CarriedFile(tmp_path / "ledger.parquet", HEAD)
    assert kept.read() == []
    pause = pause_record(Pause(topic="", who="änn", why="it is lost", since_ms=1))
    records = [pause, Record(key=encode(["pause", "orders"]), value=None)]
    kept.write(records)
    assert kept.path == tmp_path / "ledger.parquet.carried"
    assert kept.read() == records
    assert [file.name for file in tmp_path.iterdir()] == [kept.path.name], "no draft is left"
    with pytest.raises(BadInput) as wrong:
        CarriedFile(tmp_path / "ledger.parquet", replace(HEAD, at_ms=8)).read()
    golden(wrong.value, "another export")
    kept.path.write_bytes(kept.path.read_bytes().rsplit(b"\n", 2)[0] + b"\n")
    with pytest.raises(BadInput) as wrong:
        kept.read()
    golden(wrong.value, "cut off")
    kept.remove()
    kept.remove()
    assert kept.read() == []


def test_a_folder_that_cannot_be_written_to_is_said_before_anything_is_deleted(tmp_path: Path) -> None:
    kept = CarriedFile(tmp_path / "gone" / "ledger.jsonl", HEAD)
    with pytest.raises(BadInput, match=kept.path.name):
        kept.write([])
