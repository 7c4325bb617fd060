"""How often a request has arrived that a change of the leader left without an answer: the figures of ADR 57.

    python -m tests.kafka.identical.leader_changes 3.9.1 4.3.0

Each version gets three brokers in a temporary folder. A writer sends batches and markers by turns, one request at a
time, and reads the log after each one that failed. Meanwhile the leader is stopped, killed, or loses its leadership.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ferry.dev import ClusterSpec, RunningCluster, down, up
from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster
from tests.clusters import THREE, repair
from tests.harness import awaited, create_topic, on_cluster
from tests.kafka.identical.compacted_log import described, reassigned
from tests.kafka.raw import Producer, Raw

TOPIC = "changes"
ROUNDS = 10


class Writer:
    """Batches and markers by turns, until a request fails; what became of that."""

    def __init__(self, raw: Raw, lane: Producer, seen: Counter[str]) -> None:
        self.raw, self.lane, self.seen = raw, lane, seen
        self.answered = 0

    async def until_it_fails(self, change: Callable[[], None]) -> None:
        """Write, let the leader change meanwhile, and count what the first request without success has done."""
        raw, end = self.raw, await self._end()
        state = await raw.state(self.lane)
        sequence = 0 if state is None else state.last_sequence + 1
        changing = threading.Thread(target=change)
        begun = self.answered
        while True:
            if self.answered == begun + 20:
                changing.start()
            is_marker = self.answered % 2
            try:
                if is_marker:
                    code = (await raw.mark(self.lane))[0]
                else:
                    code = (await raw.produce(self.lane, sequence, 1, again=()))[0]
                    sequence += not code
                failed = f"error {code}" if code else ""
            except Retryable:
                failed = "no answer"
            if failed:
                break
            end += 1
            self.answered += 1
        changing.join()
        there = await self._end()
        self.seen[f"{'marker' if is_marker else 'batch'}, {failed}: {'arrived' if there > end else 'not there'}"] += 1
        assert there - end in (0, 1), (there, end)

    async def _end(self) -> int:
        """The end once the leader says so and it is settled."""
        found: list[int] = []

        async def settled() -> bool:
            with suppress(Retryable):
                await self.raw.open()
                ends = [await self.raw.listed(replica=replica) for replica in (-1, -2)]
                found[:] = [offset for _, offset in ends]
                return ends[0] == ends[1] and ends[0][0] == 0
            return False

        await awaited(self.raw.cluster.loop, settled, "a settled end")
        return found[0]


def measure(cluster: RunningCluster) -> None:
    """Print a line for each way in which the leader changes."""
    for way in ("stopped", "killed", "moved"):
        topic, seen = f"{TOPIC}-{way}", Counter[str]()
        create_topic(cluster, topic, replicas=3)
        for _ in range(ROUNDS):
            repair(cluster)
            on_cluster(cluster, partial(one_round, cluster, topic, way, seen))
        for what, count in sorted(seen.items()):
            print(f"{cluster.spec.version} leader {way}, {what}: {count} of {ROUNDS}", flush=True)


async def one_round(cluster: RunningCluster, topic: str, way: str, seen: Counter[str], client: Cluster) -> None:
    """One change of the leader."""
    raw = await Raw(client, topic).open()
    found = await described(raw)
    lane = await raw.init()

    def change() -> None:
        if way == "moved":
            others = [node for node in found.replicas if node != found.leader]

            async def act(other: Cluster) -> None:
                await reassigned(await Raw(other, topic).open(), *others)

            on_cluster(cluster, act)
        else:
            cluster.broker(found.leader).kill(signal.SIGTERM if way == "stopped" else signal.SIGKILL)

    await Writer(raw, lane, seen).until_it_fails(change)
    if way == "moved":
        await reassigned(raw, *sorted(one.node_id for one in cluster.brokers))

        async def whole() -> bool:
            return len((await described(raw)).in_sync) == len(cluster.brokers)

        await awaited(client.loop, whole, "all replicas in sync")


def main(versions: list[str]) -> None:
    """Measure each version by itself."""
    for version in versions or [ClusterSpec(name=TOPIC).version]:
        with TemporaryDirectory() as folder:
            home = Path(folder)
            try:
                measure(up(replace(THREE, name=TOPIC, version=version), home=home))
            finally:
                down(home, delete=True)


if __name__ == "__main__":
    main(sys.argv[1:])
