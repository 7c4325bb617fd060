"""The kind of an error in JSON is a documented word, also of errors that are classes of other modules."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator

import pytest

import ferry
from ferry.errors import KINDS, Corrupt, EmptyFilter, FerryError, Refused, Retryable, kind_of
from ferry.kafka.fetch.broker_fetcher import NotServed
from tests.program import SCHEMAS

WORDS = json.loads((SCHEMAS / "error.json").read_text())["properties"]["error"]["properties"]["kind"]["enum"]


def subclasses(base: type[FerryError]) -> Iterator[type[FerryError]]:
    for one in base.__subclasses__():
        yield one
        yield from subclasses(one)


def test_every_error_of_every_module_has_a_documented_kind() -> None:
    for found in pkgutil.walk_packages(ferry.__path__, "ferry."):
        if ".spark" not in found.name:
            importlib.import_module(found.name)
    assert {kind_of(one("why")) for one in set(subclasses(FerryError)) if one.__init__ is FerryError.__init__} <= set(
        WORDS
    )


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (NotServed([], "x"), "retryable"),
        (EmptyFilter("x"), "refused"),
        (Refused("x"), "refused"),
        (Retryable("x"), "retryable"),
        (Corrupt("x"), "corrupt"),
        (FerryError("x"), "failed"),
    ],
)
def test_an_error_has_the_kind_of_its_base(error: FerryError, word: str) -> None:
    assert kind_of(error) == word


def test_the_words_are_of_the_errors_and_of_what_the_machine_does() -> None:
    assert set(WORDS) == {*KINDS.values(), "failed", "machine", "interrupted"}
