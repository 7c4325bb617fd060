"""Edits of a column of JSON are those of each of its values, byte for byte, whatever the values are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferry.config.text.json_path import Path, parse_path
from ferry.features.records.rules.json_column import Column, column_editor, one_by_one
from ferry.features.records.rules.json_quick import editor
from tests.pure.decide.json_texts import EDITS, OF_STRING, PATHS, outcome, texts

VALUES = st.lists(st.tuples(texts().map(str.encode) | st.binary(max_size=12), st.booleans()), max_size=6)


def column_of(values: list[bytes]) -> Column:
    return Column(b"".join(values), np.cumsum([0, *map(len, values)]))


def rows_of(column: Column) -> list[bytes]:
    return [column.row(number) for number in range(len(column.edges) - 1)]


@given(rows=VALUES, paths=PATHS, name=st.sampled_from([name for name in EDITS if name != "remove"]))
@example(rows=[(b'{"x":"a', True), (b'":"1"}', True)], paths=[("a",)], name="redact")
@example(rows=[(b'{"c":"x"}', True), (b'{"a":"1"}', True), (b'{"}{":"1"}', True)], paths=[("}{",)], name="redact")
@example(rows=[(b'{"a":"1","c":"a","b":"2"}', True)], paths=[("a",)], name="redact")
@example(rows=[(b'{"a":"1"}', True), (b'{"\\u0061":"1"}', True)], paths=[("a",)], name="redact")
@example(rows=[(b'{"c":"x","a":"1\\"2","b":""}', True)], paths=[("a",)], name="redact")
@example(rows=[(b'{"c":"a","b":"1"}', True), (b'{"a":"x"}', False)], paths=[("a",), ("b",)], name="name")
@example(rows=[(b'\xef\xbb\xbf{"a":"1"}', True), (b"", True)], paths=[("a",)], name="redact")
@example(rows=[(b'{"a":{"b":"1"}}', True), (b'{"b":"1","a":""}', True)], paths=[("a", "b")], name="hash")
@example(rows=[(b'{"a":"1"', True), (b'{"a":"1"}', True), (b"{", True)], paths=[("a",)], name="replace")
@example(rows=[(b'{"a":"1","c":18446744073709551616}', True)], paths=[("a",)], name="redact")
def test_they_are_the_same(rows: list[tuple[bytes, bool]], paths: list[Path], name: str) -> None:
    values, wanted = [value for value, _ in rows], np.array([is_wanted for _, is_wanted in rows], np.bool_)
    for is_object_wanted in (False, True):
        for of_string in {None, OF_STRING.get(name)}:
            one = editor(paths, EDITS[name], is_object_wanted=is_object_wanted, of_string=of_string)
            column_change = column_editor(paths, EDITS[name], is_object_wanted=is_object_wanted, of_string=of_string)
            for change in (column_change, one_by_one(one)):
                found, poison = change(column_of(values), wanted)
                after = rows_of(found)
                assert len(after) == len(values)
                for number, (value, is_wanted) in enumerate(rows):
                    expected = outcome(one, value) if is_wanted else value
                    if number in poison:
                        assert (after[number], poison[number]) == (value, expected)
                    else:
                        assert after[number] == expected


@pytest.mark.parametrize("name", [name for name in EDITS if name != "remove"])
def test_usual_values_are_not_looked_at_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = '{"id": 1, "card": {"number": "4111"}, "ü": ["mail", 2], "state": {"card_": 1}}'.encode()
    rows = [usual, b'{"mail": "a@b"}', usual.replace(b'"mail"', b'"female"')]
    paths = [parse_path("$.card.number"), parse_path("$.mail"), parse_path("$.nowhere")]
    one = editor(paths, EDITS[name])
    expected = [one(row) for row in rows]
    monkeypatch.setattr("ferry.features.records.rules.json_column.editor", lambda *_, **__: None)
    found, poison = column_editor(paths, EDITS[name])(column_of(rows), np.ones(len(rows), np.bool_))
    assert (rows_of(found), poison) == (expected, {})
    assert expected != rows
