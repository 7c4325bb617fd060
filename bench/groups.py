"""Very many consumer groups: 1,000 of them, each with an offset in all 100 partitions of a topic."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from contenders import SETTINGS
from usage import Stopwatch, Usage

from ferry.config.settings import load
from ferry.features.groups.acts.of_run import sync_groups
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.groups.offsets import commit_offsets, fetch_offsets
from ferry.model import CommittedOffset, GroupOutcome, TopicPartition
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin

T = TypeVar("T")

GROUPS = 1_000
PARTITIONS = 100
RECORDS = 100
"""Records in each partition."""


def synced(folder: Path, alias: str, source: str, target: str, *, topic: str) -> tuple[Usage, Usage, Usage]:
    """Translate and write all groups of a copied topic three times: new, after all have moved, and unmoved.

    Connections are open, as those of a run are. All else counts: the ledger is read and written.
    """
    folder.mkdir(exist_ok=True)
    path = folder / f"{alias}.properties"
    text = SETTINGS.format(alias=alias, source=source, target=target, topic=topic, tasks=1)
    path.write_text(f"{text}groups = {alias}-.*\n")
    names = [f"{alias}-{number:04}" for number in range(GROUPS)]
    flow = load(path).flow(f"{alias}->target")
    copies = [
        TopicPartition(flow.topics.policy.format_remote_topic(alias, topic), number) for number in range(PARTITIONS)
    ]
    with MicroRuns(flow) as runs:
        plan = runs.open_run("copy", local_origin())
        copy_all(runs, plan, runs.begin(plan, local_origin()))
        usages = []
        for offset, groups in ((RECORDS // 2, GROUPS), (RECORDS - 10, GROUPS), (RECORDS - 10, 0)):
            stand(source, names, topic, offset)
            watch = Stopwatch()
            _, done = sync_groups(runs, f"sync-{secrets.token_hex(4)}")
            usages.append(watch.usage())
            _check(done, groups)
            _compare(target, names, copies, offset)
    return usages[0], usages[1], usages[2]


def _check(done: GroupOutcome | None, groups: int) -> None:
    assert done is not None
    assert (done.groups, done.offsets, done.left) == (groups, groups * PARTITIONS, ()), done


def stand(bootstrap: str, names: list[str], topic: str, offset: int) -> None:
    """Commit an offset of every partition for every group."""
    at = {TopicPartition(topic, number): CommittedOffset(offset=offset) for number in range(PARTITIONS)}
    done = _on(bootstrap, lambda cluster: commit_offsets(cluster, dict.fromkeys(names, at)))
    assert not done.failed, next(iter(done.failed.values()))


def _compare(bootstrap: str, names: list[str], copies: list[TopicPartition], offset: int) -> None:
    """Check that the copies have the offsets of their sources, because each was copied in one chunk."""
    found = _on(bootstrap, lambda cluster: fetch_offsets(cluster, dict.fromkeys(names, copies), stable=True)).found
    assert {at.offset for places in found.values() for at in places.values()} == {offset}
    assert sum(map(len, found.values())) == GROUPS * PARTITIONS


def _on(bootstrap: str, work: Callable[[Cluster], Awaitable[T]]) -> T:
    loop = event_loop()
    cluster = Cluster(loop, "bench", {"bootstrap_servers": bootstrap.split(",")})

    async def both() -> T:
        await cluster.open()
        return await work(cluster)

    try:
        result: T = loop.run(both)
    finally:
        cluster.close()
        loop.close()
    return result
