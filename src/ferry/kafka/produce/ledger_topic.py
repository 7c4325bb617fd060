"""The ledger topic on the target: opened with its settings checked, appended to, read and resolved."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from ferry.clock import wall_ms
from ferry.errors import BadInput, Corrupt, Refused, Retryable
from ferry.kafka.admin.topic_settings import alter_settings, settings_in_force
from ferry.kafka.admin.topics import NewTopic, TooFewBrokers, create_topic, delete_topics
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, list_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED, fetch_request, fetched
from ferry.kafka.produce.appending import BATCH_BYTES, Appender, below_limit
from ferry.kafka.produce.writer import PartitionsRefused, Writer
from ferry.ledger.settings import NOT_READY, created_with, settings_refusal, wanted_replicas
from ferry.model import Fate, LedgerRecord, Record, Sentence, TopicPartition
from ferry.protocol.names import ledger_topic
from ferry.wire.batch import Batch, batches
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.records import ProducerIdentity, build_batch, open_batch
from ferry.wire.resolve import Resolver

_FETCH_BYTES = 8 << 20
_NEAR_BYTES = 128 << 10  # bytes of one fetch of single records


def unreadable(topic: str, offset: int, why: Exception) -> str:
    """Return the message that a batch of a ledger cannot be opened, with the remedy."""
    return (
        f"the batch at offset {offset} of ledger {topic} cannot be read: {why}; Ferry did not write it: take WRITE on "
        "the ledger away from others (kafka-acls.sh --list), delete the ledger topic, and write it again from "
        "its last export (ferry ledger rebuild)"
    )


class LedgerTopic:
    """Reads and writes the ledger of one flow's target. Belongs to the target cluster's event loop."""

    def __init__(self, cluster: Cluster, source_alias: str, *, topic: str = "") -> None:
        """`topic` is the name of a ledger that belongs to no flow."""
        self.cluster = cluster
        self.place = TopicPartition(topic=topic or ledger_topic(source_alias), partition=0)
        self._appender = Appender(cluster, self.place, "ledger")

    async def open(self, replication_factor: int) -> None:
        """Create the ledger if it is missing, then check its settings; raise Refused when they would not keep receipts.

        The ledger has one partition, compaction only, and `replication_factor` replicas where the cluster has as many
        brokers. With three replicas it has min.insync.replicas 2. Unclean leader election is off.
        """
        topic = self.place.topic
        wanted = wanted_replicas(replication_factor, len(self.cluster.brokers))
        if topic not in await self.cluster.refresh([topic]):
            try:
                await self._create(replication_factor)
            except TooFewBrokers:
                await self._create(wanted)
            await self._appear()
        why = await self.unfit(replication_factor)
        if why is not None:
            raise Refused(why)

    async def unfit(self, replication_factor: int) -> Sentence | None:
        """Return why `open` would refuse the ledger that is there; None: it would not.

        Raises Refused when this login may not read its settings.
        """
        topic = self.place.topic
        partitions = self.cluster.topics[topic].partitions
        return settings_refusal(
            topic,
            self.cluster.alias,
            partitions=len(partitions),
            replicas=min(len(part.replicas) for part in partitions.values()),
            wanted=wanted_replicas(replication_factor, len(self.cluster.brokers)),
            configs=await settings_in_force(self.cluster, topic),
        )

    async def create_unready(self, replication_factor: int, *, instead_of: str = "") -> None:
        """Create a ledger with a setting that `open` refuses: no run begins in it before `make_ready`.

        `instead_of` is the id of a topic of its name that was just deleted.
        """
        topic = self.place.topic
        try:
            await self._create(replication_factor, NOT_READY)
        except TooFewBrokers:
            await self._create(wanted_replicas(replication_factor, len(self.cluster.brokers)), NOT_READY)
        await self._appear(instead_of)
        if len(self.cluster.topics[topic].partitions) != 1 or await self.end():
            raise Refused(
                f"another client created ledger {topic} on cluster {self.cluster.alias}: delete it, then try again"
            )

    async def make_ready(self) -> None:
        """Give the ledger the settings that keep receipts. Raises Refused when the cluster does not permit it."""
        safe = {name: created_with(1)[name] for name in NOT_READY}
        for error in (await alter_settings(self.cluster, {self.place.topic: list(safe.items())})).values():
            raise error

    async def is_ready(self) -> bool:
        """Return whether the ledger lacks the setting of `make_unready`."""
        configs = await settings_in_force(self.cluster, self.place.topic)
        return any(configs.get(name) != value for name, value in NOT_READY.items())

    async def make_unready(self) -> None:
        """Let no run begin in it until `make_ready`. Raises Refused when the cluster does not permit it."""
        for error in (await alter_settings(self.cluster, {self.place.topic: list(NOT_READY.items())})).values():
            raise error

    async def delete(self) -> str:
        """Delete the ledger that was found last, and wait until it is gone; return its topic id."""
        topic = self.place.topic
        info = self.cluster.topics[topic]
        for error in (await delete_topics(self.cluster, {topic: info.topic_id})).values():
            raise error

        async def gone() -> None:
            if await self.exists():
                raise Retryable(f"topic {topic} on cluster {self.cluster.alias} was deleted, and is still there")

        await self.cluster.retrying(gone)
        return info.id_text

    async def _appear(self, instead_of: str = "") -> None:
        topic = self.place.topic

        async def visible() -> None:
            found = await self.cluster.refresh([topic])
            if topic not in found or (instead_of and found[topic].id_text == instead_of):
                raise Retryable(f"topic {topic} is not yet visible on cluster {self.cluster.alias}")
            self.cluster.leader(self.place)

        await self.cluster.retrying(visible)

    async def _create(self, factor: int, otherwise: Mapping[str, str] | None = None) -> None:
        # First with all replicas that were asked for: a broker that is down now counts, but the metadata lacks it.
        configs = {**created_with(factor), **(otherwise or {})}
        await create_topic(
            self.cluster,
            NewTopic(name=self.place.topic, partitions=1, replication_factor=factor, configs=configs),
        )

    async def _known(self) -> None:
        if self.place.topic not in self.cluster.topics:
            await self.find()

    async def exists(self) -> bool:
        """Return whether there is a ledger, as the brokers report now.

        Raises Refused when this login may not see the topic: brokers then do not say whether there is one.
        """
        topic, alias = self.place.topic, self.cluster.alias
        if topic in await self.cluster.refresh([topic]):
            return True
        if await self.cluster.hidden([topic]):
            raise Refused(
                f"ledger {topic} on cluster {alias} may not be seen by this login, so it is not known whether there is "
                "one: grant DESCRIBE and READ on it (ferry acls required lists all that a flow needs)"
            )
        return False

    async def find(self) -> None:
        """Look the topic up. Raises BadInput when there is none, because the flow never ran; Refused as `exists`."""
        if not await self.exists():
            raise BadInput(
                f"there is no ledger {self.place.topic} on cluster {self.cluster.alias}: run the flow once, or correct "
                "the target's bootstrap servers"
            )

    @property
    def skew_ms(self) -> int | None:
        """Milliseconds by which this machine's clock is ahead of the ledger leader's, as the last `append` showed.

        None also in a ledger whose records have the times of their writers, as some kept ledgers have.
        """
        return self._appender.skew_ms

    async def append(self, records: Sequence[Record]) -> int:
        """Write records outside any transaction, acks from all in-sync replicas; return the offset of the last one."""
        await self._known()
        return await self._appender.append(records)

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = BATCH_BYTES) -> list[int]:
        """Write records outside any transaction, in batches of about `batch_bytes` before compression.

        Returns the offset of each record. Acks come from all in-sync replicas.
        """
        await self._known()
        return await self._appender.append_each(records, batch_bytes=batch_bytes)

    async def append_in(self, writer: Writer, records: Sequence[Record]) -> frozenset[int]:
        """Write records inside a transaction, one batch after the other; return their offsets."""
        offsets: set[int] = set()
        try:
            await writer.join([self.place])
        except PartitionsRefused as error:
            await self._appender.check_written(error.codes[self.place])
        for part in below_limit(records):
            identity = ProducerIdentity(
                producer_id=writer.producer_id,
                producer_epoch=writer.producer_epoch,
                sequence=writer.next_sequence(self.place, len(part)),
                transactional=True,
            )
            batch = build_batch(part, wall_ms(), identity)

            async def send(batch: bytes = batch, part: Sequence[Record] = part) -> None:
                sent = await writer.produce(self.cluster.leader(self.place), {self.place: batch})
                outcome = (await self.cluster.answered(sent)).responses[0].partition_responses[0]
                # A repeat of a fenced request would fence the writer that took over; with version 2 the end may still
                # be completing.
                if outcome.error_code in codes.FENCED or outcome.error_code == codes.CONCURRENT_TRANSACTIONS:
                    writer.raise_for(outcome.error_code, "writing receipts")
                await self._appender.check_written(outcome.error_code, part, batch)
                offsets.update(range(outcome.base_offset, outcome.base_offset + len(part)))

            await writer.patiently(send)
        return frozenset(offsets)

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        """Return the records of `[start, end)` with their fates, and the offset up to which was read.

        None as `start` is the beginning, and None as `end` is the end now. Waits until `end` is readable, so an
        acknowledged record is always seen even when a new leader answers late.
        """
        await self._known()
        if start is None:
            start = await self.start()
        if end is None:
            end = await self.end()
        resolver = Resolver()
        at = await self._feed(resolver.feed, start, end)
        return list(resolver.records()), at

    async def read_gapless(self, start: int, end: int) -> tuple[list[LedgerRecord], int, bool]:
        """Return the records of `[start, end)` with their fates, and the offset up to which was read.

        The third value is whether every offset is there, so that compaction has taken nothing away.
        """
        await self._known()
        resolver, there = Resolver(), 0

        def feed(batch: Batch) -> None:
            nonlocal there
            resolver.feed(batch)
            there += batch.record_count if batch.base_offset >= start else batch.next_offset - start

        at = await self._feed(feed, start, end)
        return list(resolver.records()), at, there >= at - start

    async def read_untransacted(self, start: int, end: int) -> list[LedgerRecord]:
        """Return the records of `[start, end)` that were written outside transactions.

        The others are not even unpacked.
        """
        await self._known()
        found: list[LedgerRecord] = []

        def feed(batch: Batch) -> None:
            if not batch.is_transactional and not batch.is_control:
                found.extend(
                    LedgerRecord(offset=at, key=key, value=value, fate=Fate.COMMITTED, producer_id=batch.producer_id)
                    for at, key, value in open_batch(batch)
                    if start <= at < end
                )

        await self._feed(feed, start, end)
        return found

    async def read_at(self, offsets: Collection[int]) -> dict[int, LedgerRecord]:
        """Return the records at some offsets, which are known to be committed.

        Those that compaction took are left out.
        """
        await self._known()
        wanted, found = set(offsets), dict[int, LedgerRecord]()

        def feed(batch: Batch) -> None:
            if not wanted.isdisjoint(range(batch.base_offset, batch.next_offset)):
                for at, key, value in open_batch(batch):
                    if at in wanted:
                        found[at] = LedgerRecord(
                            offset=at, key=key, value=value, fate=Fate.COMMITTED, producer_id=batch.producer_id
                        )

        at, end = -1, max(wanted, default=-1) + 1
        for offset in sorted(wanted):
            if offset >= at:  # one fetch brings records that are close together
                at = await self.cluster.retrying(partial(self._read_on, feed, offset, end, partition_bytes=_NEAR_BYTES))
        return found

    async def tombstones_kept_ms(self) -> int:
        """Return how long compaction keeps a tombstone at least, in ms; 0 when the cluster does not show it."""
        try:
            configs = await settings_in_force(self.cluster, self.place.topic)
        except Refused:  # a login that only reads may not be allowed to ask
            return 0
        return int(configs.get("delete.retention.ms") or 0)

    async def _feed(self, feed: Callable[[Batch], None], start: int, end: int) -> int:
        """Pass the batches of `[start, end)` to `feed`; return the offset up to which was read."""
        at = start
        until = time.monotonic() + self.cluster.patience_s
        while at < end:
            before = at
            at = await self.cluster.retrying(partial(self._read_on, feed, at, end))
            if at != before:
                until = time.monotonic() + self.cluster.patience_s
            elif time.monotonic() > until:
                raise Retryable(
                    f"ledger {self.place.topic} stays unreadable at offset {at} on cluster {self.cluster.alias}"
                )
        return at

    async def start(self) -> int:
        """Return the offset of the first record that is kept."""
        await self._known()
        return await self._edge(EARLIEST, leader_known=True)

    async def end(self, *, leader_known: bool = False) -> int:
        """Return the offset after the last record now.

        `leader_known`: the metadata was just asked for, by `find` or `exists`. It is asked for again only after an
        error.
        """
        await self._known()
        return await self._edge(LATEST, leader_known=leader_known)

    @property
    def topic_id(self) -> str:
        """The id that distinguishes the topic from a later one of its name, as the metadata reported it last.

        Empty on brokers without topic ids.
        """
        return self.cluster.topics[self.place.topic].id_text

    async def _edge(self, which: int, *, leader_known: bool) -> int:
        async def action() -> int:
            nonlocal leader_known
            asked = {self.place: which}
            found = await list_offsets(self.cluster, asked, isolation=READ_UNCOMMITTED, leaders_known=leader_known)
            leader_known = False
            if self.place not in found:  # a broker may not know yet of a ledger that was just created
                raise Retryable(
                    f"ledger {self.place.topic} on cluster {self.cluster.alias} has no leader at the moment"
                )
            return found[self.place]

        return await self.cluster.retrying(action)

    async def _read_on(
        self, feed: Callable[[Batch], None], at: int, end: int, partition_bytes: int = _FETCH_BYTES
    ) -> int:
        try:
            leader = self.cluster.leader(self.place)  # first: a ledger that was deleted has no id for the request
            request = fetch_request(
                self.cluster,
                {self.place: at},
                isolation=READ_UNCOMMITTED,
                max_bytes=_FETCH_BYTES,
                partition_bytes=partition_bytes,
                max_wait_ms=200,
            )
            answer = await self.cluster.ask(request, leader)
        except Retryable:
            await self._appender.look_again()
            raise
        for part in fetched(request, answer):
            if part.error_code == codes.OFFSET_OUT_OF_RANGE:
                raise Retryable(f"ledger {self.place.topic}: the new leader does not yet show offset {at}")
            if part.error_code in codes.UNAUTHORIZED:
                raise Refused(
                    f"not allowed to read ledger {self.place.topic} on cluster {self.cluster.alias}: grant READ"
                )
            if part.error_code:
                await self._appender.look_again()
                raise Retryable(
                    f"ledger {self.place.topic} on cluster {self.cluster.alias}: {codes.advised(part.error_code)}"
                )
            for batch in batches(part.records):
                if batch.base_offset >= end:
                    break
                if batch.next_offset > at:
                    try:
                        feed(batch)
                    except (Corrupt, Malformed, TooLong) as error:
                        raise BadInput(unreadable(self.place.topic, batch.base_offset, error)) from error
                    at = batch.next_offset
            if not part.records and part.high_watermark >= end:
                at = end  # compaction left nothing between here and the end
        return at
