"""Ferry goes on where MirrorMaker 2 stopped, MirrorMaker 2 where Ferry stands, and again, on real clusters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.features.groups.acts.translate import translate
from ferry.features.groups.rules.offset_map import Approximate, Exact
from ferry.features.migrate.rules.connect_offsets import SOURCE_CONNECTOR, dedicated_offsets_topic, format_key
from ferry.ledger.adoption_codec import adoptions
from ferry.model import RefusalKind
from ferry.wire.partitioner import partition_of_key
from tests.harness import (
    Lab,
    Message,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topics,
    send,
    wait_until,
    whole_ledger,
)
from tests.kafka.adopt.mirror_maker import SETTINGS, MirrorMaker
from tests.kafka.cli.test_groups import commit
from tests.program import Answer
from tests.program import warm_ferry as ferry
from tests.pure.decide.values import place
from tests.tiers import ANSWER_S

PARTITIONS = 2

Values = dict[int, list[tuple[bytes | None, bytes | None, int]]]


def values(cluster: RunningCluster, topic: str) -> Values:
    """Key, value and time of every record, in order, by partition: equal sides have lost and doubled nothing."""
    rows = read_topics(cluster.bootstrap, [topic])[topic]
    return {number: [(row[1], row[2], row[4]) for row in part] for number, part in sorted(rows.items())}


def count(cluster: RunningCluster, topic: str) -> int:
    """Records of a topic that need not be there yet."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    try:
        admin.describe_topics(TopicCollection([topic]))[topic].result(ANSWER_S)
    except KafkaException:
        return 0
    return sum(len(part) for part in values(cluster, topic).values())


@dataclass(slots=True, kw_only=True)
class Scene:
    """A flow, its file, which MirrorMaker 2 and Ferry both read, and how many records the source has."""

    lab: Lab
    topic: str
    config: Path
    made: int = 0

    @property
    def flow(self) -> str:
        return str(self.lab.flow.flow)

    @property
    def copy(self) -> str:
        return self.lab.target_topic(self.topic)

    def produce(self, records: int) -> None:
        send(producer(self.lab.source), self.topic, numbered(records, partitions=PARTITIONS, start=self.made))
        self.made += records

    def copied(self) -> bool:
        return count(self.lab.target, self.copy) >= self.made

    def ferry(self, *words: str) -> Answer:
        return ferry(*words, config=self.config)

    def asked(self, schema: str, *words: str, code: int = 0) -> Any:
        answer = self.ferry(*words, "--json")
        assert answer.code == code, answer.err or answer.out
        return answer.json(schema)

    def assert_equal(self) -> None:
        """Nothing is lost and nothing doubled."""
        there, here = values(self.lab.target, self.copy), values(self.lab.source, self.topic)
        assert there == here
        assert sum(len(part) for part in there.values()) == self.made


@pytest.mark.timeout(300)  # MirrorMaker 2 is started three times
def test_a_flow_goes_from_mirrormaker_2_to_ferry_and_back_without_a_loss_or_a_double(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=SETTINGS)
    create_topic(source_cluster, topic, PARTITIONS)
    scene = Scene(lab=lab, topic=topic, config=lab.write(tmp_path))
    scene.produce(400)
    # Positions are committed when it stops, and not before. Both times the same, for with other settings it would
    # start its tasks anew, and commit them then.
    commits_late = f"t{lab.alias}.offset.flush.interval.ms = 3600000"
    with MirrorMaker(tmp_path, scene.config, commits_late) as mirror:
        mirror.until(scene.copied)
        nobody_takes_over_while_it_runs(scene)
        mirror.stop()
    scene.produce(300)
    ferry_adopts_and_copies_what_came_since(scene)
    what_was_adopted_is_translated_near_and_never_past_the_record(scene)
    groups_are_written_where_they_lose_nothing(scene)
    its_keys_are_those_that_ferry_would_write(scene)
    scene.produce(100)
    ferry_hands_back_and_pauses(scene)
    scene.produce(200)
    with MirrorMaker(tmp_path, scene.config, commits_late) as mirror:
        mirror.until(scene.copied)
        scene.assert_equal()
        mirror.kill()
    what_it_had_not_committed_is_seen_at_the_end_of_its_copy(scene)
    assert scene.ferry("verify").code == 0  # of what Ferry copied, before and after
    a_stranger_behind_the_adoption_is_found(scene)


def nobody_takes_over_while_it_runs(scene: Scene) -> None:
    answer = scene.ferry("migrate", "mm2", scene.flow)
    assert answer.code == 2, answer.err
    group = f"group {scene.lab.alias}-mm2 on cluster t{scene.lab.alias}"
    assert f"{group} is Stable with 1 member," in answer.err


def ferry_adopts_and_copies_what_came_since(scene: Scene) -> None:
    (kind,) = {refusal.kind for refusal in scene.lab.micro_run().refusals}
    assert kind is RefusalKind.FOREIGN_WRITER
    dry = scene.asked("adopt", "migrate", "mm2", scene.flow, "--dry-run")
    assert dry["run"] is None
    rows = [(part["outcome"], part["position"], part["copy_end"], part["doubled"]) for part in dry["partitions"]]
    assert rows == [("adopt", 200, "clean", 0)] * PARTITIONS
    adopted = scene.ferry("migrate", "mm2", scene.flow)
    assert adopted.code == 0, adopted.err
    assert "2 partitions adopted " in adopted.out
    assert adopted.err == ""
    ran = scene.lab.micro_run()
    assert (ran.records, ran.refusals, ran.notes) == (300, (), ())
    scene.assert_equal()
    again = scene.asked("adopt", "migrate", "mm2", scene.flow)
    assert (again["run"], {part["outcome"] for part in again["partitions"]}) == (None, {"unchanged"})


