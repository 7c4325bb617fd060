"""The file that node_exporter reads."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from ferry.features.observe.acts.textfile import exposition, metrics_file, parse, update
from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.of_run import after_run
from tests.commands import promtool
from tests.disks import small_disk
from tests.golden import Golden
from tests.pure.decide.test_metrics import flow, report


def test_the_text_is_prometheuss_and_is_read_back(tmp_path: Path) -> None:
    found = flow(f"ferry.metrics.folder = {tmp_path}", "ferry.schedule = @daily")
    values = after_run({}, report(3, 2, refused=1), found)
    assert parse(exposition(values)) == values
    done = promtool("check", "metrics", text=exposition(values))
    assert done.returncode in (0, 3), done.stderr  # 3: it has advice
    assert "error" not in done.stderr


def test_a_file_is_replaced_whole_and_anybody_may_read_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = flow(f"ferry.metrics.folder = {tmp_path}")
    path = metrics_file(tmp_path, found)
    for generation in (1, 2):
        update(found, partial(after_run, report=report(generation, 1), flow=found))
    assert 'ferry_run_count_total{lane="live",source="a",target="b"} 2.0' in path.read_text()
    assert path.stat().st_mode & 0o444 == 0o444
    assert [one.name for one in tmp_path.iterdir()] == [path.name]

    path.write_text("ferry_run_count_total{")
    with caplog.at_level(logging.WARNING):
        update(found, lambda before: after_run(before, report(3, 1), found))
    assert "cannot be read" in caplog.text
    assert parse(path.read_text())[m.RUN_COUNT.name, m.labelled((), source="a", target="b", lane="live")] == 1


def test_a_folder_that_cannot_be_used_is_a_warning_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, golden: Golden
) -> None:
    found = flow(f"ferry.metrics.folder = {tmp_path / 'missing'}")
    with caplog.at_level(logging.WARNING):
        update(found, lambda before: after_run(before, report(1, 1), found))
    (said,) = caplog.records
    golden(said.getMessage())


def test_a_full_disk_keeps_the_file_that_is_there_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with small_disk(tmp_path / "disk") as disk:
        found = flow(f"ferry.metrics.folder = {disk.folder}")
        path = metrics_file(disk.folder, found)
        disk.fill()
        update(found, partial(after_run, report=report(1, 1), flow=found))
        assert disk.names == set()
        disk.free()
        update(found, partial(after_run, report=report(2, 1), flow=found))
        before = path.read_bytes()
        disk.fill()
        update(found, partial(after_run, report=report(3, 1), flow=found))
        assert (disk.names, path.read_bytes()) == ({path.name}, before)
        disk.free()
        update(found, partial(after_run, report=report(4, 1), flow=found))
        told = parse(path.read_text())
    assert told[m.RUN_COUNT.name, m.labelled((), source="a", target="b", lane="live")] == 2
    assert len(caplog.records) == 2
    assert all(f"{path} (No space " in one.getMessage() for one in caplog.records)
