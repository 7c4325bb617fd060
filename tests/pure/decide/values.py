"""Facts, plans and receipts for tests: plain ones to change a field of, and any that could be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ferry.ledger.codec import DeletedCopy
from ferry.ledger.units import rest_of
from ferry.model import (
    ChangeKind,
    Epochs,
    Fate,
    Flow,
    Gap,
    LedgerRecord,
    Offsets,
    Origin,
    Pause,
    Plan,
    Reads,
    Receipt,
    Record,
    Refusal,
    RefusalKind,
    Resolution,
    RunRecord,
    Segment,
    Slice,
    ThrottleTime,
    TopicChange,
    TopicPartition,
)
from ferry.model.topic_settings import TopicSettings
from ferry.plan.rules.facts import Facts, LaneFacts, SourceFacts, SourcePartition, SourceTopic, TargetFacts, TargetTopic
from ferry.plan.rules.planning_rules import Rules
from ferry.policy import DefaultReplicationPolicy

FLOW = Flow(source="a", target="b")
LANE = "live"


def place(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic=topic, partition=partition)


# Plain ones

RULES = Rules(
    flow=FLOW,
    lane=LANE,
    policy=DefaultReplicationPolicy(),
    max_tasks=2,
    max_bytes=None,
    max_records=None,
    max_seconds=600,
    replication_factor=3,
    config_excluded=lambda key: key.startswith("follower.") or key == "min.insync.replicas",
    sync_configs=True,
)
RECEIPT = Receipt(
    flow=FLOW,
    lane=LANE,
    run="run-1",
    generation=3,
    slot=0,
    source=place("orders"),
    target=place("a.orders"),
    start=0,
    end=40,
    target_next=40,
    segments=(Segment(source_start=0, target_start=0, count=40),),
    records=40,
    bytes=4000,
    batches=4,
    digest="0badcafe",
    at_ms=2_000,
    source_topic_id="id-orders",
    target_topic_id="id-a.orders",
    source_cluster_id="cluster-a",
)
DELETED = DeletedCopy(
    topic="orders",
    target_topic="a.orders",
    source_topic_id="",
    target_topic_id="",
    ends={0: 40},
    run="run-2",
    at_ms=1_700_000_000_000,
)
"""The copy of `orders`, deleted after its source."""


def redealt(
    one: Receipt,
    *,
    starts: Offsets | None = None,
    ends: Offsets | None = None,
    epochs: Epochs | None = None,
    target_start: int | None = None,
    topic: str | None = None,
    **fields: Any,
) -> Receipt:
    """A dealt receipt with other fields: its sums and its segment fit them."""
    old = one.reads or Reads(starts=(), ends=())
    reads = Reads(
        starts=old.starts if starts is None else starts,
        ends=old.ends if ends is None else ends,
        epochs=old.epochs if epochs is None else epochs,
    )
    made = replace(one, **{"reads": reads, "start": reads.start, "end": reads.end, **fields})
    at = made.target_start or 0 if target_start is None else target_start
    return replace(
        made,
        source=TopicPartition(made.source.topic if topic is None else topic, made.target.partition),
        segments=(Segment(source_start=reads.start, target_start=at, count=made.records),) if made.records else (),
    )


def dealt_slice(
    topic: str = "t",
    *,
    target: TopicPartition,
    starts: Offsets,
    ends: Offsets,
    epochs: Epochs = (),
    slot: int = 0,
    since: int = 1,
    partitions: int = 2,
    digest: str = "d",
    number: int | None = None,
    **fields: Any,
) -> Slice:
    """A slice that records are dealt to; `number` is its own among the topic's, by default the target partition's."""
    reads = Reads(starts=starts, ends=ends, epochs=epochs)
    return Slice(
        source=TopicPartition(topic, target.partition if number is None else number),
        target=target,
        start=reads.start,
        end=reads.end,
        slot=slot,
        since=since,
        partitions=partitions,
        transform_digest=digest,
        reads=reads,
        **fields,
    )


def reading(
    one: Slice,
    *,
    starts: Offsets | None = None,
    ends: Offsets | None = None,
    epochs: Epochs | None = None,
    **fields: Any,
) -> Slice:
    """A dealt slice with other fields."""
    old = one.reads or Reads(starts=(), ends=())
    reads = Reads(
        starts=old.starts if starts is None else starts,
        ends=old.ends if ends is None else ends,
        epochs=old.epochs if epochs is None else epochs,
    )
    return replace(one.reading(reads), **fields)


def starts_left(piece: Slice, last: Receipt | None, generation: int) -> Offsets:
    """Where a slice goes on after the last receipt of its target partition, by source partition."""
    rest = rest_of(piece, last, generation)
    return piece.ends if rest is None else rest.starts


PLAN = Plan(flow=FLOW, lane=LANE, run="run-1", generation=3, slots=2, slices=())


def part(*, log_start: int = 0, end: int = 100, size_bytes: int | None = 10_000, start: int = 0) -> SourcePartition:
    return SourcePartition(log_start=log_start, end=end, size_bytes=size_bytes, start=start)


def topic(
    name: str,
    *partitions: SourcePartition,
    leaderless: tuple[int, ...] = (),
    topic_id: str | None = None,
    configs: Mapping[str, str] | None = None,
    replication_factor: int = 3,
) -> SourceTopic:
    numbers = (number for number in range(len(partitions) + len(leaderless)) if number not in leaderless)
    return SourceTopic(
        name=name,
        topic_id=f"id-{name}" if topic_id is None else topic_id,
        partitions=dict(zip(numbers, partitions, strict=True)),
        leaderless=leaderless,
        replication_factor=replication_factor,
        settings=TopicSettings(own=configs or {}),
    )


def target(
    name: str,
    *ends: int,
    topic_id: str | None = None,
    replicas: Mapping[int, tuple[int, int]] | None = None,
    min_in_sync: int = 1,
    configs: Mapping[str, str] | None = None,
) -> TargetTopic:
    return TargetTopic(
        replicas=replicas or {},
        settings=TopicSettings(own={"min.insync.replicas": str(min_in_sync), **(configs or {})}),
        name=name,
        topic_id=f"id-{name}" if topic_id is None else topic_id,
        partitions=len(ends),
        ends=dict(enumerate(ends)),
    )


FACTS = Facts(
    now_ms=1_000,
    source=SourceFacts(cluster_id="cluster-a", topics={}),
    target=TargetFacts(cluster_id="cluster-b", brokers=3, topics={}),
    lane=LaneFacts(receipts={}, positions={}, starts={}, first_run=False, claims={}, pauses={}),
)


def facts_with(
    facts: Facts,
    *,
    now_ms: int | None = None,
    source: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    lane: Mapping[str, Any] | None = None,
    others: Mapping[str, Any] | None = None,
) -> Facts:
    """The facts with other values in some fields of their parts: `facts_with(FACTS, lane={"first_run": True})`."""
    return Facts(
        now_ms=facts.now_ms if now_ms is None else now_ms,
        source=replace(facts.source, **(source or {})),
        target=replace(facts.target, **(target or {})),
        lane=replace(facts.lane, **(lane or {})),
        others=replace(facts.others, **(others or {})),
    )


def piece(topic: str = "orders", partition: int = 0, *, start: int = 0, end: int = 100, slot: int = 0) -> Slice:
    return Slice(
        source=place(topic, partition),
        target=place(f"a.{topic}", partition),
        start=start,
        end=end,
        slot=slot,
        bytes_estimate=1_000,
        first=False,
    )


def refusal(topic: str = "orders", partition: int | None = 0) -> Refusal:
    return Refusal(topic=topic, partition=partition, kind=RefusalKind.TOO_LARGE, message="too large")


def run_of(run: str, *, lane: str = LANE, slots: int = 2) -> RunRecord:
    return RunRecord(
        flow=FLOW, lane=lane, run=run, slots=slots, config_digest="abc", started_ms=1_000, origin=Origin(host="h")
    )


def lying(*records: Record | tuple[Record, Fate], first: int = 0) -> list[LedgerRecord]:
    """Records as they lie in the ledger from offset `first` on; COMMITTED when no fate is given."""
    pairs = [entry if isinstance(entry, tuple) else (entry, Fate.COMMITTED) for entry in records]
    return [
        LedgerRecord(offset=first + index, key=record.key, value=record.value, fate=fate, producer_id=1)
        for index, (record, fate) in enumerate(pairs)
    ]


# Any that could be

names = st.text("abcxyz019._-", min_size=1, max_size=12)
texts = st.text(max_size=30)
counts = st.integers(0, 2**62)
small = st.integers(0, 9999)
flows = st.builds(Flow, source=names, target=names)
places = st.builds(TopicPartition, topic=names, partition=small)
segments = st.builds(Segment, source_start=counts, target_start=counts, count=counts)
origins = st.builds(Origin, host=texts, dag_id=texts, dag_run_id=texts, try_number=small)
runs = st.builds(
    RunRecord,
    flow=flows,
    lane=names,
    run=texts,
    slots=small,
    config_digest=texts,
    started_ms=counts,
    origin=origins,
    deployment=texts,
    took_over=texts,
)
throttlings = st.builds(ThrottleTime, ferry=counts, source=counts, target=counts)
receipts = st.builds(
    Receipt,
    throttled=throttlings,
    flow=flows,
    lane=names,
    run=texts,
    generation=counts,
    slot=small,
    source=places,
    target=places,
    start=counts,
    end=counts,
    target_next=st.none() | st.integers(0, 2**62),
    segments=st.lists(segments, max_size=3).map(tuple),
    records=counts,
    bytes=counts,
    batches=counts,
    digest=texts,
    at_ms=counts,
    transcoded=counts,
    aborted_batches=counts,
    control_batches=counts,
    missing=st.none() | counts,
    max_timestamp_ms=st.none() | st.integers(0, 2**62),
    source_epoch=st.none() | st.integers(0, 2**31),
    source_topic_id=texts,
    target_topic_id=texts,
    source_cluster_id=texts,
    target_cluster_id=texts,
    since=st.integers(-1, 2**62),
    target_epoch=st.none() | st.integers(0, 2**31),
    adopted=st.sampled_from(["", "mm1", "mm2"]),
    origin=origins,
) | st.builds(replace, st.just(RECEIPT), transform=names, transform_digest=texts)
pauses = st.builds(Pause, topic=names | st.just(""), who=texts, why=texts, since_ms=counts, until_ms=counts)
refusals = st.builds(
    Refusal, topic=names, partition=st.none() | small, kind=st.sampled_from(RefusalKind), message=texts
)
gaps = st.builds(
    Gap,
    source=places,
    start=counts,
    end=counts,
    why=st.sampled_from(RefusalKind),
    run=texts,
    at_ms=counts,
    how=st.sampled_from(Resolution),
    who=texts,
    reason=texts,
    generation=st.integers(-1, 2**62),
    since=st.integers(-1, 2**62),
    void_from=st.none() | st.integers(0, 2**62),
    topic_id=texts,
)
slices = st.builds(
    Slice,
    source=places,
    target=places,
    start=counts,
    end=counts,
    slot=small,
    bytes_estimate=counts,
    first=st.booleans(),
    source_topic_id=texts,
    target_topic_id=texts,
    target_next=st.none() | st.integers(0, 2**62),
    log_start=counts,
    merged=st.booleans(),
    target_end=st.none() | st.integers(0, 2**62),
    since=st.integers(-1, 2**62),
    read_epoch=st.none() | st.integers(0, 2**31),
    read_end=st.none() | st.integers(0, 2**62),
    target_epoch=st.none() | st.integers(0, 2**31),
    transform=st.just("") | names,
    transform_digest=texts,
)
changes = st.builds(
    TopicChange,
    kind=st.sampled_from(ChangeKind),
    topic=names,
    source_topic=names,
    partitions=small,
    replication_factor=small,
    configs=st.dictionaries(names, st.none() | texts, max_size=3).map(lambda configs: tuple(sorted(configs.items()))),
    was=st.dictionaries(names, texts, max_size=3).map(lambda configs: tuple(sorted(configs.items()))),
)
plans = st.builds(
    Plan,
    flow=flows,
    lane=names,
    run=texts,
    generation=counts,
    slots=small,
    slices=st.lists(slices, max_size=5).map(tuple),
    changes=st.lists(changes, max_size=2).map(tuple),
    drift=st.lists(changes, max_size=2).map(tuple),
    refusals=st.lists(refusals, max_size=2).map(tuple),
    notes=st.lists(texts, max_size=2).map(tuple),
    gaps=st.lists(gaps, max_size=2).map(tuple),
    lifted=st.lists(st.sampled_from(RefusalKind), max_size=2).map(tuple),
    paused=st.lists(names, max_size=2).map(tuple),
    flow_paused=st.booleans(),
    source_cluster_id=texts,
    target_cluster_id=texts,
    max_seconds=small,
    caught_up=small,
)
