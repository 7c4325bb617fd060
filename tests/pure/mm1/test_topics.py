"""White- and blacklists: the same topics as Kafka's own `TopicFilter` takes, asked in Java."""

import pytest

from ferry.config.text.problem import BadValue
from ferry.features.migrate.acts.mm1.topics import as_list, remark


@pytest.mark.parametrize(
    ("written", "items"),
    [
        ("topic1, topic2", ("topic1", "topic2")),
        ("A|B", ("A", "B")),
        ("*", (".*",)),
        ("'*'", (".*",)),
        ("a,*", ("a", ".*")),
        ("(a,b)c", ("(a|b)c",)),
        ("__consumer-offsets", ("__consumer-offsets",)),
    ],
)
def test_lists_read_as_people_write_them(written: str, items: tuple[str, ...]) -> None:
    assert as_list(written) == items


@pytest.mark.parametrize(
    "written", ["", " ", ",", "'\"", "(foo", "[a", "a{1,3}", "*foo", r"\p{Alpha}", "\u201c.*\u201d"]
)
def test_what_cannot_be_read_is_refused(written: str) -> None:
    with pytest.raises(BadValue):
        as_list(written)


@pytest.mark.parametrize(
    ("written", "words"),
    [("foo*", "for any text write .*"), ("__consumer-offsets", "spelled __consumer_offsets"), ("foo.*, x", "")],
)
def test_remarks(written: str, words: str) -> None:
    said = remark(as_list(written))
    assert words in said
    assert bool(said) == bool(words)
