"""`ferry plan --explain`: the setting, its line and its item."""

from __future__ import annotations

import pytest

from ferry.config.reasons import why_group, why_topic
from ferry.config.settings import parse_settings
from tests.golden import Golden

TEXT = """clusters = a, b
a.bootstrap.servers = a:9092
b.bootstrap.servers = b:9092
a->b.enabled = true
topics = orders, audit-.*, (x,y)
a->b.topics.exclude = audit-old
groups.exclude = console-.*
"""


@pytest.mark.parametrize(
    ("topic", "taken", "key", "line", "item"),
    [
        ("orders", True, "topics", 5, "orders"),
        ("audit-new", True, "topics", 5, "audit-.*"),
        ("audit-old", False, "a->b.topics.exclude", 6, "audit-old"),
        ("users", False, "topics", 5, None),
        ("x", True, "topics", 5, None),
        ("heartbeats", True, None, None, None),
        ("b.orders", False, None, None, None),
        ("__consumer_offsets", False, None, None, None),
        ("ferry-ledger.a.internal", False, None, None, None),
    ],
)
def test_each_topic_has_its_line(
    topic: str, taken: bool, golden: Golden, key: str | None, line: int | None, item: str | None
) -> None:
    settings = parse_settings(TEXT, "file.properties")
    config = settings.flow("a->b")
    why = why_topic(config, settings.origins[config.flow], topic)
    assert why.taken is taken is config.topics.selection.takes(topic)
    golden(why.reason)
    assert why.item == item
    assert (why.setting.key, why.setting.line) == (key, line) if why.setting else (key, line) == (None, None)


@pytest.mark.parametrize(
    "name",
    ["audit-*", ""],
)
def test_a_pattern_is_no_topic(name: str, golden: Golden) -> None:
    settings = parse_settings(TEXT, "file.properties")
    why = why_topic(settings.flow("a->b"), (), name)
    assert (why.taken, why.setting) == (False, None)
    golden(why.reason)


@pytest.mark.parametrize(("group", "taken", "line"), [("billing", True, None), ("console-1", False, 7)])
def test_each_group_has_its_line(group: str, taken: bool, line: int | None, golden: Golden) -> None:
    settings = parse_settings(TEXT, "file.properties")
    config = settings.flow("a->b")
    why = why_group(config, settings.origins[config.flow], group)
    assert why.taken is taken is config.groups.filter.takes(group)
    assert why.setting is not None
    assert why.setting.line == line
    golden(why.reason)


def test_a_circle_is_named(golden: Golden) -> None:
    text = TEXT.replace(
        "topics = orders, audit-.*, (x,y)",
        "topics = orders\nb->a.enabled = true\nreplication.policy.class = IdentityReplicationPolicy",
    )
    settings = parse_settings(text, "file.properties")
    config = settings.flow("a->b")
    why = why_topic(config, settings.origins[config.flow], "orders")
    assert not why.taken
    golden(why.reason)
    assert why.setting is not None
    assert why.setting.line == 7