def what_was_adopted_is_translated_near_and_never_past_the_record(scene: Scene) -> None:
    here = read_topics(scene.lab.source.bootstrap, [scene.topic])[scene.topic][0]
    there = read_topics(scene.lab.target.bootstrap, [scene.copy])[scene.copy][0]
    with scene.lab.runs() as runs:
        (adoption,) = adoptions(whole_ledger(runs), "live", source=place(scene.topic, 0))
    assert adoption.pairs, "MirrorMaker 2's offset syncs were not read"
    for pair in adoption.pairs:
        assert here[pair[0]][2] == next(row[2] for row in there if row[0] == pair[1])
    said = scene.asked("ledger-offset", "ledger", scene.flow, "--topic", scene.topic, "--offset", "57")
    assert [one["end"] for one in said["adopted"]] == [200] * PARTITIONS
    told = scene.asked("translate", "translate", scene.flow, scene.topic, "0", "199")
    assert told["outcome"] == "approximate"
    for offset in (0, adoption.pairs[0][0], 57, 199, 200, 201):
        found = translate(scene.lab.flow, place(scene.topic, 0), offset).outcome
        lies_at = next(row[0] for row in there if row[2] == here[offset][2])
        assert found == Exact(offset=lies_at) if offset >= 200 else isinstance(found, Approximate)
        assert 0 <= found.offset <= lies_at


def groups_are_written_where_they_lose_nothing(scene: Scene) -> None:
    """One partition's offset lies in what MirrorMaker 2 copied, the other's in what Ferry did."""
    group = f"app-{scene.lab.alias}"
    commit(scene.lab.source, group, {(scene.topic, 0): 57, (scene.topic, 1): 300})
    wrote = scene.asked("groups-sync", "groups", "sync", scene.flow, "--group", group)["writes"]
    assert [(one["source_partition"], one["outcome"]) for one in wrote] == [(0, "approximate"), (1, "exact")]
    here = read_topics(scene.lab.source.bootstrap, [scene.topic])[scene.topic]
    there = read_topics(scene.lab.target.bootstrap, [scene.copy])[scene.copy]
    for one in wrote:
        number, offset = one["source_partition"], one["source_offset"]
        unread = {row[2] for row in there[number] if row[0] >= one["target_offset"]}
        assert {row[2] for row in here[number] if row[0] >= offset} <= unread


def its_keys_are_those_that_ferry_would_write(scene: Scene) -> None:
    """Also where MirrorMaker 2 has no position yet, a handed back one must be found under its own key."""
    name = dedicated_offsets_topic(scene.lab.alias)
    parts = read_topics(scene.lab.target.bootstrap, [name])[name]
    found = {(row[1], number) for number, rows in parts.items() for row in rows}
    for partition in range(PARTITIONS):
        key = format_key(SOURCE_CONNECTOR, scene.lab.alias, place(scene.topic, partition))
        assert (key, partition_of_key(key, len(parts))) in found


def ferry_hands_back_and_pauses(scene: Scene) -> None:
    assert scene.lab.micro_run().records == 100
    handed = scene.asked("hand-back", "migrate", "hand-back", scene.flow)
    rows = [(part["outcome"], part["position"], part["was"]) for part in handed["partitions"]]
    assert rows == [("write", 400, 200)] * PARTITIONS
    scene.produce(2)
    assert scene.lab.micro_run().records == 0


def what_it_had_not_committed_is_seen_at_the_end_of_its_copy(scene: Scene) -> None:
    def at_rest() -> bool:  # its session lives on for seconds
        return "still runs" not in scene.ferry("migrate", "mm2", scene.flow, "--dry-run").err

    wait_until(at_rest, "an end of the sessions of MirrorMaker 2")
    told = scene.ferry("migrate", "mm2", scene.flow, "--dry-run").out
    assert re.search(r"at most 101 .*--align .* offset 501", told), told
    aligned = scene.asked("adopt", "migrate", "mm2", scene.flow, "--align")
    assert [(part["position"], part["doubled"]) for part in aligned["partitions"]] == [(501, 0)] * PARTITIONS
    scene.produce(100)
    assert scene.lab.micro_run().records == 100
    scene.assert_equal()


def a_stranger_behind_the_adoption_is_found(scene: Scene) -> None:
    send(producer(scene.lab.target), scene.copy, [Message(value=b"a stranger's")])
    scene.produce(2)
    assert [refusal.kind for refusal in scene.lab.micro_run().refusals] == [RefusalKind.FOREIGN_WRITER]


def test_a_flow_that_ferry_began_is_handed_to_a_mirrormaker_2_that_never_ran(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=SETTINGS)
    create_topic(source_cluster, topic, PARTITIONS)
    scene = Scene(lab=lab, topic=topic, config=lab.write(tmp_path))
    scene.produce(100)
    assert lab.micro_run().records == 100
    name = dedicated_offsets_topic(lab.alias)
    refused = scene.ferry("migrate", "hand-back", scene.flow)
    assert (refused.code, f"there is no topic {name} on" in refused.err, "--create" in refused.err) == (2, True, True)
    would = scene.ferry("migrate", "hand-back", scene.flow, "--create", "--dry-run")
    assert (would.code, " with 25 partitions" in would.out + would.err) == (0, True)
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    assert name not in admin.list_topics(timeout=ANSWER_S).topics
    handed = scene.asked("hand-back", "migrate", "hand-back", scene.flow, "--create")
    assert [(part["outcome"], part["position"]) for part in handed["partitions"]] == [("write", 50)] * PARTITIONS
    scene.produce(60)
    with MirrorMaker(tmp_path, scene.config) as mirror:  # it would not start with a topic that is not compacted
        mirror.until(scene.copied)
    scene.assert_equal()
