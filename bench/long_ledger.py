"""A flow with a long past: how long a run, a plan and a translation take when the ledger has very many receipts.

    .venv/bin/python bench/long_ledger.py [--receipts 1000000] [--whole]

The ledger is written in its own format: receipts in transactions, each twice, then a summary by Ferry's own code, and
more receipts after it. They are those of a topic that is not copied any more, so that plans are as short as possible.
The same is measured of a flow whose ledger has one run. `--whole` also reads all of the ledger, as Ferry did before it
had summaries, which takes memory for all receipts.
"""

from __future__ import annotations

import argparse
import logging
import random
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from clusters import JAVA_OPTIONS
from confluent_kafka import Producer
from usage import Stopwatch, Usage, peak_mb

from ferry.clock import wall_ms
from ferry.config.settings import parse_settings
from ferry.dev import ClusterSpec, RunningCluster, guard, up_all
from ferry.features.groups.acts.offset_maps import load_maps
from ferry.lane.connections import TargetConnection
from ferry.lane.summaries import write_summary
from ferry.ledger.block_index import NO_LINKS, LedgerDigest, Links, grown
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import Fate, Flow, LedgerRecord, Origin, Receipt, Segment, TopicPartition
from ferry.protocol.names import ledger_topic
from ferry.run.micro_run import MicroRuns

PARTITIONS = 100
RECORDS = 500
"""Records of a receipt; a marker follows them on either side."""

ROUND = 100
"""Receipts of a partition that are rolled up, and written in one transaction, at a time."""

TAIL = 5_000
"""Receipts after the summary."""

LOOKUPS = 1000
FLOW = Flow(source="near", target="far")
EMPTY = Flow(source="fresh", target="far")
"""The same source under another alias: a flow with a ledger of its own, of one run."""


def settings_of(source: str, target: str) -> str:
    """Return the text of the flow's file."""
    lines = {
        "clusters": "near, fresh, far",
        "near.bootstrap.servers": source,
        "fresh.bootstrap.servers": source,
        "far.bootstrap.servers": target,
        "near->far.enabled": "true",
        "fresh->far.enabled": "true",
        "topics": "orders",
        "heartbeats.replication.enabled": "false",
        "replication.factor": "1",
    }
    return "".join(f"{key} = {value}\n" for key, value in lines.items())


