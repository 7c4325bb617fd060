"""Property files that are kept (corpus/README.md) mean today what they meant, and Ferry says the same of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ferry.config.keys.key import CONNECTION
from ferry.config.keys.own import FERRY_KEYS, TRANSFORM_KEYS
from tests.pure.config.kept_answers import (
    CORPUS,
    DEFAULTS,
    EXPLAINED,
    Json,
    defaults,
    explained,
    files,
    said_of,
    text_of,
)

FILES = files()


def kept(path: Path) -> Json:
    said: Json = json.loads(path.read_text("utf-8"))
    return said


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS).with_suffix("")))
def test_a_file_means_what_it_meant(path: Path) -> None:
    assert said_of(text_of(path)) == kept(path.with_suffix(".json"))


def test_a_flow_has_the_defaults_that_it_had() -> None:
    assert defaults() == kept(DEFAULTS)


def test_a_key_is_explained_as_it_was() -> None:
    assert explained() == kept(EXPLAINED)


def test_each_own_key_is_set_to_another_value_than_its_default() -> None:
    usual = {one.name: one.default for one in (*FERRY_KEYS, *TRANSFORM_KEYS)} | defaults()
    lines = (line for path in FILES for flow in kept(path.with_suffix(".json"))["flows"] for line in flow["settings"])
    written = (line.partition(" ")[2].partition(" = ") for line in lines)
    changed = {_general(name) for name, _, value in written if value != usual.get(_general(name))}
    assert {one.name for one in (*FERRY_KEYS, *TRANSFORM_KEYS)} <= changed
    assert any(f".{CONNECTION.name} = " in text_of(path) for path in FILES)


def _general(name: str) -> str:
    """The key of any transform, where it is of one."""
    return re.sub(r"^(ferry\.transform)\.[^.]+\.", r"\1.{name}.", name)
