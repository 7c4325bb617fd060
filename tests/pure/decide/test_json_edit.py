"""JSON changed in places, against a plain model on parsed values; Connect's classes against Kafka's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.steps import CAST_TYPES
from ferry.config.text import json_path
from ferry.config.text.json_path import parse_path
from ferry.features.records.rules import json_edit
from ferry.features.records.rules.json_cast import TYPES, cast
from ferry.features.records.rules.json_edit import NotJson, hash_of, hashed, only_fields, redacted, removed
from tests.golden import Golden

SALT = b"0123456789abcdef"
NAMES = ["a", "b", "c", 'q"q', "ü", "a b"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip
PATHS = st.lists(
    st.lists(st.sampled_from([*NAMES, None]), min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique=True
)
GONE = object()


def edited(value: bytes, paths: Sequence[json_path.Path], edit: json_edit.Edit) -> bytes:
    return json_edit.edited(value, json_edit.tree_of(paths), edit)


def model(value: Any, paths: Sequence[tuple[str | None, ...]], change: Any) -> Any:
    """The same on parsed values."""
    if any(not path for path in paths):
        return change(value)
    if isinstance(value, dict):
        found = {
            name: model(inner, [path[1:] for path in paths if path[0] in (None, name)], change)
            for name, inner in value.items()
        }
        return {name: inner for name, inner in found.items() if inner is not GONE}
    if isinstance(value, list):
        items = [model(inner, [path[1:] for path in paths if path[0] is None], change) for inner in value]
        return [inner for inner in items if inner is not GONE]
    return value


def blank(value: Any) -> Any:
    return None if value is None else {bool: False, int: 0, float: 0.0, str: "", list: [], dict: {}}[type(value)]


@given(value=VALUES, paths=PATHS, indent=st.sampled_from([None, 0, 3]), ascii_only=st.booleans())
def test_what_paths_lead_to_is_redacted_or_removed(
    value: Any, paths: list[tuple[str | None, ...]], indent: int | None, ascii_only: bool
) -> None:
    written = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert json.loads(edited(written, paths, redacted(None))) == model(value, paths, blank)
    assert json.loads(edited(written, paths, removed)) == model(value, paths, lambda _: GONE)
    untouched = [("nowhere", *path) for path in paths]
    assert edited(written, untouched, removed) == written
    assert only_fields(written, frozenset(), {}) == written if isinstance(value, dict) else True


@given(value=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5), names=st.sets(st.sampled_from(NAMES)))
def test_what_is_hashed_stays_equal_and_tells_nothing(value: dict[str, Any], names: set[str]) -> None:
    written = json.dumps(value).encode()
    found = json.loads(edited(written, [(name,) for name in names], hashed(SALT)))
    for name, inner in value.items():
        if name not in names or inner is None:
            assert found[name] == inner
        else:
            clear = inner if isinstance(inner, str) else json.dumps(inner)
            assert found[name] == hash_of(clear.encode(), SALT)


def test_all_other_bytes_stay() -> None:
    value = b'\t{ "a" : 1.50, "n":12345678901234567890123.10E+2 ,"b":{"x":"\\u00e9"}, "a":[ 1 , 2 ]}\n'
    assert edited(value, [("b", "x")], redacted(None)) == value.replace(b'"\\u00e9"', b'""')
    assert edited(value, [("a",)], removed) == b'\t{ "n":12345678901234567890123.10E+2 ,"b":{"x":"\\u00e9"}}\n'
    assert edited(value, [("a", None)], redacted(None)) == value.replace(b"[ 1 , 2 ]", b"[ 0 , 0 ]")
    assert only_fields(value, frozenset(["a", "b"]), {"b": "B"}) == (
        b'\t{ "a" : 1.50 ,"B":{"x":"\\u00e9"}, "a":[ 1 , 2 ]}\n'
    )
    assert edited(b'{"\\u0061":1}', [("a",)], redacted(None)) == b'{"\\u0061":0}'


@given(value=st.binary(max_size=20) | VALUES.map(lambda one: json.dumps(one).encode()[:-1]))
def test_what_is_no_json_is_told_and_never_taken(value: bytes) -> None:
    try:
        json.loads(value.decode(), parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(NotJson):
            edited(value, [("a",)], removed)
    else:
        assert json.loads(edited(value, [("nowhere",)], removed)) == json.loads(value)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"[" * 100_000, id="lists in lists"),
        pytest.param(b'{"a":' * 100_000, id="objects in objects"),
        pytest.param(b"", id="nothing"),
        pytest.param(b" ", id="a blank"),
        pytest.param(b"{} x", id="more after its end"),
        pytest.param(b'{"a":NaN}', id="NaN"),
        pytest.param(b"\xff", id="another encoding"),
        pytest.param(b'{"a"}', id="a key alone"),
    ],
)
def test_what_cannot_be_read_ends_in_a_sentence(value: bytes, golden: Golden) -> None:
    with pytest.raises(NotJson) as caught:
        edited(value, [parse_path("$.a")], removed)
    golden(caught.value)


def test_all_of_a_value_is_cast_too(golden: Golden) -> None:
    assert tuple(TYPES) == CAST_TYPES
    for value, kind, wanted in [
        (b" 12 ", "string", b' "12" '),
        (b'"12"', "int32", b"12"),
        (b"1.50", "string", b'"1.50"'),
        (b"1.50", "float64", b"1.50"),
        (b"3", "float64", b"3.0"),
        (b"2.9", "int8", b"2"),
        (b"0.9", "boolean", b"false"),
        (b"null", "int8", b"null"),
        (b"12345678901234567890123", "string", b'"12345678901234567890123"'),
        (b"0.1", "float32", b"0.1"),
    ]:
        assert edited(value, [()], cast(kind)) == wanted
    for value, kind in [
        (b"{}", "string"),
        (b"128", "int8"),
        (b'"x"', "int64"),
        (b"1e999999999", "int64"),
        (b"x", "string"),
    ]:
        with pytest.raises(NotJson):
            edited(value, [()], cast(kind))
    for value in (b"9" * 5000, b'"' + b"9" * 5000 + b'"', b"1e400", b'"1e400"', b"1e39"):
        for kind in ("int64", "float32"):
            with pytest.raises(NotJson) as caught:
                edited(value, [()], cast(kind))
            golden(caught.value, kind)
