"""The known keys are Kafka's, and each has a fate."""

import pytest

from ferry.config.keys.catalogue import default_of, find, keys_of
from ferry.config.keys.key_support import RULES, Fate, Group
from tests.golden import Golden

GROUPS: tuple[Group, ...] = ("flow", "worker", "consumer", "producer", "admin")


@pytest.mark.parametrize("group", GROUPS)
def test_every_key_has_a_fate_with_its_reason(group: Group) -> None:
    keys = keys_of(group)
    assert len(keys) > 80
    assert all(key.fate in Fate and key.text for key in keys.values())


def test_every_rule_meets_a_key_of_some_group() -> None:
    rules = {rule.name.pattern: rule for group in GROUPS for rule in RULES[group]}
    for pattern, rule in rules.items():
        assert any(rule.name.fullmatch(name) for group in GROUPS for name in keys_of(group)), pattern


@pytest.mark.parametrize(
    ("name", "groups", "fate"),
    [
        ("topics", ("flow",), Fate.USED),
        ("transforms", ("flow",), Fate.USED),
        ("transforms.mask.type", ("flow",), Fate.USED),
        ("offset.storage.topic", ("worker",), Fate.UNNEEDED),
        ("offset.storage.segment.bytes", ("worker",), Fate.UNNEEDED),
        ("compression.type", ("producer",), Fate.USED),
        ("acks", ("producer",), Fate.UNNEEDED),
        ("fetch.max.bytes", ("consumer",), Fate.USED),
        ("listeners.https.ssl.key.password", ("worker",), Fate.UNNEEDED),
    ],
)
def test_fates(name: str, groups: tuple[Group, ...], fate: Fate) -> None:
    known = find(name, *groups)
    assert known is not None
    assert known.fate is fate


def test_what_kafka_does_not_know_is_not_found() -> None:
    assert find("acks", "consumer") is None
    assert find("topics.blacklist", "flow", "worker") is None


def test_defaults_are_kafkas(golden: Golden) -> None:
    assert default_of("groups.exclude") == "console-consumer-.*,connect-.*,__.*"
    assert default_of("emit.heartbeats.interval.seconds") == "1"
    assert default_of("fetch.max.bytes", "consumer") == "52428800"
    with pytest.raises(LookupError) as caught:
        default_of("ssl.key.password")
    golden(caught.value)
