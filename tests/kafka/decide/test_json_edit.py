"""JSON changed in places, against a plain model on parsed values; Connect's classes against Kafka's own."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from ferry.config.flow.routes import routed, target_by_steps
from ferry.config.flow.steps import CAST_TYPES, Route, TopicMatches, When
from ferry.dev.jars import jars, java
from ferry.features.records.rules.json_cast import cast
from ferry.features.records.rules.json_edit import NotJson, is_object, only_fields, redacted, removed
from tests.oracle import Oracle
from tests.pure.decide.test_json_edit import edited

SOURCE = Path(__file__).with_name("TransformsOracle.java")


@cache
def oracle() -> Oracle:
    return Oracle([java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars('4.3.0')}/*", str(SOURCE)])


def hexed(text: str) -> str:
    return text.encode().hex() or "-"


def kafkas(kind: str, value: bytes, topic: str = "t", timestamp: int = 0, **parameters: str) -> tuple[str, Any] | None:
    """Topic and parsed value as Kafka's class makes them; None where it refuses."""
    named = " ".join(f"{name.replace('_', '.')}={hexed(text)}" for name, text in parameters.items())
    (answer,) = oracle().ask([f"{kind} {hexed(topic)} {timestamp} {value.hex() or '-'} {named}"])
    if answer.startswith("error"):
        return None
    _, name, found = answer.split(" ")
    return bytes.fromhex(name.strip("-")).decode(), json.loads(bytes.fromhex(found)) if found != "-" else None


LONGS = st.integers(-(2**63), 2**63 - 1)
"""Connect's JSON has no larger whole numbers."""
FLAT = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.none() | st.booleans() | LONGS | st.sampled_from([0.5, -2.25]) | st.text("xyzé\"\\", max_size=5)
    | st.lists(LONGS, max_size=2) | st.dictionaries(st.sampled_from(["a", "e"]), LONGS, max_size=2),
    min_size=1, max_size=4,
)  # fmt: skip
FIELDS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True)


@given(value=FLAT, fields=FIELDS, replacement=st.sampled_from([None, "***", "7", "-1.5"]))
def test_masked_fields_are_those_of_kafkas_class(
    value: dict[str, Any], fields: list[str], replacement: str | None
) -> None:
    written = json.dumps(value).encode()
    more = {} if replacement is None else {"replacement": replacement}
    wanted = kafkas("MaskField", written, "t", 0, fields=",".join(fields), **more)
    try:
        found = json.loads(edited(written, [(name,) for name in fields], redacted(replacement)))
    except NotJson:
        assert wanted is None
    else:
        assert wanted is not None
        # Kafka's class adds fields that are not there, as null.
        assert found == {name: inner for name, inner in wanted[1].items() if name in value}


CASTABLE = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.none() | st.booleans() | LONGS | st.integers(-300, 300) | st.sampled_from([0.5, -2.25, 1e10, 1e30, -0.0])
    | st.sampled_from(["", "7", "-007", "+12", "129", " 1", "1.5", "1e3", ".5", "5.", "1f", "TRUE", "no", "NaN", "1_0"])
    | st.lists(LONGS, max_size=1),
    min_size=1, max_size=3,
)  # fmt: skip


@given(value=CASTABLE, field=st.sampled_from(["a", "b"]), kind=st.sampled_from(CAST_TYPES))
@example(value={"a": 300}, field="a", kind="int8")
@example(value={"a": "1.5f"}, field="a", kind="float32")
def test_fields_are_cast_as_by_kafkas_class(value: dict[str, Any], field: str, kind: str) -> None:
    written = json.dumps(value).encode()
    answer = kafkas("Cast", written, spec=f"{field}:{kind}")
    clear = value.get(field)
    try:
        found = json.loads(edited(written, [(field,)], cast(kind)))
    except NotJson:
        # Kafka's class cuts off what does not fit, and writes what is no number of JSON as text.
        cut = isinstance(clear, int | float) and not isinstance(clear, bool) and "int" in kind
        assert answer is None or cut or clear in {"NaN", 1e30}
        return
    assert answer is not None
    assert {name: inner for name, inner in found.items() if name != field} == {
        name: inner for name, inner in value.items() if name != field
    }
    if field in value:  # Kafka's class adds one that is not there, as null
        wanted = answer[1][field]
        is_same = type(found[field]) is type(wanted) and (found[field] == wanted or kind == "float32")
        assert is_same or (kind == "string" and found[field] == json.dumps(clear)), "a number is text as it is written"
        if kind == "float32" and wanted is not None:
            assert np.float32(found[field]) == np.float32(wanted)


