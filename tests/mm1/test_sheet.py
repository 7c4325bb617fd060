"""The new file's text: Java's rules read back what was written."""

from hypothesis import given
from hypothesis import strategies as st

from ferry.config.properties import parse
from ferry.mm1.sheet import Sheet, entry

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x85\u2028\u2029"))


@given(st.dictionaries(TEXT.filter(bool), TEXT))
def test_entries_are_read_back_as_they_are(entries: dict[str, str]) -> None:
    text = "\n".join(entry(key, value) for key, value in entries.items())
    assert {read.key: read.value for read in parse(text, "f")} == entries


def test_a_comment_cannot_become_an_entry() -> None:
    sheet = Sheet(title=["from a\nclusters = x"])
    sheet.head("group\r\nb = c")
    sheet.add("k", "v", "remark\nd = e")
    assert [(read.key, read.value) for read in parse(sheet.text(), "f")] == [("k", "v")]
