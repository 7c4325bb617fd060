"""The parser against java.util.Properties: by table, by property, and by Java itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.text.properties import Property, parse
from ferry.errors import BadInput
from tests.golden import Golden


def read(text: str) -> list[tuple[str, str, int]]:
    return [(entry.key, entry.value, entry.line) for entry in parse(text, "f")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\n \t\f\n", []),
        ("# a = b\n! c = d\n  # e\n", []),
        ("a=b", [("a", "b", 1)]),
        ("a = b ", [("a", "b ", 1)]),
        ("a:b", [("a", "b", 1)]),
        ("a b", [("a", "b", 1)]),
        ("a  =  = b", [("a", "= b", 1)]),
        ("a", [("a", "", 1)]),
        ("= b", [("", "b", 1)]),
        ("  a = b", [("a", "b", 1)]),
        ("a\\ b = c", [("a b", "c", 1)]),
        ("a\\=b = c", [("a=b", "c", 1)]),
        ("a = b # c", [("a", "b # c", 1)]),
        ("a = b,\\\n   c\nd=e", [("a", "b,c", 1), ("d", "e", 3)]),
        ("a = b\\\\\nc=d", [("a", "b\\", 1), ("c", "d", 2)]),
        ("a = b\\\n# c\n", [("a", "b# c", 1)]),
        ("a = b\\\n\nc=d", [("a", "b", 1), ("c", "d", 3)]),
        ("# c\\\na=b", [("a", "b", 2)]),
        ("\\\n# c\na=b", [("a", "b", 3)]),
        ("\\\na=b", [("a", "b", 2)]),
        ("a=b\rc=d\r\ne=f", [("a", "b", 1), ("c", "d", 2), ("e", "f", 3)]),
        ("a=\\u0041\\t\\n\\r\\f\\q\\\\", [("a", "A\t\n\r\fq\\", 1)]),
        ("a=\\uD83D\\uDE00", [("a", "\U0001f600", 1)]),
        ("a=b\\", [("a", "b", 1)]),
        ("a=1\na=2", [("a", "1", 1), ("a", "2", 2)]),
    ],
)
def test_reads_as_java_does(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text", ["x=1\na=\\u12", "x=1\na=\\uzzzz", "x=1\na\\u00=b", "x=1\na=\\ud83d", "x=1\n\\ude00=b"]
)
def test_a_malformed_escape_is_named_with_its_line(text: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text, "my.properties")
    golden(caught.value)


def test_a_property_does_not_show_its_value() -> None:
    assert "geheim" not in repr(Property(key="a.ssl.key.password", value="geheim", raw="geheim", line=3, last_line=3))


def escaped(text: str, *, key: bool) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    hexadecimal = "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    return hexadecimal if key or not text.isalnum() else text


@pytest.mark.slow
@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_escaped_entries_come_back(entries: list[tuple[str, str]]) -> None:
    text = "".join(f"{escaped(key, key=True)} = {escaped(value, key=False)}\n" for key, value in entries)
    assert [(entry.key, entry.value) for entry in parse(text, "f")] == entries
