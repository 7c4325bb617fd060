"""Which settings a copy takes over, which differ, and which would cost records."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.model import ChangeKind, TopicChange
from ferry.model.topic_settings import Inherited, SettingOrigin, TopicSettings
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.topic_settings import (
    Narrower,
    created_settings,
    limit_notes,
    narrower_limits,
    settings_change,
    unknown_notes,
    unknown_settings,
)
from tests.golden import Golden
from tests.pure.decide.values import RULES

FROM_SOURCE = replace(RULES, defaults_from_source=True)


def settings(own: dict[str, str] | None = None, **inherited: tuple[str, SettingOrigin]) -> TopicSettings:
    """Own settings by name, inherited ones with underscores for dots."""
    return TopicSettings(
        own=own or {},
        inherited={
            name.replace("_", "."): Inherited(value=value, origin=origin) for name, (value, origin) in inherited.items()
        },
    )


def default(value: str) -> tuple[str, SettingOrigin]:
    return value, SettingOrigin.DEFAULT


def change(source: TopicSettings, target: TopicSettings, rules: Rules = RULES) -> dict[str, str | None] | None:
    found = settings_change(rules, "orders", source, "a.orders", target, 2)
    return None if found is None else dict(found.configs)


@pytest.mark.parametrize(
    ("source", "from_target", "from_source"),
    [
        (settings({"retention.ms": "5"}), {"retention.ms": "5"}, {"retention.ms": "5"}),
        (settings({"follower.replication.throttled.replicas": "*"}), {}, {}),
        (settings({"min.insync.replicas": "2"}), {}, {}),
        (settings(segment_ms=default("9")), {}, {"segment.ms": "9"}),
        (settings(segment_ms=("9", SettingOrigin.BROKERS)), {"segment.ms": "9"}, {"segment.ms": "9"}),
        (settings(segment_ms=("9", SettingOrigin.FILE)), {}, {"segment.ms": "9"}),
    ],
    ids=["own", "excluded", "excluded by default", "Kafka's default", "set on running brokers", "a broker's file"],
)
def test_a_copy_is_created_with_what_mirror_maker_2_takes_over(
    source: TopicSettings, from_target: dict[str, str], from_source: dict[str, str]
) -> None:
    assert dict(created_settings(RULES, source)) == from_target
    assert dict(created_settings(FROM_SOURCE, source)) == from_source
    assert dict(created_settings(replace(RULES, sync_configs=False), source)) == from_target, "whatever is kept equal"


def test_nothing_is_taken_over_that_nobody_shows() -> None:
    assert created_settings(RULES, None) == ()


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        (settings({"retention.ms": "5"}), settings({"retention.ms": "5"}), None),
        (settings({"retention.ms": "5"}), settings({"retention.ms": "6"}), {"retention.ms": "5"}),
        (settings({"retention.ms": "5"}), settings(retention_ms=default("6")), {"retention.ms": "5"}),
        (settings({"retention.ms": "5"}), settings(retention_ms=default("5")), {"retention.ms": "5"}),
        (settings(retention_ms=default("5")), settings({"retention.ms": "6"}), {"retention.ms": None}),
        (settings(retention_ms=default("5")), settings(retention_ms=default("6")), None),
        (settings(retention_ms=("5", SettingOrigin.FILE)), settings({"retention.ms": "6"}), None),
        (settings(), settings({"retention.ms": "6"}), None),
        (settings({"follower.throttled": "*"}), settings({"follower.throttled": "0"}), None),
        (settings(segment_ms=("9", SettingOrigin.BROKERS)), settings(segment_ms=default("9")), None),
        (settings(segment_ms=("9", SettingOrigin.BROKERS)), settings(segment_ms=default("8")), {"segment.ms": "9"}),
        (settings(segment_ms=("9", SettingOrigin.BROKERS)), settings(), None),
    ],
    ids=[
        "equal",
        "another value",
        "not set there",
        "not set there, by chance as much",
        "set there only: reset, as MirrorMaker 2 does",
        "set nowhere",
        "the source's is from a broker's file",
        "unknown at the source",
        "excluded",
        "brokers agree",
        "brokers differ",
        "unknown to the target's brokers",
    ],
)
def test_what_differs_is_set_or_reset(
    source: TopicSettings, target: TopicSettings, wanted: dict[str, str | None] | None
) -> None:
    assert change(source, target) == wanted


def test_with_the_sources_defaults_nothing_is_reset_and_what_differs_is_set() -> None:
    source = settings(retention_ms=default("5"), segment_ms=("9", SettingOrigin.FILE))
    there = settings({"retention.ms": "6"}, segment_ms=default("8"))
    assert change(source, there, FROM_SOURCE) == {"retention.ms": "5", "segment.ms": "9"}
    assert change(source, settings(retention_ms=default("5"), segment_ms=default("9")), FROM_SOURCE) is None


def test_a_change_says_what_was_there() -> None:
    source = settings({"retention.ms": "5", "x": "y"}, segment_ms=default("1"))
    there = settings({"segment.ms": "2"}, retention_ms=default("6"))
    assert settings_change(RULES, "orders", source, "a.orders", there, 2) == TopicChange(
        kind=ChangeKind.CONFIGURE,
        topic="a.orders",
        source_topic="orders",
        partitions=2,
        replication_factor=0,
        configs=(("retention.ms", "5"), ("segment.ms", None), ("x", "y")),
        was=(("retention.ms", "6"), ("segment.ms", "2")),
    )


names = st.sampled_from(["retention.ms", "segment.ms", "cleanup.policy", "follower.x"])
own = st.dictionaries(names, st.sampled_from("123"))
origins = st.sampled_from(SettingOrigin)
brokers = st.dictionaries(names, st.builds(Inherited, value=st.sampled_from("123"), origin=origins), min_size=4)


@given(own, brokers, own, brokers, st.booleans())
def test_what_was_changed_needs_no_change(
    source_own: dict[str, str],
    source_brokers: dict[str, Inherited],
    target_own: dict[str, str],
    target_brokers: dict[str, Inherited],
    from_source: bool,
) -> None:
    """Two runs that find the same make a change once: settings do not swing."""
    rules = replace(RULES, defaults_from_source=from_source)
    source = TopicSettings(own=source_own, inherited=source_brokers)
    found = change(source, TopicSettings(own=target_own, inherited=target_brokers), rules) or {}
    after = {name: value for name, value in {**target_own, **found}.items() if value is not None}
    assert change(source, TopicSettings(own=after, inherited=target_brokers), rules) is None


@given(own, brokers)
def test_a_copy_created_as_planned_needs_no_change(
    source_own: dict[str, str], everywhere: dict[str, Inherited]
) -> None:
    source = TopicSettings(own=source_own, inherited=everywhere)
    created = TopicSettings(own=dict(created_settings(RULES, source)), inherited=everywhere)
    assert change(source, created) is None


WEEK, MONTH = "604800000", "2592000000"


@pytest.mark.parametrize(
    ("name", "source", "target", "narrower"),
    [
        ("retention.ms", MONTH, WEEK, True),
        ("retention.ms", "-1", WEEK, True),
        ("retention.ms", WEEK, "-1", False),
        ("retention.ms", WEEK, WEEK, False),
        ("retention.bytes", "-1", "1000", True),
        ("max.message.bytes", "5000000", "1048588", True),
        ("max.message.bytes", "1048588", "5000000", False),
        ("message.timestamp.after.max.ms", "9223372036854775807", "3600000", True),
        ("segment.ms", "9", "1", False),
        ("message.timestamp.type", "CreateTime", "LogAppendTime", True),
        ("message.timestamp.type", "LogAppendTime", "CreateTime", False),
    ],
)
def test_a_limit_that_costs_records_is_found(name: str, source: str, target: str, narrower: bool) -> None:
    here = TopicSettings(inherited={name: Inherited(value=source, origin=SettingOrigin.FILE)})
    there = TopicSettings(inherited={name: Inherited(value=target, origin=SettingOrigin.DEFAULT)})
    wanted = [Narrower(name=name, source=source, target=target)] if narrower else []
    assert narrower_limits(RULES, here, there, None, {}) == wanted
    assert narrower_limits(RULES, here, None, None, {name: target}) == wanted, "a topic to be created"
    assert narrower_limits(RULES, here, None, None, {}) == [], "nobody knows the target's defaults"


def test_a_limit_that_is_set_or_left_out_on_purpose_is_no_trouble() -> None:
    here, there = settings({"retention.ms": MONTH}), settings(retention_ms=default(WEEK))
    made = settings_change(RULES, "orders", here, "a.orders", there, 1)
    assert narrower_limits(RULES, here, there, made, {}) == []
    assert len(narrower_limits(RULES, here, there, None, {})) == 1
    excluded = replace(RULES, config_excluded=lambda name: name == "retention.ms")
    assert narrower_limits(excluded, here, there, None, {}) == []
    compacted = settings({"cleanup.policy": "compact"}, retention_ms=default(WEEK))
    assert narrower_limits(RULES, here, compacted, None, {}) == [], "nothing is deleted by age there"


@pytest.mark.parametrize("name", ["message.timestamp.before.max.ms", "message.timestamp.after.max.ms"])
def test_a_limit_by_which_records_are_refused_is_noted_also_where_it_is_excluded(name: str, golden: Golden) -> None:
    here = settings({name: "9223372036854775807"})
    excluded = replace(RULES, config_excluded=lambda each: each == name)
    found = narrower_limits(excluded, here, None, None, {name: "3600000"})
    (note,) = limit_notes(excluded, {"a.orders": found})
    golden(note)


def test_a_reset_falls_back_to_the_targets_default() -> None:
    here, there = settings(retention_ms=default(MONTH)), settings({"retention.ms": MONTH})
    made = settings_change(RULES, "orders", here, "a.orders", there, 1)
    assert narrower_limits(RULES, here, there, made, {"retention.ms": WEEK}) == [
        Narrower(name="retention.ms", source=MONTH, target=WEEK)
    ]


def test_topics_with_the_same_trouble_share_a_sentence(golden: Golden) -> None:
    limit = Narrower(name="retention.ms", source=MONTH, target=WEEK)
    found = {f"a.t{number}": [limit] for number in range(5)}
    (note,) = limit_notes(RULES, found)
    golden(note, "settings are synced")
    (note,) = limit_notes(replace(RULES, sync_configs=False), found)
    golden(note, "not synced")
    (note,) = limit_notes(
        RULES, {"a.t": [Narrower(name="message.timestamp.type", source="CreateTime", target="LogAppendTime")]}
    )
    golden(note, "times of the log")


def test_what_the_targets_kafka_has_no_setting_for_is_left_out_and_named(golden: Golden) -> None:
    here = settings({"message.format.version": "2.8-IV1", "retention.ms": WEEK}, segment_ms=default("9"))
    there = settings({"retention.ms": MONTH}, segment_ms=default("9"))
    known = {"retention.ms", "segment.ms"}
    assert dict(created_settings(RULES, here, known)) == {"retention.ms": WEEK}
    made = settings_change(RULES, "orders", here, "a.orders", there, 1, known)
    assert made is not None
    assert dict(made.configs) == {"retention.ms": WEEK}
    assert unknown_settings(RULES, here, known) == ["message.format.version"]
    (note,) = unknown_notes("b", {"a.orders": unknown_settings(RULES, here, known), "a.users": []})
    golden(note)


def test_where_the_target_does_not_show_what_it_knows_all_is_copied() -> None:
    here = settings({"message.format.version": "2.8-IV1"})
    assert dict(created_settings(RULES, here, frozenset())) == {"message.format.version": "2.8-IV1"}
    assert unknown_settings(RULES, here, frozenset()) == []


def test_a_reset_of_a_setting_that_the_target_does_not_have_is_not_worth_a_note() -> None:
    here = settings(message_downconversion_enable=default("true"))
    assert unknown_settings(RULES, here, {"retention.ms"}) == []
