"""A reader with its offsets in a file moves between the clusters amid the stream, and is killed on both sides."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from tests.harness import Lab, Message, create_topic, new_alias, producer, send, wait_until, watermark
from tests.kafka.identical.bookmark import EACH, State, state_of
from tests.program import finished, start
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

PARTITIONS = 2
BATCH = 600
"""Records that come at the source before each move."""


class Reader:
    """The reader and its file."""

    def __init__(self, lab: Lab, file: Path) -> None:
        (self._topic,) = lab.topics
        self._names = {lab.source.bootstrap: self._topic, lab.target.bootstrap: lab.target_topic(self._topic)}
        self.file = file

    @property
    def state(self) -> State:
        """What the newest checkpoint has."""
        return state_of(self.file)

    @property
    def count(self) -> int:
        """How many records were processed."""
        return sum(map(len, self.state.values()))

    @contextmanager
    def on(self, cluster: RunningCluster) -> Iterator[None]:
        """The reader at work on a cluster, and then SIGKILL."""
        words = [cluster.bootstrap, self._names[cluster.bootstrap], str(PARTITIONS), str(self.file)]
        process = subprocess.Popen([sys.executable, "-m", "tests.kafka.identical.bookmark", *words])
        try:
            yield
            assert process.poll() is None, "it reads until it is killed"
        finally:
            process.kill()
            process.wait(ANSWER_S)

    def killed_on(self, cluster: RunningCluster, more: int) -> None:
        """Read some records more on a cluster, and die there."""
        wanted = self.count + more
        with self.on(cluster):
            wait_until(lambda: self.count >= wanted, "more records for the reader", 2 * ANSWER_S)


@pytest.mark.timeout(240)
def test_a_reader_with_its_offsets_in_a_file_processes_each_record_once_on_two_clusters(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    settings = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,), settings=settings)
    create_topic(source_cluster, topic, PARTITIONS)
    config, reader, client = lab.write(tmp_path), Reader(lab, tmp_path / "checkpoint.json"), producer(source_cluster)
    sent: State = {str(number): [] for number in range(PARTITIONS)}

    def produce() -> None:
        rows = [(str(number % PARTITIONS), f"{len(sent['0'])}-{number}") for number in range(BATCH)]
        send(client, topic, [Message(value=value.encode(), partition=int(place)) for place, value in rows])
        for place, value in rows:
            sent[place].append(value)

    def end_of_copy() -> int:
        return sum(watermark(target_cluster, lab.target_topic(topic), number) for number in range(PARTITIONS))

    def kill_a_run() -> None:
        """It leaves a beginning of each log."""
        before, run = end_of_copy(), start("run", config=config)
        wait_until(lambda: run.poll() is not None or end_of_copy() > before, "more records of the copy", 2 * ANSWER_S)
        run.kill()
        finished(run)

    for killed in (False, True):
        produce()
        reader.killed_on(source_cluster, 5 * EACH)
        if killed:
            kill_a_run()
        assert ferry("run", config=config).code == 0
        reader.killed_on(target_cluster, 5 * EACH)
    assert 0 < reader.count < 2 * BATCH, "it moves amid the stream"
    reader.killed_on(source_cluster, 3 * EACH)
    reader.killed_on(target_cluster, 2 * BATCH - reader.count)
    assert reader.state == sent
