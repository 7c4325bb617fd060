"""The manual pages and documents of the wheel: they are in it, and groff finds no fault in the pages."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.commands import installed
from tests.program import warm_ferry


@pytest.fixture(scope="module")
def folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip would put them: share/man/man1 of the environment."""
    place = tmp_path_factory.mktemp("pages")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".data/data/share/man/man1/" in name]
        for name in names:
            (place / Path(name).name).write_bytes(archive.read(name))
    return place


def test_the_wheel_has_them(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"ferry.1", "ferry-run.1", "ferry-config.1", "ferry-airflow.1"} <= names


def test_the_wheel_has_the_documents_that_explain_names(wheel: Path) -> None:
    answer = warm_ferry("explain", "--json")
    assert answer.code == 0, answer.err
    named = set(re.findall(r"\bdocs/[\w/-]+\.md", json.dumps(json.loads(answer.out))))
    assert {"docs/troubleshooting.md", "docs/runbooks/lag.md"} <= named
    with zipfile.ZipFile(wheel) as archive:
        there = {name.partition(".data/data/share/doc/ferry/")[2] for name in archive.namelist()}
    assert named <= there


@pytest.mark.extra
def test_groff_finds_no_fault(folder: Path) -> None:
    """In test-all, because groff is a package of the system, which `make` does not install."""
    done = subprocess.run(
        [
            installed("groff", "groff-base"),
            "-man",
            "-ww",
            "-z",
            "-T",
            "utf8",
            *sorted(path.name for path in folder.iterdir()),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