def receipt_of(partition: int, number: int, clusters: tuple[str, str]) -> Receipt:
    """Make the `number`-th receipt of a partition of the topic that was copied once."""
    start = number * (RECORDS + 1)
    return Receipt(
        flow=FLOW,
        lane="live",
        run=f"scheduled__{number}",
        generation=number,
        slot=partition % 8,
        source=TopicPartition(topic="history", partition=partition),
        target=TopicPartition(topic="near.history", partition=partition),
        start=start,
        end=start + RECORDS + 1,
        target_next=start + RECORDS,
        segments=(Segment(source_start=start, target_start=start, count=RECORDS),),
        records=RECORDS,
        bytes=53_211,
        batches=4,
        digest="9ae3c1f0",
        at_ms=1_795_168_800_000 + number,
        source_topic_id="rUtLlmrBSZqMkBbLDkaqRg",
        target_topic_id="6nGdJ2tOSE2fS3mQ3bSgTg",
        source_cluster_id=clusters[0],
        target_cluster_id=clusters[1],
        origin=Origin(host="worker-3:811", dag_id="ferry__near__far", dag_run_id=f"scheduled__{number}", try_number=1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A partition's receipts as text with holes for what changes: encoding each would take ten times as long."""

    chain: ReceiptChain
    key: bytes
    last: bytes
    template: bytes

    @classmethod
    def of(cls, partition: int, clusters: tuple[str, str]) -> Text:
        """Make the text of one partition, from a receipt whose numbers are easy to find in it."""
        receipt = receipt_of(partition, _MARK, clusters)
        of_start, of_last = receipt_records(receipt)
        value = (of_start.value or b"").replace(b"%", b"%%")
        for name, number in _numbers(_MARK).items():
            value = value.replace(b"%d" % number, b"%%(%s)d" % name.encode())
        value = value.replace(receipt.digest.encode(), b"%(digest)08x")
        return cls(
            chain=ReceiptChain.of(receipt),
            key=of_start.key.replace(b"%d" % receipt.start, b"%d"),
            last=of_last.key,
            template=value,
        )

    def row(self, number: int, at: int) -> MapEntry:
        """Make the map entry of the same receipt."""
        start = number * (RECORDS + 1)
        return MapEntry(
            at=at,
            source=self.chain.source,
            start=start,
            end=start + RECORDS + 1,
            target_next=start + RECORDS,
            generation=number,
            segments=(Segment(source_start=start, target_start=start, count=RECORDS),),
            target_topic_id=self.chain.target_topic_id,
        )


_MARK = 87_654_321


def holes(number: int) -> dict[bytes, int]:
    """Return what fills the holes in the texts for the `number`-th receipts."""
    found = {name.encode(): value for name, value in _numbers(number).items()}
    return {b"digest": number * 2_654_435_761 % (1 << 32), **found}


def _numbers(number: int) -> dict[str, int]:
    """Return what differs from receipt to receipt, the longest first, so that no number is found inside another."""
    start = number * (RECORDS + 1)
    return {
        "at": 1_795_168_800_000 + number,
        "end": start + RECORDS + 1,
        "next": start + RECORDS,
        "start": start,
        "number": number,
    }


@dataclass(slots=True)
class History:
    """Receipts that were written after what the ledger had, by their numbers in each partition, and their maps."""

    bootstrap: str
    connection: TargetConnection
    clusters: tuple[str, str]
    written: int = 0
    at: int = -1
    links: dict[ReceiptChain, Links] = field(default_factory=dict)
    lasts: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)

    def write(self, upto: int) -> None:
        """Write each partition's receipts up to a number, in transactions."""
        self.at = self.connection.run(self._end)
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": "history",
                "compression.type": "lz4",
                "linger.ms": 50,
                "batch.size": 700_000,
                "queue.buffering.max.messages": 100_000,
            }
        )
        producer.init_transactions(60)
        texts = [Text.of(partition, self.clusters) for partition in range(PARTITIONS)]
        topic = ledger_topic(FLOW.source)
        for first in range(self.written, upto, ROUND):
            rows: dict[ReceiptChain, list[MapEntry]] = {text.chain: [] for text in texts}
            producer.begin_transaction()
            for number in range(first, min(first + ROUND, upto)):
                filled = holes(number)
                for text in texts:
                    value, row = text.template % filled, text.row(number, self.at)
                    rows[text.chain].append(row)
                    producer.produce(topic, value, text.key % row.start, 0)
                    producer.produce(topic, value, text.last, 0)
                    self.lasts[text.last] = (self.at + 1, value)
                    self.at += 2
                producer.poll(0)
            producer.commit_transaction(60)
            self.at += 1
            for of, more in rows.items():
                self.links[of] = grown(of, self.links.get(of, NO_LINKS), more)
        self.written = upto

    async def _end(self) -> int:
        await self.connection.ledger.open(1)
        return await self.connection.ledger.end()

    def summarise(self, begin: int) -> None:
        """Write a summary of all that was written, and of what the ledger had up to `begin`."""

        async def work() -> Mapping[ReceiptChain, Links]:
            before = fold(*await self.connection.ledger.read(0, begin))
            newest = {
                key.decode(): LedgerRecord(offset=offset, key=key, value=value, fate=Fate.COMMITTED, producer_id=1)
                for key, (offset, value) in self.lasts.items()
            }
            whole = {**before.by_key, **newest}
            view = replace(before, end=self.at, by_key=whole, rolled=LedgerDigest(upto=self.at, chains=self.links))
            assert await self._end() == self.at, "the places of the receipts are those that the blocks name"
            summary = await write_summary(self.connection.ledger, view, generation=self.at - 1, read_ms=wall_ms())
            return summary.rolled.chains

        self.links = dict(self.connection.run(work))


