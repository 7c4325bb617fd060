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
        ("(?i)" * 3000 + "a", "50 groups"),
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
    ("topic", "reason"),
    [
        ("orders", None),
        ("c.orders", None),
        ("foo-internal", None),
        ("foo.replica", "topics.exclude leaves it out"),
        ("mm2-configs.c.internal", "it is an internal topic of Kafka or MirrorMaker"),
        ("__consumer_offsets", "it is an internal topic of Kafka or MirrorMaker"),
        ("c.checkpoints.internal", "it is an internal topic of Kafka or MirrorMaker"),
        ("ferry-ledger.a.internal", "it is a ledger of Ferry"),
        ("b.orders", "it came from b, and would go round in a loop"),
        ("c.b.orders", "it came from b, and would go round in a loop"),
    ],
)
def test_what_a_flow_with_defaults_takes(topic: str, reason: str | None) -> None:
    assert selection().why_not(topic) == reason
    assert selection().takes(topic) is (reason is None)


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
