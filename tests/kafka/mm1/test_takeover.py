"""MirrorMaker 1 itself, from Kafka 3.9.1, copies and stops; Ferry goes on where it stopped."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ferry.dev import RunningCluster
from ferry.dev.jars import jars, java
from tests.harness import create_topic, new_alias, numbered, producer, read_topic, send
from tests.program import warm_ferry as ferry
from tests.tiers import PATIENCE
from tests.world.documents.commands import placed, told

SECONDS = 90


def kafka(version: str, *words: str) -> list[str]:
    """A program of Kafka's."""
    return [java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars(version)}/*", *words]


def values(cluster: RunningCluster, topic: str) -> list[bytes]:
    """The values of all records, in no order."""
    return sorted(row[2] or b"" for rows in read_topic(cluster.bootstrap, topic).values() for row in rows)


def mirror(words: Sequence[str], target: RunningCluster, topic: str, wanted: int, log: Path) -> None:
    """Run MirrorMaker 1 until the target has so many records, and stop it as its manual says."""
    with log.open("wb") as out:
        process = subprocess.Popen(kafka("3.9.1", "kafka.tools.MirrorMaker", *words), stdout=out, stderr=out)
        try:
            until = time.monotonic() + SECONDS * PATIENCE
            while len(values(target, topic)) < wanted:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS * PATIENCE)
        finally:
            process.kill()
            process.wait()


def test_ferry_goes_on_where_mirrormaker_1_stopped(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    for cluster in (source_cluster, target_cluster):
        create_topic(cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(400, partitions=2))
    group = f"mirror-{topic}"
    (tmp_path / "c.properties").write_text(
        f"bootstrap.servers={source_cluster.bootstrap}\ngroup.id={group}\nauto.offset.reset=earliest\n"
        "exclude.internal.topics=true\n"
    )
    (tmp_path / "p.properties").write_text(f"bootstrap.servers={target_cluster.bootstrap}\nacks=-1\n")
    words = [
        "--consumer.config", str(tmp_path / "c.properties"), "--producer.config", str(tmp_path / "p.properties"),
        "--whitelist", f"{topic}, no-such-topic", "--num.streams", "2", "--abort.on.send.failure", "true",
    ]  # fmt: skip
    mirror(words, target_cluster, topic, 400, tmp_path / "mirror.log")
    send(producer(source_cluster), topic, numbered(300, partitions=2, start=400))

    exported = subprocess.run(
        kafka(
            "4.3.0", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *placed(told("kafka-consumer-groups.sh"), {"west-1:9092": source_cluster.bootstrap, "mirror": group}),
        ),
        capture_output=True, text=True, timeout=SECONDS * PATIENCE, check=True,
    )  # fmt: skip
    (tmp_path / "positions.csv").write_text(exported.stdout)
    output, alias = tmp_path / "new.properties", new_alias()
    written = ferry(
        "migrate", "import-mm1", "bin/kafka-mirror-maker.sh", *words, "--offsets", tmp_path / "positions.csv",
        "--output", output, "--source.alias", alias, "--target.alias", f"t{alias}",
    )  # fmt: skip
    assert written.code == 0, written.err
    dry = ferry("migrate", "mm1", "--group", group, "--dry-run", "--json", config=output)
    assert dry.code == 0, dry.err
    said = {(part["partition"], part["outcome"], part["position"]) for part in dry.json("adopt")["partitions"]}
    assert said == {(number, "adopt", 200) for number in range(2)}
    done = ferry("run", "--json", config=output)
    assert done.code == 0, done.err
    assert done.json("run")["records"] == 300
    assert values(target_cluster, topic) == values(source_cluster, topic)
    assert len(values(target_cluster, topic)) == 700