def write_history(bootstrap: str, connection: TargetConnection, receipts: int, clusters: tuple[str, str]) -> None:
    """Write the receipts after what the ledger has, and summaries.

    After the last summary come half as many receipts as make the next one due. So a run opens the ledger as most do:
    from a summary that has few blocks of its own, and a tail.
    """
    history = History(bootstrap, connection, clusters)
    history.write(0)
    begin = history.at
    for upto in (receipts - 2 * TAIL, receipts):
        history.write(upto // PARTITIONS)
        history.summarise(begin)
    history.write((receipts + TAIL) // PARTITIONS)


def part(settings: str, what: str) -> None:
    """Measure one thing in a process of its own."""
    what, _, which = what.partition(" ")
    flow = parse_settings(settings, "bench").flow(str(EMPTY if which else FLOW))
    with MicroRuns(flow) as runs, TargetConnection.of(flow) as connection:
        idle, watch = peak_mb(), Stopwatch()
        if what == "open":
            connection.run(connection.view)
        elif what == "plan":
            runs.preview()
        elif what == "run":
            runs.open_run(f"bench-{secrets.token_hex(4)}", Origin())
        elif what == "whole":
            runs.wait_for(partial(_whole, runs))
        elif what == "translate":
            connection.run(partial(_translate, connection))
        usage = watch.usage()
        sys.stdout.write(f"{usage.wall:.2f} s, {usage.cpu:.2f} CPU-s, {peak_mb() - idle:.0f} MB\n")


async def _whole(runs: MicroRuns) -> LedgerView:
    await runs.ledger_topic.find()
    return fold(*await runs.ledger_topic.read())


async def _translate(connection: TargetConnection) -> None:
    """Translate single offsets anywhere in the past, then as many at once."""
    view = await connection.view()
    end = max(links.blocks[-1].end for links in view.rolled.chains.values() if links.blocks)
    took: list[Usage] = []
    for _ in range(LOOKUPS):
        one = Stopwatch()
        await _look_up(connection, view, {random.randrange(PARTITIONS): [random.randrange(end)]})
        took.append(one.usage())
    asked: dict[int, list[int]] = {}
    for _ in range(LOOKUPS):
        asked.setdefault(random.randrange(PARTITIONS), []).append(random.randrange(end))
    watch = Stopwatch()
    await _look_up(connection, view, asked)
    together = watch.usage()
    walls, cpus = sorted(one.wall for one in took), sorted(one.cpu for one in took)
    for name, ones in (("wall", walls), ("CPU", cpus)):
        half, most, worst = (1000 * ones[min(LOOKUPS - 1, int(LOOKUPS * share))] for share in (0.5, 0.99, 1.0))
        sys.stdout.write(f"{name} of a lookup: p50 {half:.1f} ms, p99 {most:.1f} ms, the slowest {worst:.0f} ms\n")
    sys.stdout.write(f"{LOOKUPS} at once {together.wall:.2f} s, {together.cpu:.2f} CPU-s; all: ")


async def _look_up(connection: TargetConnection, view: LedgerView, asked: Mapping[int, Sequence[int]]) -> None:
    places = {TopicPartition(topic="history", partition=number): offsets for number, offsets in asked.items()}
    maps = await load_maps(connection.ledger, view, "live", places, {})
    for place, offsets in places.items():
        for offset in offsets:
            maps[place].translate(offset)


def measured(settings: str, names: Sequence[str]) -> None:
    """Print what each part took."""
    for name in names:
        command = [sys.executable, __file__, "--part", name]
        told = subprocess.run(command, input=settings, text=True, check=True, stdout=subprocess.PIPE)
        sys.stdout.write(f"{name:12} {told.stdout}")
        sys.stdout.flush()


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receipts", type=int, default=1_000_000, help="a multiple of 100")
    parser.add_argument("--whole", action="store_true", help="read the whole ledger, too")
    parser.add_argument("--folder", type=Path, help="where data goes; a temporary folder when not given")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    if asked.part:
        part(sys.stdin.read(), asked.part)
        return
    with tempfile.TemporaryDirectory(prefix="ferry-bench-", dir=asked.folder) as folder:
        home = Path(folder) / "clusters"
        with guard(home):
            specs = [ClusterSpec(name=name, java_options=JAVA_OPTIONS, heap_mb=1024) for name in ("near", "far")]
            near, far = up_all(specs, home=home)
            _bench(near, far, asked.receipts, whole=asked.whole)


def _bench(near: RunningCluster, far: RunningCluster, receipts: int, *, whole: bool) -> None:
    settings = settings_of(near.bootstrap, far.bootstrap)
    flow = parse_settings(settings, "bench").flow(str(FLOW))
    producer = Producer({"bootstrap.servers": near.bootstrap})
    producer.produce("orders", b"one")
    producer.flush(60)
    for one in (FLOW, EMPTY):
        with MicroRuns(parse_settings(settings, "bench").flow(str(one))) as runs:
            runs.open_run("first", Origin())
    watch = Stopwatch()
    with TargetConnection.of(flow) as connection:
        write_history(far.bootstrap, connection, receipts, (near.cluster_id, far.cluster_id))
    written = sum(file.stat().st_size for file in far.directory.rglob(f"{ledger_topic(FLOW.source)}-0/*.log"))
    sys.stdout.write(f"{receipts} receipts, {written / 1e6:.0f} MB, written in {watch.usage().wall:.0f} s\n")
    sys.stdout.flush()
    parts = [f"{what}{which}" for what in ("open", "plan", "run") for which in (" empty", "")]
    measured(settings, [*parts, "translate", *(["whole"] if whole else [])])


if __name__ == "__main__":
    main()
