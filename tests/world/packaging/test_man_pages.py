"""The manual pages of the wheel: groff and mandoc, where one is installed, find no fault in them."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

CHECKS = {
    "groff": ["groff", "-man", "-ww", "-z", "-T", "utf8"],
    "mandoc": ["mandoc", "-T", "lint", "-W", "warning"],
}
DATELESS = 'WARNING: missing date, using "": TH'
"""A page has the version, and no date: the same source makes the same wheel."""


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


@pytest.mark.parametrize("program", CHECKS)
def test_a_formatter_finds_no_fault(folder: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    done = subprocess.run(
        [*CHECKS[program], *sorted(path.name for path in folder.iterdir())],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if not line.endswith(DATELESS)]
    assert said == []
