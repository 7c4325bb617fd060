"""Topic filters: Java's regular expressions, MirrorMaker 2's lists, and what is never copied."""

import pytest

from ferry.config.text.filters import TOPICS_DEFAULT, TOPICS_EXCLUDE_DEFAULT, PatternList, TopicFilter, TopicSelection
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.model import Flow
from ferry.policy import DefaultReplicationPolicy
from tests.golden import Golden


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("*foo", "dangling '*'"),
        ("(foo", "unclosed group"),
        ("foo)", "unmatched )"),
        ("[foo", "unclosed class"),
        ("foo{1", "a { that begins no"),
        ("a{2,1}", "ends before it begins"),
        ("a**", "dangling '*'"),
        ("foo\\", "backslash stands alone"),
        (r"\p{Alpha}", r"\p is not supported"),
        ("[a-z&&[^b]]", "class inside a class"),
        ("[a[b]]", "class inside a class"),
        ("(?s)a", "only i"),
        (r"\1", "does not exist"),
        (r"\Gfoo", r"\G is not supported"),
        (r"foo\Z", r"\Z is not supported"),
        ("(?<=a+)b", "look-behind"),
        ("[z-a]", "bad character range"),
        ("a{99999999999}", "repetition number"),
        ("(" * 3000 + "a" + ")" * 3000, "50 groups"),
        ("((?i)" * 3000 + "a" + ")" * 3000, "50 groups"),
    ],
)
def test_refused_expressions_name_the_part(pattern: str, part: str) -> None:
    with pytest.raises(NotExpressible) as caught:
        compile_java(pattern)
    assert part in str(caught.value)


def selection(*, include: tuple[str, ...] = TOPICS_DEFAULT, heartbeats: bool = True) -> TopicSelection:
    topics = TopicFilter(include=PatternList(items=include), exclude=PatternList(items=TOPICS_EXCLUDE_DEFAULT))
    flow = Flow(source="a", target="b")
    return TopicSelection(flow=flow, filter=topics, policy=DefaultReplicationPolicy(), heartbeats=heartbeats)


@pytest.mark.parametrize(
    "topic",
    [
        "foo.replica",
        "mm2-configs.c.internal",
        "__consumer_offsets",
        "c.checkpoints.internal",
        "ferry-ledger.a.internal",
        "b.orders",
        "c.b.orders",
    ],
)
def test_what_a_flow_with_defaults_leaves_out(topic: str, golden: Golden) -> None:
    assert not selection().takes(topic)
    golden(selection().why_not(topic))


@pytest.mark.parametrize("topic", ["orders", "c.orders", "foo-internal"])
def test_what_a_flow_with_defaults_takes(topic: str) -> None:
    assert selection().takes(topic)
    assert selection().why_not(topic) is None


def test_heartbeats_are_taken_whatever_the_filter_says_unless_switched_off(golden: Golden) -> None:
    assert selection(include=("x",)).takes("heartbeats")
    assert selection(include=("x",)).takes("c.heartbeats")
    assert not selection(include=("x",)).takes("b.heartbeats")
    golden(selection(include=("x",), heartbeats=False).why_not("heartbeats"))


def test_an_empty_list_matches_nothing() -> None:
    assert not PatternList(items=()).matches("")
    assert not PatternList(items=()).matches("a")


def test_a_flag_holds_for_the_items_after_it_as_in_java() -> None:
    assert PatternList(items=("(?i)foo", "bar")).matches("BAR")
    assert not PatternList(items=("bar", "(?i)foo")).matches("BAR")


@pytest.mark.parametrize("flags", ["(?i)", "(?i)(?)", "(?-i)(?i)"])
def test_each_item_may_have_the_flag(flags: str) -> None:
    many = PatternList(items=tuple(f"{flags}t{number}" for number in range(60)))
    assert all(many.matches(name) for name in ("t0", "T0", "t59", "T59"))
    assert not many.matches("T60")


def test_a_flag_holds_to_the_next_one() -> None:
    turned = PatternList(items=("(?i)a(?-i)b", "c(?i)d"))
    assert [name for name in ("Ab", "AB", "cD", "CD") if turned.matches(name)] == ["Ab", "cD"]
