"""Small disks that fill up and get room again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ferry.files import is_full
from tests.commands import installed

PAGE = os.sysconf("SC_PAGE_SIZE")
"""A file of a byte takes as much of a disk in memory."""
PAGES = 128
_FILLER = "filler"


@dataclass(frozen=True, kw_only=True)
class SmallDisk:
    """A folder with little room."""

    folder: Path

    def fill(self, *, but: int = 0) -> None:
        """Take all room that is left but for so many pages; others may write meanwhile."""
        self.free()
        room = os.statvfs(self.folder)
        with (self.folder / _FILLER).open("wb", buffering=0) as file:
            try:
                file.write(bytes((room.f_bavail - but) * room.f_frsize))
            except OSError as error:
                if not is_full(error):
                    raise

    def free(self) -> None:
        """Give all room back."""
        (self.folder / _FILLER).unlink(missing_ok=True)

    @property
    def names(self) -> set[str]:
        """The files that others have written."""
        return {one.name for one in self.folder.iterdir()} - {_FILLER}


@contextmanager
def small_disk(folder: Path, pages: int = PAGES) -> Iterator[SmallDisk]:
    """A disk in memory at this folder, as long as this lasts; the test fails where none can be mounted."""
    folder.mkdir()
    size = f"size={pages * PAGE}"
    done = subprocess.run(
        [installed("mount", "mount"), "-t", "tmpfs", "-o", size, "ferry-test", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"a small disk is mounted, which needs root: {done.stderr.strip()}")
    try:
        yield SmallDisk(folder=folder)
    finally:
        # Lazy: also where a test left a file open.
        subprocess.run(["umount", "--lazy", folder], check=True)
