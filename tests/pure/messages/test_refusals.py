"""The catalogue of refusals: what each code is used for, with which facts, and that it comes back from the ledger."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ferry
from ferry.ledger.run_codec import REFUSAL
from ferry.messages.catalogue import ENTRIES, sentence
from ferry.messages.refusals import refused, what_of
from ferry.model import Refusal, RefusalKind
from tests.golden import Golden

SOURCE = Path(ferry.__file__).parent
MAKERS = {"refused": 0, "sentence": 0, "drop": 0, "trouble": 0}
"""Functions that take a code, and its place among their arguments."""
OWN = {"topic", "partition", "source"}
"""Facts that each refusal has."""


def calls() -> Iterator[tuple[Path, ast.Call, set[str]]]:
    """The calls in Ferry that make a sentence, with the codes that they may have."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            name = getattr(getattr(node, "func", None), "id", "")
            if isinstance(node, ast.Call) and name in MAKERS and len(node.args) > MAKERS[name]:
                parts = [one.value for one in ast.walk(node.args[MAKERS[name]]) if isinstance(one, ast.Constant)]
                yield file, node, {one for one in parts if isinstance(one, str) and one in ENTRIES}


def written_codes() -> set[str]:
    """All texts in Ferry's source, outside of the catalogue, that are codes."""
    return {
        node.value
        for file in SOURCE.rglob("*.py")
        if file.parent != SOURCE / "messages"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in ENTRIES
    }


def test_each_code_is_used() -> None:
    assert set(ENTRIES) == written_codes()


def test_each_call_gives_the_facts_that_its_sentence_has_places_for() -> None:
    checked, more = 0, {"kind", "passing", *OWN}
    for file, call, codes in calls():
        given = {one.arg for one in call.keywords}
        if None in given:  # a dictionary: what it lacks is an error where it is called
            continue
        for code in codes:
            assert given - more == ENTRIES[code].facts - OWN, (file, call.lineno, code)
            checked += 1
    assert checked > 60


@pytest.mark.parametrize("code", sorted(ENTRIES))
def test_each_sentence_says_what_is_the_matter_and_comes_back_from_json(code: str, golden: Golden) -> None:
    entry = ENTRIES[code]
    numbers = {"read_ms": 1_790_000_000_000, "usable": 5_200_000_000, "total": 100_000_000_000, "wanted": 70_000}
    facts = {name: numbers.get(name, f"<{name}>") for name in entry.facts - OWN}
    kind = None if entry.kind else RefusalKind.NO_LEADER
    refusal = refused(code, "orders", 3, kind=kind, **facts)
    assert refusal.message == sentence(code, topic="orders", partition=3, source="orders-3", **facts)
    assert refusal.message.startswith(what_of(refusal))
    back = REFUSAL.load(REFUSAL.dump(refusal))
    assert (back, back.code, back.facts) == (refusal, code, refusal.facts)
    golden(refusal.message)


def test_what_an_earlier_ferry_recorded_is_read_and_written_as_it_was() -> None:
    body = {"topic": "orders", "partition": None, "kind": "topic-gone", "message": "it is gone: look for it"}
    refusal = REFUSAL.load(body)
    assert refusal == Refusal(
        topic="orders", partition=None, kind=RefusalKind.TOPIC_GONE, message=body["message"] or ""
    )
    assert (refusal.code, what_of(refusal)) == ("", "it is gone")
    assert REFUSAL.dump(refusal) == body


def test_a_code_that_is_used_for_several_kinds_asks_for_one() -> None:
    with pytest.raises(ValueError, match="several kinds"):
        refused("said", "orders", why="no")
    with pytest.raises(KeyError):
        refused("source.hidden", "orders")
