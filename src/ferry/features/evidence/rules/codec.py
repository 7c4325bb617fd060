"""A report as JSON (docs/schemas/report.json), and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ferry.errors import BadInput, Corrupt
from ferry.features.evidence.rules.canonical import canonical
from ferry.model import Flow, TopicPartition
from ferry.model.evidence import (
    Check,
    Compared,
    EvidenceCluster,
    EvidenceKind,
    EvidenceOutcome,
    EvidenceReport,
    Goal,
    GroupMoved,
    Link,
    Loss,
    Sample,
    Signer,
    StepOutcome,
    TimelineStep,
)

REPORT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedReport:
    """Evidence with its place in a folder: its number, the report before it, and who signs."""

    number: int
    evidence: EvidenceReport
    previous: Link | None
    signer: Signer | None


def encode_report(report: SealedReport) -> bytes:
    """The canonical bytes that are signed, and whose SHA-256 stands in the next report."""
    return canonical(report_json(report))


def report_json(report: SealedReport) -> dict[str, Any]:
    """The same as a JSON object."""
    one, previous, signer = report.evidence, report.previous, report.signer
    return {
        "report": REPORT_VERSION,
        "number": report.number,
        "previous": None
        if previous is None
        else {"name": previous.name, "sha256": previous.sha256, "page_sha256": previous.page_sha256},
        "signer": None if signer is None else {"algorithm": signer.algorithm, "key_sha256": signer.key_sha256},
        **evidence_json(one),
    }


def evidence_json(one: EvidenceReport) -> dict[str, Any]:
    """The evidence alone, which knows no folder."""
    checked = one.verification
    return {
        "id": one.id,
        "kind": one.kind.value,
        "flow": str(one.flow),
        "lane": one.lane,
        "policy": one.policy,
        "clusters": [
            {"alias": each.alias, "cluster_id": each.cluster_id, "brokers": each.brokers} for each in one.clusters
        ],
        "who": one.who,
        "version": one.version,
        "began_ms": one.began_ms,
        "ended_ms": one.ended_ms,
        "outcome": one.outcome.value,
        "summary": one.summary,
        "rpo": {
            "at_ms": one.losses_at_ms or None,
            "records": one.lost_records,
            "seconds": one.lost_seconds,
            "partitions": [_loss_json(loss) for loss in one.losses],
        },
        "rto": {"seconds": one.rto_s, "means": one.rto_means, "from_start_seconds": one.from_start_s},
        "goals": [
            {"name": goal.name, "unit": goal.unit, "wanted": goal.wanted, "measured": goal.measured, "met": goal.is_met}
            for goal in one.goals
        ],
        "steps": [_step_json(step) for step in one.steps],
        "groups": [_group_json(group) for group in one.groups],
        "verification": None
        if checked is None
        else {
            "equal": checked.equal,
            "complete": checked.complete,
            "partitions": checked.partitions,
            "records": checked.records,
            "bytes": checked.bytes,
            "seconds": checked.seconds,
            "differences": checked.differences,
            "findings": list(checked.findings),
        },
        "samples": [
            {
                "at_ms": sample.at_ms,
                "lag_records": sample.lag_records,
                "records_per_second": sample.records_per_second,
                "bytes_per_second": sample.bytes_per_second,
            }
            for sample in one.samples
        ],
        "checks": [{"name": check.name, "held": check.held, "detail": check.detail} for check in one.checks],
        "would": list(one.would),
        "deviations": list(one.deviations),
        "refusals": list(one.refusals),
        "notes": list(one.notes),
    }


def _loss_json(loss: Loss) -> dict[str, Any]:
    return {
        "topic": loss.source.topic,
        "partition": loss.source.partition,
        "target_topic": loss.target.topic,
        "target_partition": loss.target.partition,
        "position": loss.position,
        "source_end": loss.source_end,
        "records": loss.records,
        "bytes": loss.bytes,
        "seconds": loss.seconds,
    }


def _step_json(step: TimelineStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "title": step.title,
        "began_ms": step.began_ms,
        "ended_ms": step.ended_ms,
        "outcome": step.outcome.value,
        "detail": step.detail,
        "approved_by": step.approved_by or None,
        "approved_ms": step.approved_ms or None,
    }


def _group_json(group: GroupMoved) -> dict[str, Any]:
    return {
        "group": group.group,
        "target_group": group.target_group,
        "partitions": group.partitions,
        "committed": group.committed,
        "exact": group.exact,
        "reread": group.reread,
        "skipped": group.skipped,
        "beyond": group.beyond,
        "note": group.note,
        **({} if group.lag is None else {"lag": group.lag}),
    }


def decode_report(content: bytes, name: str) -> SealedReport:
    """A report from its bytes; Corrupt, naming the file, for what is none, or is written by a later Ferry."""
    try:
        body = json.loads(content)
        version = body["report"]
        if version != REPORT_VERSION:
            raise Corrupt(f"{name} is a report of version {version}: read it with the Ferry that wrote it, or a newer")
        return _sealed(body)
    except Corrupt:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, BadInput) as error:
        raise Corrupt(f"{name} is no report of Ferry ({type(error).__name__}: {error}): somebody changed it") from None


def _sealed(body: Mapping[str, Any]) -> SealedReport:
    previous, signer = body["previous"], body["signer"]
    return SealedReport(
        number=int(body["number"]),
        evidence=_evidence(body),
        previous=None if previous is None else Link(**previous),
        signer=None if signer is None else Signer(**signer),
    )


def _evidence(body: Mapping[str, Any]) -> EvidenceReport:
    checked = body["verification"]
    return EvidenceReport(
        id=body["id"],
        kind=EvidenceKind(body["kind"]),
        flow=Flow.parse(body["flow"]),
        lane=body["lane"],
        policy=body["policy"],
        clusters=tuple(EvidenceCluster(**each) for each in body["clusters"]),
        who=body["who"],
        version=body["version"],
        began_ms=body["began_ms"],
        ended_ms=body["ended_ms"],
        outcome=EvidenceOutcome(body["outcome"]),
        summary=body["summary"],
        steps=tuple(
            TimelineStep(
                **{
                    **each,
                    "outcome": StepOutcome(each["outcome"]),
                    "approved_by": each["approved_by"] or "",
                    "approved_ms": each["approved_ms"] or 0,
                }
            )
            for each in body["steps"]
        ),
        goals=tuple(
            Goal(**{key: each[key] for key in ("name", "unit", "wanted", "measured")}) for each in body["goals"]
        ),
        losses=tuple(_loss(each) for each in body["rpo"]["partitions"]),
        losses_at_ms=body["rpo"]["at_ms"] or 0,
        rto_s=body["rto"]["seconds"],
        rto_means=body["rto"]["means"],
        from_start_s=body["rto"].get("from_start_seconds"),  # an earlier Ferry did not measure it
        groups=tuple(GroupMoved(**each) for each in body["groups"]),
        verification=None if checked is None else Compared(**{**checked, "findings": tuple(checked["findings"])}),
        samples=tuple(Sample(**each) for each in body["samples"]),
        checks=tuple(Check(**each) for each in body["checks"]),
        would=tuple(body["would"]),
        deviations=tuple(body["deviations"]),
        refusals=tuple(body["refusals"]),
        notes=tuple(body["notes"]),
    )


def _loss(body: Mapping[str, Any]) -> Loss:
    return Loss(
        source=TopicPartition(body["topic"], body["partition"]),
        target=TopicPartition(body["target_topic"], body["target_partition"]),
        **{key: body[key] for key in ("position", "source_end", "records", "bytes", "seconds")},
    )
