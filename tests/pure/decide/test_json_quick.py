"""Quick edits of JSON are the plain ones, byte for byte, whatever the value is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferry.config.text.json_path import Path, parse_path
from ferry.features.records.rules.json_edit import (
    Edit,
    NotJson,
    edited,
    is_object,
    tree_of,
)
from ferry.features.records.rules.json_quick import editor
from tests.pure.decide.json_texts import CASTS, EDITS, OF_STRING, PATHS, outcome, texts


def plain(paths: list[Path], edit: Edit, *, wanted: bool) -> Callable[[bytes], bytes]:
    def change(value: bytes) -> bytes:
        if wanted and not is_object(value):
            raise NotJson("it is not a JSON object")
        return edited(value, tree_of(paths), edit)

    return change


@given(value=texts().map(str.encode) | st.binary(max_size=12), paths=PATHS, name=st.sampled_from([*EDITS, *CASTS]))
@example(value=b'{"a":{"b":1},"a":{}}', paths=[("a", "b")], name="redact")
@example(value=b'{"c":"a","d":{"a":1}}', paths=[("a",)], name="redact")
@example(value=b'{"x":":","y":1}', paths=[(":",)], name="redact")
@example(value=b'{"a":1,"b":"x"}', paths=[("b",), ("a",)], name="name")
@example(value=b'{ "a":1 , "b":2 , "c":3 }', paths=[("b",), ("a",)], name="remove")
@example(value=b'{"a":{"b":1}}', paths=[("a",), ("a", "b")], name="hash")
def test_they_are_the_same(value: bytes, paths: list[Path], name: str) -> None:
    edit = (EDITS | CASTS)[name]
    for wanted in (False, True):
        expected = outcome(plain(paths, edit, wanted=wanted), value)
        for of_string in {None, OF_STRING.get(name)}:
            quick = editor(paths, edit, is_object_wanted=wanted, of_string=of_string)
            assert outcome(quick, value) == expected


@pytest.mark.parametrize("name", EDITS)
def test_usual_values_are_not_read_by_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    value = '{"id": 1, "card": {"number": "4111", "state": null}, "ü": [1, 2], "mail": "a@b"}'.encode()
    paths = [parse_path("$.card.number"), parse_path("$.mail"), parse_path("$.nowhere")]
    wanted = edited(value, tree_of(paths), EDITS[name])
    monkeypatch.setattr("ferry.features.records.rules.json_quick.edited", None)
    assert wanted != value
    assert editor(paths, EDITS[name])(value) == wanted
