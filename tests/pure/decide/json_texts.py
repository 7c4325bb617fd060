"""JSON and what is none, edits and paths, for tests that hold several ways of editing against each other."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import strategies as st

from ferry.features.records.rules.json_cast import cast
from ferry.features.records.rules.json_edit import Edit, NotJson, hashed, redacted, redacted_string, removed

NAMES = ["a", "b", "c", 'q"q', "ü", "a b", ":", ",", "true", "\\"]
EDITS: dict[str, Edit] = {
    "redact": redacted(None),
    "replace": redacted("7"),
    "name": redacted("b"),
    "hash": hashed(b"0123456789abcdef"),
    "remove": removed,
}
CASTS: dict[str, Edit] = {"string": cast("string"), "int16": cast("int16"), "boolean": cast("boolean")}
"""Edits that may refuse what they find."""
OF_STRING = {"redact": redacted_string(None), "replace": redacted_string("7"), "name": redacted_string("b")}
PATHS = st.lists(
    st.lists(st.sampled_from([*NAMES, None]), min_size=1, max_size=3).map(tuple), min_size=1, max_size=3, unique=True
)
BLANK = st.sampled_from(["", "", "", " ", "\n\t"])
SCALARS = st.sampled_from(
    [
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1.50",
        "12345678901234567890123.10E+2",
        '""',
        '"a"',
        '"b"',
        '"x,:]}"',
        '"ü"',
        '"\\u0061"',
        '"\\""',
        '"a":',
        "NaN",
        "01",
        "",
    ]
)


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """JSON with blanks anywhere, names that repeat, and now and then something that is none."""
    kind = draw(st.sampled_from("oooal" if depth else "s"))
    before, behind = draw(BLANK), draw(BLANK)
    if kind == "o":
        members = []
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=4)):
            written = json.dumps(name, ensure_ascii=draw(st.booleans()))
            members.append(f"{draw(BLANK)}{written}{draw(BLANK)}:{draw(texts(depth - 1))}")
        return f"{before}{{{','.join(members) or draw(BLANK)}}}{behind}"
    if kind == "a":
        return f"{before}[{','.join(draw(st.lists(texts(depth - 1), max_size=3)))}]{behind}"
    return f"{before}{draw(SCALARS)}{behind}"


def outcome(change: Callable[[bytes], bytes], value: bytes) -> bytes | str:
    try:
        return change(value)
    except NotJson as error:
        return str(error)
