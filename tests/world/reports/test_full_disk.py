"""A disk that fills up at any moment leaves whole reports alone, and the next ones are written when there is room."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ferry.errors import Refused
from ferry.features.evidence.acts.folder import ReportFolder, check_folder
from ferry.features.evidence.acts.signing import SigningKey, public_keys
from ferry.features.evidence.acts.store import LocalStore, store_of
from ferry.files import is_full
from tests.disks import SmallDisk, small_disk
from tests.pure.reports.values import EVIDENCE
from tests.world.reports.test_folder import config, made

FILES = {"json", "json.sig", "html", "html.sig"}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as found:
        yield found


def test_a_report_is_there_whole_and_signed_or_not_at_all_however_little_room_there_is(
    disk: SmallDisk, tmp_path: Path
) -> None:
    private, public = made(tmp_path, "ed25519")
    settings = config(disk.folder, private)
    folder = ReportFolder(store_of(str(disk.folder)), SigningKey.of(settings.key()))
    room, failed, unlisted, wrong = 1, 0, 0, set[str]()
    while True:
        disk.fill(but=room)
        folder.prepare()
        try:
            written = folder.write(replace(EVIDENCE, id=f"drill-{room}"))
        except OSError as error:
            if not is_full(error):
                raise
            failed, room = failed + 1, room + 1
            wrong |= disk.names
            continue
        assert written.number == 1
        assert {name.partition(".")[2] for name in disk.names if name.startswith("report-")} == FILES
        if "index.json" in disk.names:
            break
        unlisted, room = unlisted + 1, room + 1
        for name in disk.names:
            (disk.folder / name).unlink()
    assert failed > 2
    assert not wrong, "something is left of a report that had no room"
    assert unlisted, "the list of reports is not the report"
    disk.free()
    folder.write(EVIDENCE)
    found = check_folder(store_of(str(disk.folder)), public_keys([public]))
    assert [(one.kept.number, one.signed, one.problem) for one in found] == [(1, True, ""), (2, True, "")]


class NoRoomForList(LocalStore):
    """Takes reports, and nothing else."""

    def replace(self, name: str, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


def test_a_list_that_had_no_room_is_written_with_the_next_report(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert ReportFolder(NoRoomForList(tmp_path), None).write(EVIDENCE).number == 1
    (said,) = caplog.records
    assert "index.json" in said.getMessage()
    assert str(tmp_path) in said.getMessage()
    ReportFolder(LocalStore(tmp_path), None).write(replace(EVIDENCE, id="later"))
    assert [row["number"] for row in json.loads((tmp_path / "index.json").read_bytes())["reports"]] == [2, 1]


def test_a_full_disk_is_refused_before_anything_begins(disk: SmallDisk) -> None:
    disk.fill()
    with pytest.raises(Refused, match=f"{disk.folder} .*{os.strerror(errno.ENOSPC)}"):
        ReportFolder(store_of(str(disk.folder)), None).prepare()
    assert disk.names == set()
