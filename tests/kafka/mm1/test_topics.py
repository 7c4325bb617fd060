"""White- and blacklists: the same topics as Kafka's own `TopicFilter` takes, asked in Java."""

import random

from ferry.config.keys.values import pattern_list
from ferry.config.text.filters import PatternList
from ferry.config.text.problem import BadValue
from ferry.features.migrate.acts.mm1.topics import as_list
from tests.kafka.config.java_oracle import ask, encoded

NAMES = [
    "a", "b", "ab", "A", "foo", "fo", "fooo", "foo-1", "foo.bar", "fooxbar", "topic1", "topic2", "topic12", "app_log",
    "click-logs", "__consumer_offsets", "x|y", "[", "(", "*", "'a", "a b",
]  # fmt: skip
LISTS = [
    "my-topic", "topic1, topic2", "topic1,topic2", "topic1 , topic2", " topic1 ", ".*", '".*"', "'A|B'", "A|B",
    "foo.*", "foo*", "foo.*, bar", "(foo|bar).*", "(foo,bar).*", "[a,b]+", "[ab]{1}", "a,,b", ",a", "a|", "app_log",
    r"foo\.bar", r"\Qfoo.bar\E", r"\Qa,b\E|foo", r"a\,b", "(?i)a|FOO", "(?!__).*", "foo|ba?r, topic[0-9]", "[(]|a,b",
    "[)],a", "topic[12]", "\"topic1, topic2\"", "'a'", "foo .*", "((a,b)|foo),fo",
]  # fmt: skip


def read_back(items: tuple[str, ...]) -> PatternList:
    """The list as Ferry reads it from the line that is written."""
    return pattern_list(", ".join(items))


def test_a_list_takes_the_topics_that_java_takes() -> None:
    questions = [(written, name) for written in LISTS for name in NAMES]
    answers = ask([f"whitelist {encoded(written)} {encoded(name)}" for written, name in questions])
    assert "true" in answers
    for (written, name), answer in zip(questions, answers, strict=True):
        if name == "__consumer_offsets":
            continue  # internal topics are left out behind the list, by both
        assert answer == str(read_back(as_list(written)).matches(name)).lower(), (written, name)


def test_java_agrees_on_generated_lists(rng: random.Random) -> None:
    pieces = ["a", "b", "foo", "topic", "1", ".*", ".", "|", ",", ", ", " ", "(", ")", "[ab]", "[a,b]", "+", "?", "'"]
    questions = []
    for _ in range(1500):
        written = "".join(rng.choices(pieces, k=rng.randrange(1, 8)))
        questions += [(written, name) for name in rng.sample(NAMES, 3) if not name.startswith("__")]
    answers = ask([f"whitelist {encoded(written)} {encoded(name)}" for written, name in questions])
    compared = 0
    for (written, name), answer in zip(questions, answers, strict=True):
        try:
            items = as_list(written)
        except BadValue:
            # Refused: Java refuses it as well, or it is a list of nothing.
            assert answer != "true", (written, name)
            continue
        assert answer == str(read_back(items).matches(name)).lower(), (written, name)
        compared += 1
    assert compared > 1000
