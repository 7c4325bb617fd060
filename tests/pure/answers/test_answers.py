"""Commands answer what they answered, and write what they wrote (kept/README.md): all fields, in their order."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ferry.cli.lazy import Group, Rows
from ferry.commands import COMMANDS
from tests.program import SCHEMAS, closed
from tests.pure.answers.stories import KEPT, STORIES, answers

FILES = sorted(path for path in KEPT.glob("*/*") if path.suffix in {".json", ".jsonl"})

LONG = {"copying", "drilling", "failing", "migrating", "museum", "switching", "unsynced"}
"""Stories of several seconds: `make quick` leaves them out."""


def marks(story: str) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.slow,) if story in LONG else ()


EACH_FILE = [pytest.param(path, id=str(path.relative_to(KEPT)), marks=marks(path.parent.name)) for path in FILES]


@functools.cache
def today(story: str) -> Mapping[str, str]:
    return answers(story)


@functools.cache
def validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(closed(json.loads((SCHEMAS / f"{schema}.json").read_text())))


@functools.cache
def kept() -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in FILES if path.suffix == ".json"]


@pytest.mark.parametrize("path", EACH_FILE)
def test_what_is_said_and_written_is_what_it_was(path: Path) -> None:
    assert today(path.parent.name)[path.name] == path.read_text("utf-8")


@pytest.mark.parametrize("story", [pytest.param(story, marks=marks(story)) for story in STORIES])
def test_all_of_a_story_is_kept(story: str) -> None:
    assert {path.name for path in FILES if path.parent.name == story} == today(story).keys()


def test_each_answer_satisfies_its_schema() -> None:
    for one in kept():
        validator(one["schema"]).validate(one["answer"])


def test_each_schema_has_an_answer() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} - {one["schema"] for one in kept()} == set()


def commands(
    rows: Rows = COMMANDS, before: tuple[str, ...] = (), first: str | None = None
) -> Iterator[tuple[str, ...]]:
    """The words of each; of a group's first command its name may be left out."""
    for name, row in rows.items():
        words = before if name == first else (*before, name)
        if isinstance(row, Group):
            yield from commands(row.rows, words, row.first)
        else:
            yield words


def test_each_command_is_asked() -> None:
    asked = {tuple(one["asked"].split()[1:]) for one in kept()}
    assert [words for words in commands() if not any(one[: len(words)] == words for one in asked)] == []
