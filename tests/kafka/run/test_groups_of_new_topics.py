"""Groups where a topic on either side is created again, or where its copy is empty."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from ferry.errors import BadInput, Refused
from ferry.features.groups.acts.table import find_groups
from ferry.features.groups.acts.translate import translate, translate_group
from ferry.features.groups.rules.offset_map import Ahead, Exact
from ferry.model import TopicPartition, Why
from tests.harness import create_topic, numbered, producer, send
from tests.kafka.run.groups import Groups, end
from tests.tiers import ANSWER_S

PROVIDERS = "org.apache.kafka.common.config.provider"


def test_a_group_waits_for_a_target_that_is_copied_again_and_goes_to_its_record_there(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    for count in range(3):
        send(producer(source), groups.topic, numbered(4, partitions=2, start=40 + 4 * count))
        groups.lab.micro_run()
    groups.commit(source, "app", {0: 24, 1: 24})
    groups.commit(source, "slow", {0: 3, 1: 3})
    groups.ran()
    assert groups.at("app") == {0: 27, 1: 27}, "behind three markers"
    groups.recreate(target, groups.copy)
    done = groups.ran()
    assert (done.offsets, groups.why(done)) == (0, {"app": {Why.FAILED}, "slow": {Why.FAILED}})
    assert "since it was written" in done.left[0].message
    assert groups.at("app") == {}, "nothing in a topic that is empty"
    with pytest.raises(Refused, match=groups.topic):
        translate(groups.lab.flow, TopicPartition(groups.topic, 0), 24)
    groups.commit(target, "app", {0: 27, 1: 27})  # as it is where the brokers did not forget it: Ferry's, and too far
    done = groups.ran(**{"ferry.guard.target.changed": "restart"})
    assert done.left == ()
    assert groups.at("app") == {0: 24, 1: 24}, "all in one transaction now"
    assert groups.next_record(target, groups.copy, "app") == groups.next_record(source, groups.topic, "app")

    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    admin.delete_records([Place(groups.copy, 0, 12)])[Place(groups.copy, 0, 12)].result(ANSWER_S)
    groups.commit(source, "slow", {0: 4, 1: 4})
    done = groups.ran()
    assert (done.left, done.inexact) == ((), {"log-start": 1})
    assert groups.at("slow") == {0: 12, 1: 4}, "a group before a log's start is reset, maybe to its end"
    assert translate(groups.lab.flow, TopicPartition(groups.topic, 0), 4).outcome.word == "log-start"
    secret = {"config.providers": "env", "config.providers.env.class": f"{PROVIDERS}.EnvVarConfigProvider"}
    lost = {f"{groups.lab.alias}.ssl.truststore.password": "${env:FERRY_TEST_NO_SUCH_SECRET}"}
    blind = replace(groups.lab, settings={**groups.lab.settings, **secret, **lost})
    assert translate(blind.flow, TopicPartition(groups.topic, 0), 4).outcome.word == "log-start"
    there = {f"t{name}": value for name, value in lost.items()}
    with pytest.raises(BadInput, match="FERRY_TEST_NO_SUCH_SECRET"):
        translate(replace(blind, settings={**blind.settings, **there}).flow, TopicPartition(groups.topic, 0), 4)


def test_a_group_of_a_source_topic_that_was_created_again_is_not_translated_by_the_old_one(groups: Groups) -> None:
    source, target = groups.lab.source, groups.lab.target
    groups.commit(source, "app", {0: 20, 1: 20})
    groups.ran()
    ends = {number: end(target, groups.copy, number) for number in (0, 1)}
    assert groups.at("app") == ends
    groups.recreate(source, groups.topic)
    send(producer(source), groups.topic, numbered(12, partitions=2, start=1000))
    groups.commit(source, "app", {0: 4, 1: 4})
    done = groups.ran()
    assert (done.offsets, groups.why(done)) == (0, {"app": {Why.FAILED}})
    assert "since it was copied" in done.left[0].message
    assert groups.at("app") == ends
    done = groups.ran(**{"ferry.guard.topic.recreated": "restart"})
    assert done.left == ()
    assert groups.next_record(target, groups.copy, "app") == groups.next_record(source, groups.topic, "app")


def test_a_group_stands_at_the_beginning_of_a_copy_that_is_empty_until_something_is_copied(groups: Groups) -> None:
    """Without an offset there, a consumer with `latest` would miss what is produced before it first asks."""
    source, target = groups.lab.source, groups.lab.target
    idle = f"{groups.topic}-idle"
    create_topic(source, idle, 2)
    lab = replace(groups.lab, topics=(groups.topic, idle))
    quiet = replace(groups, lab=lab, topic=idle)
    quiet.commit(source, "app", {0: 0, 1: 30})
    assert quiet.why(quiet.synced()) == {"app": {Why.NOT_COPIED}}, "there is no copy yet"
    done = quiet.ran()
    assert (done.left, done.offsets, dict(done.inexact), quiet.at("app")) == ((), 2, {"ahead": 1}, {0: 0, 1: 0})
    assert quiet.synced().unchanged == 2
    told = translate_group(lab.flow, quiet.name("app"))
    assert ([one.outcome for _, one in told.found], told.uncopied) == ([Exact(offset=0), Ahead(offset=0)], ())
    (table,) = find_groups(lab.flow, topics=[idle], groups=[quiet.name("app")]).tables
    assert [row.outcome for row in table.rows] == [Exact(offset=0), Ahead(offset=0)]
    assert translate(lab.flow, TopicPartition(idle, 1), 30).outcome == Ahead(offset=0)
    send(producer(source), idle, numbered(20, partitions=2))
    quiet.commit(source, "app", {0: 4, 1: 10})
    assert quiet.ran().left == ()
    assert quiet.at("app") == {0: 4, 1: end(target, quiet.copy, 1)}
