"""What of a function enters the digest of its transform: the text of its module, wherever that is imported from."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.config.flow.transforms import TransformSpec
from ferry.config.text.filters import PatternList
from ferry.errors import BadInput
from ferry.run.records.transform_digest import transform_digest

NAME = "ferry_test_company"
TEXT = "def small(records):\n    return records.where('length(value) < {}')\n"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module is imported anew in each test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]
    sys.path_importer_cache.clear()


def digest_of(place: Path, function: str) -> str:
    """As whoever has this place on the path first sees it."""
    forget()
    sys.path.insert(0, str(place))
    try:
        return transform_digest(TransformSpec(name="t", topics=PatternList(items=("x",)), function=function))
    finally:
        sys.path.remove(str(place))


def folder(root: Path, limit: int) -> Path:
    package = root / f"folder-{limit}" / NAME
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "flows.py").write_text(TEXT.format(limit))
    return package.parent


def zipped(root: Path, limit: int) -> Path:
    file = root / f"{limit}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{NAME}/__init__.py", "")
        archive.writestr(f"{NAME}/flows.py", TEXT.format(limit))
    return file


def test_a_change_of_the_function_is_seen_in_a_folder_and_in_a_zip(tmp_path: Path) -> None:
    function = f"{NAME}.flows:small"
    found = [digest_of(make(tmp_path, limit), function) for make in (folder, zipped) for limit in (1, 2)]
    assert found[:2] == found[2:], "the same text is the same transform, wherever a driver has it from"
    assert found[0] != found[1]


def test_a_function_without_a_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"ferry.transform.t.function: the text of builtins:print cannot be read"):
        digest_of(tmp_path, "builtins:print")
