"""The folder of metrics files, as a scrape reads it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ferry.errors import BadInput
from ferry.features.observe.acts.endpoint import ERROR, FolderCollector, serve


def scraped(folder: Path) -> dict[str, float]:
    return {family.name: family.samples[0].value for family in FolderCollector(folder).collect()}


@pytest.mark.parametrize("name", ["none", "file", "x" * 300])
def test_a_folder_that_cannot_be_read_is_an_error_of_the_scrape(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert scraped(tmp_path / name) == {ERROR: 1}
    with pytest.raises(BadInput):
        serve(tmp_path / name, "127.0.0.1", 0)


def test_a_folder_whose_names_may_not_be_listed_is_an_error_of_the_scrape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    assert scraped(tmp_path) == {ERROR: 0}
    monkeypatch.setattr(os, "listdir", refused)
    assert scraped(tmp_path) == {ERROR: 1}
