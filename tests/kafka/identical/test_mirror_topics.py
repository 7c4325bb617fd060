"""What Kafka's clients of MirrorMaker 2 read of a flow with identical offsets: the same numbers on both sides."""

from __future__ import annotations

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send, wait_until
from tests.kafka.mirror.mirror_oracle import encoded
from tests.kafka.mirror.test_clients import EACH_RUN, client, commit, named, run, syncs_of
from tests.tiers import ANSWER_S


def test_checkpoints_and_offset_syncs_have_the_same_numbers_also_after_several_runs(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    """With translated offsets, each run leaves a marker, so the numbers differ from the second run on."""
    settings = {**EACH_RUN, "ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(source_cluster, topic)
    for number in range(3):
        send(producer(source_cluster), topic, numbered(10, start=10 * number))
        commit(lab, topic, 10 * number + 7, metadata="mine")
        run(lab)
    commit(lab, topic, 30, group="at-the-end")
    send(producer(source_cluster), topic, numbered(1, start=30))

    def asked(group: str) -> list[str]:
        words = ("RemoteClusterUtils.translateOffsets", lab.alias, encoded(named(lab, group)))
        return client(target_cluster, "DefaultReplicationPolicy", lab.alias, *words)

    def is_given() -> bool:
        run(lab)  # a run within a second of the last checkpoints writes none
        return bool(asked("at-the-end"))

    wait_until(is_given, "a checkpoint that MirrorMaker's client translates", ANSWER_S)
    syncs = [one for one in syncs_of(lab) if one.source.topic == topic]
    assert syncs
    assert [one.upstream for one in syncs] == [one.downstream for one in syncs]
    assert max(one.upstream for one in syncs) > 20, "of the last run, too"
    assert asked("readers") == [f"{lab.target_topic(topic)} 0 27 mine"]
    assert asked("at-the-end") == [f"{lab.target_topic(topic)} 0 30 "]
