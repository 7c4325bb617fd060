"""MirrorMaker 2's source connector on a worker of Kafka Connect: Ferry goes on where it stopped, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from tests.harness import Lab, create_topic, new_alias
from tests.kafka.adopt.mirror_maker import ConnectWorker
from tests.kafka.adopt.test_takeover import PARTITIONS, Scene

NAME = "mirror"


def connector(lab: Lab, topic: str) -> dict[str, str]:
    """As somebody configures it by hand; the offset syncs stay on the source, where MirrorMaker 2 has them."""
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": lab.alias,
        "target.cluster.alias": f"t{lab.alias}",
        "source.cluster.bootstrap.servers": lab.source.bootstrap,
        "target.cluster.bootstrap.servers": lab.target.bootstrap,
        "topics": topic,
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }


@pytest.mark.timeout(300)
def test_a_connector_hands_over_to_ferry_and_gets_back_without_a_loss_or_a_double(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    create_topic(source_cluster, topic, PARTITIONS)
    scene = Scene(lab=lab, topic=topic, config=lab.write(tmp_path))
    scene.produce(400)
    with ConnectWorker(tmp_path, target_cluster.bootstrap, lab.alias) as worker:
        where = ["--offsets-topic", worker.offsets_topic, "--connector", NAME, "--status-topic", worker.status_topic]
        worker.until(lambda: worker.ask("PUT", f"/connectors/{NAME}/config", connector(lab, topic)) is not None)
        worker.until(scene.copied)
        running = scene.ferry("migrate", "mm2", scene.flow, *where)
        assert (running.code, f"connector {NAME} is RUNNING by {worker.status_topic}: stop it" in running.err) == (
            2,
            True,
        )

        def becomes(verb: str, state: str) -> None:
            def reached() -> bool:
                worker.ask("PUT", f"/connectors/{NAME}/{verb}")  # refused while the workers deal anew
                return worker.state(NAME) == state

            worker.until(reached)

        becomes("pause", "PAUSED")
        assert f"connector {NAME} is PAUSED by" in scene.ferry("migrate", "mm2", scene.flow, *where).err
        becomes("stop", "STOPPED")
        scene.produce(300)
        # The worker lives on, and its group has a member.
        adopted = scene.asked("adopt", "migrate", "mm2", scene.flow, *where)
        rows = [
            (part["outcome"], part["position"], part["copy_end"], part["doubled"]) for part in adopted["partitions"]
        ]
        assert rows == [("adopt", 200, "clean", 0)] * PARTITIONS
        assert scene.lab.micro_run().records == 300
        scene.assert_equal()
        told = scene.asked("translate", "translate", scene.flow, topic, "0", "250")
        assert told["outcome"] == "exact"

        handed = scene.asked("hand-back", "migrate", "hand-back", scene.flow, *where)
        assert [(part["outcome"], part["position"]) for part in handed["partitions"]] == [("write", 350)] * PARTITIONS
        offsets = worker.ask("GET", f"/connectors/{NAME}/offsets")["offsets"]
        own = [one for one in offsets if one["partition"]["topic"] == topic]  # not those of the source's heartbeats
        assert {one["partition"]["partition"]: one["offset"]["offset"] for one in own} == {0: 349, 1: 349}
        scene.produce(200)
        becomes("resume", "RUNNING")
        worker.until(scene.copied)
        becomes("stop", "STOPPED")
        scene.assert_equal()
