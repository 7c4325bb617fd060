"""What of a function enters the digest of its transform: texts of its modules, wherever they are imported from."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.config.flow.transforms import TransformSpec
from ferry.config.text.filters import PatternList
from ferry.errors import BadInput
from ferry.plan.transform_digest import transform_digest
from tests.golden import Golden

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


def test_a_function_without_a_text_is_refused(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        digest_of(tmp_path, "builtins:print")
    golden(wrong.value)


CALLER = "from {} import masks\n\ndef small(records):\n    return masks.applied(records)\n"
WRAPPED = "from functools import partial\nfrom .masks import applied\n\nsmall = partial(applied)\n"
WITHIN = "def small(records):\n    import {}.masks as masks\n    return masks.applied(records)\n"


@pytest.mark.parametrize("text", [CALLER.format("."), CALLER.format(NAME), WITHIN.format(NAME), WRAPPED])
@pytest.mark.parametrize("place", ["masks.py", "__init__.py", "deep/rules.py"])
def test_a_change_of_what_the_function_imports_of_its_own_package_is_seen(
    tmp_path: Path, text: str, place: str
) -> None:
    package = folder(tmp_path, 1) / NAME
    (package / "flows.py").write_text(text)
    (package / "masks.py").write_text("from .deep.rules import LIMIT\n\ndef applied(records):\n    return records\n")
    (package / "deep").mkdir()
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "rules.py").write_text("import json, pyspark\nLIMIT = 1\n")
    (package / "elsewhere.py").write_text("")
    function = f"{NAME}.flows:small"
    before = digest_of(package.parent, function)
    (package / "elsewhere.py").write_text("of no concern = 1\n")
    assert digest_of(package.parent, function) == before
    (package / place).write_text((package / place).read_text() + "CHANGED = True\n")
    assert digest_of(package.parent, function) != before


def test_modules_beside_the_functions_own_are_followed_and_those_of_others_are_not(tmp_path: Path) -> None:
    place, other = tmp_path / "flows", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    (place / f"{NAME}.py").write_text(
        f"import {NAME}_beside, {NAME}_other\n\ndef small(records):\n    return records\n"
    )
    (place / f"{NAME}_beside.py").write_text("")
    (other / f"{NAME}_other.py").write_text("")
    sys.path.append(str(other))

    def now() -> str:
        for name in (f"{NAME}_beside", f"{NAME}_other"):
            sys.modules.pop(name, None)
        return digest_of(place, f"{NAME}:small")

    before = now()
    (other / f"{NAME}_other.py").write_text("CHANGED = True\n")
    assert now() == before, "it is installed apart, as other people's packages are"
    (place / f"{NAME}_beside.py").write_text("CHANGED = True\n")
    assert now() != before
