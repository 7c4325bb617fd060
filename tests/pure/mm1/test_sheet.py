"""The new file's text: what people named their files may not become an entry of it."""

from ferry.config.text.properties import parse
from ferry.features.migrate.acts.mm1.sheet import Sheet


def test_a_comment_cannot_become_an_entry() -> None:
    sheet = Sheet(title=["from a\nclusters = x"])
    sheet.head("group\r\nb = c")
    sheet.add("k", "v\n \\", "remark\nd = e")
    assert [(read.key, read.value) for read in parse(sheet.text(), "f")] == [("k", "v\n \\")]
