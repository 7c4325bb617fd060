"""Evidence of drills that never were, for what is done with reports."""

from __future__ import annotations

from dataclasses import replace

from ferry.model import Flow, TopicPartition
from ferry.model.check import Check
from ferry.model.evidence import (
    Compared,
    EvidenceCluster,
    EvidenceKind,
    EvidenceOutcome,
    EvidenceReport,
    Goal,
    GroupMoved,
    Loss,
    Sample,
    StepOutcome,
    TimelineStep,
)

AT = 1_790_000_000_000
STEPS = ("Read both clusters", "Copy to scratch topics", "Translate groups", "Compare content")


def loss(partition: int, records: int | None, seconds: float | None, topic: str = "orders") -> Loss:
    return Loss(
        source=TopicPartition(topic, partition),
        target=TopicPartition(f"primary.{topic}", partition),
        position=1_000,
        source_end=None if records is None else 1_000 + records,
        records=records,
        bytes=None if records is None else records * 100,
        seconds=seconds,
    )


EVIDENCE = EvidenceReport(
    id="drill-1",
    kind=EvidenceKind.SHADOW,
    flow=Flow(source="primary", target="backup"),
    lane="drill-1",
    policy="DefaultReplicationPolicy",
    clusters=(
        EvidenceCluster(alias="primary", cluster_id="one", brokers=3),
        EvidenceCluster(alias="backup", cluster_id="two", brokers=1),
    ),
    who="ops@bastion",
    version="0.1.0",
    began_ms=AT,
    ended_ms=AT + 96_400,
    outcome=EvidenceOutcome.DEVIATIONS,
    summary="everything is equal, and the RPO is missed",
    steps=tuple(
        TimelineStep(
            name=title.split()[0].lower(),
            title=title,
            began_ms=AT + 20_000 * number,
            ended_ms=AT + 20_000 * number + 15_500,
            outcome=StepOutcome.DONE,
            detail="12 partitions",
            approved_by="anna@ops" if number == 2 else "",
            approved_ms=AT + 39_000 if number == 2 else 0,
        )
        for number, title in enumerate(STEPS)
    ),
    goals=(
        Goal(name="RPO, age of the oldest record lost", unit="s", wanted=10, measured=12.345),
        Goal(name="RTO", unit="s", wanted=None, measured=4.2),
    ),
    losses=(loss(0, 0, 0.0), loss(1, 89, 12.345), loss(2, 5, 0.5)),
    losses_at_ms=AT + 1_000,
    passed_over=(),
    rto_s=4.2,
    rto_means="from the loss of primary until groups read at backup",
    groups=(
        GroupMoved(group="billing", target_group="b.drill", partitions=8, committed=8, exact=8, reread=0, skipped=0),
    ),
    verification=Compared(
        equal=True, complete=True, partitions=3, records=1_048_576, bytes=2_200_000, seconds=18.7, differences=0
    ),
    samples=tuple(
        Sample(at_ms=AT + 1_000 * n, lag_records=1_000 - 100 * n, records_per_second=100, bytes_per_second=1e6 + n)
        for n in range(10)
    ),
    checks=(Check(name="Production topics untouched", ok=True, message="3 topics are what they were"),),
    deviations=("the oldest record that would be lost is 12.3 s old, the goal is 10 s",),
    notes=("a note with <b>markup</b> & a group's name: \N{LATIN SMALL LETTER E WITH ACUTE}",),
)


def evidence(name: str) -> EvidenceReport:
    return replace(EVIDENCE, id=name)