@given(value=FLAT, exclude=FIELDS | st.just([]), include=FIELDS | st.just([]), new=st.sampled_from([None, "z"]))
def test_replaced_fields_are_those_of_kafkas_class(
    value: dict[str, Any], exclude: list[str], include: list[str], new: str | None
) -> None:
    written = json.dumps(value).encode()
    renames = {} if new is None else {"renames": f"a:{new}"}
    wanted = kafkas("ReplaceField", written, "t", 0, exclude=",".join(exclude), include=",".join(include), **renames)
    left = edited(written, [(name,) for name in exclude], removed) if exclude else written
    found = only_fields(left, frozenset(include), {} if new is None else {"a": new})
    assert wanted is not None
    assert json.loads(found) == wanted[1]


@pytest.mark.parametrize("value", [b'"text"', b"[1]", b"3", b"no"])
def test_kafkas_classes_want_objects(value: bytes) -> None:
    assert kafkas("MaskField", value, fields="a") is None
    assert not is_object(value)


@given(topic=st.text("ab-1", min_size=1, max_size=8), timestamp=st.integers(-(10**12), 250_000_000_000_000))
def test_kafkas_class_writes_times_in_utc_as_ferrys_test_of_spark_has_them(topic: str, timestamp: int) -> None:
    wanted = kafkas(
        "TimestampRouter", b"{}", topic, timestamp,
        topic_format="${timestamp}_${topic}", timestamp_format="yyyyMMdd-HHmm",
    )  # fmt: skip
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp)
    assert wanted is not None
    assert wanted[0] == f"{time:%Y%m%d-%H%M}_{topic}"


@given(
    topic=st.text("ab-1", min_size=1, max_size=8),
    pattern=st.sampled_from(["(.*)-1", "a|ab", "a(b*)(.*)", ".*", "(?<x>a+).*", "b?"]),
    replacement=st.sampled_from(["$1", "x", "$0y", "\\$", "${x}-z", "$2$1"]),
)
def test_topics_are_routed_as_by_kafkas_class(topic: str, pattern: str, replacement: str) -> None:
    wanted = kafkas("RegexRouter", b"{}", topic=topic, regex=pattern, replacement=replacement)
    try:
        found = routed(Route(pattern=pattern, replacement=replacement), topic)
    except (ValueError, IndexError, re.error):
        assume(False)
    assert wanted is None or found == wanted[0]


ROUTES = st.tuples(
    st.sampled_from(["(.*)-1", "a(b*)(.*)", "(.*)b", "a|ab", "x(.*)"]), st.sampled_from(["x$1", "$1-1", "b"])
)
PREDICATES = st.none() | st.tuples(st.sampled_from(["a.*", ".*-1", "x.*", "ab"]), st.booleans())


@given(topic=st.text("ab-1", min_size=1, max_size=8), chain=st.lists(st.tuples(ROUTES, PREDICATES), max_size=4))
def test_a_chain_of_routes_names_a_topic_as_kafkas_classes_do_one_after_the_other(
    topic: str, chain: list[tuple[tuple[str, str], tuple[str, bool] | None]]
) -> None:
    steps, wanted = [], topic
    for (pattern, replacement), name in chain:
        when = None if name is None else When(test=TopicMatches(pattern=name[0]), negate=name[1])
        steps.append(Route(pattern=pattern, replacement=replacement, when=when))
        # TopicNameMatches: whether its pattern is that of the whole name that the record's topic has by then.
        if name is None or (re.fullmatch(name[0], wanted) is not None) is not name[1]:
            answer = kafkas("RegexRouter", b"{}", topic=wanted, regex=pattern, replacement=replacement)
            wanted = "" if answer is None else answer[0]
        assume(wanted)
    assert target_by_steps(steps, "orders", topic) == wanted
