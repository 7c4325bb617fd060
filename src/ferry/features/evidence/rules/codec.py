"""A report as JSON (docs/schemas/report.json), and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, enum, fields, filled, many, optional, typed
from ferry.errors import MALFORMED, BadInput, Corrupt
from ferry.features.evidence.rules.canonical import canonical
from ferry.features.evidence.rules.ways import ways_of
from ferry.ledger.codec import SOURCE, TARGET
from ferry.model import Flow
from ferry.model.check import Check
from ferry.model.evidence import (
    Compared,
    EvidenceCluster,
    EvidenceKind,
    EvidenceOutcome,
    EvidenceReport,
    Goal,
    GroupMoved,
    Link,
    Loss,
    PassedOver,
    Sample,
    Signer,
    StepOutcome,
    TimelineStep,
    Way,
)

REPORT_VERSION, WAYS_VERSION = 1, 2
"""The version of a report, and of one about both ways of a full drill: an earlier Ferry would mix them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedReport:
    """Evidence with its place in a folder: its number, the report before it, and the key that signs it."""

    number: int
    evidence: EvidenceReport
    previous: Link | None
    signer: Signer | None


VIA = F(
    "via",
    default="",
    omit=lambda one: not one.via,
    says="source->target, the flow that it is of; absent: the report's own",
)

LOSS = Form(
    Loss,
    *SOURCE,
    *TARGET,
    F("position", least=None, says="source offset that is not copied yet"),
    F("source_end", least=None),
    F("records"),
    F("bytes", says="an estimate"),
    F("seconds", says="age of the oldest record that is not copied"),
    VIA,
)

PASSED_OVER = Form(
    PassedOver,
    F("topic", "source.topic"),
    F("partition", "source.partition", least=-1, says="-1: the topic is repartitioned, so it is of all its partitions"),
    F("start", least=None, says="first source offset in it; null: not known, so their number is not known"),
    F("end", says="the offset after it"),
    F(
        "why",
        says="start: before the start of the lane; stranded: a switch left them out; dead-letters: a transform failed "
        "on records; adopted: from before an adoption; otherwise the kind of the refusal that was lifted",
    ),
    F("who", default="", says="who decided it, or the key of the policy; empty: not recorded"),
    F("reason", default=""),
    VIA,
    F(
        "records",
        kind=typed(int | None),
        default=None,
        omit=lambda one: not one.is_counted,
        says="of dead-letters and adopted: so many records of these offsets the target lacks; null: not known; absent: "
        "it lacks all of them",
    ),
)


STEP = Form(
    TimelineStep,
    F("name"),
    F("title"),
    F("began_ms"),
    F("ended_ms"),
    F("outcome", kind=enum(StepOutcome)),
    F("detail", default=""),
    F("approved_by", kind=filled(""), says="null: no approval was asked for"),
    F("approved_ms", kind=filled(0)),
    closed=True,
)

GROUP = Form(
    GroupMoved,
    F("group"),
    F("target_group"),
    F("partitions"),
    F("committed", says="partitions whose offset was written"),
    F("exact", says="partitions that continue at the same record; null: not compared"),
    F("reread", says="records read twice, of the partitions that are committed; null: not known"),
    F("skipped", says="records never read, of the partitions that are committed; null: not known"),
    F("beyond", default=None, says="source offsets that the group had read beyond what was copied; null: not known"),
    F("note", default=""),
    F(
        "lag",
        kind=typed(int),
        default=None,
        omit=lambda group: group.lag is None,
        says="source offsets that the group had not read before anything was changed; absent: not known",
    ),
    VIA,
    closed=True,
)

SAMPLE = Form(
    Sample,
    F("at_ms"),
    F("lag_records"),
    F("records_per_second"),
    F("bytes_per_second"),
    VIA,
    closed=True,
)

GOAL = Form(
    Goal,
    F("name"),
    F("unit"),
    F("wanted", says="at most; null: no goal"),
    F("measured"),
    F("met", lambda goal: goal.is_met, typed(bool | None), says="null without a goal"),
    F("of", default="", omit=lambda goal: not goal.of, says="what alone it is about; absent: all"),
)

CHECK = Form(Check, F("name"), F("held", "ok"), F("detail", "message"))

COMPARED = Form(
    Compared,
    *map(F, ("equal", "complete", "partitions", "records", "bytes", "seconds", "differences")),
    F("findings", kind=many()),
    closed=True,
)

# The objects inside a report; `_evidence` reads them.
_MEASURED = (
    F("at_ms", "losses_at_ms", filled(0), says="when it was measured; null: it was not"),
    F("records", "lost_records", says="of all partitions, at most; null: there is none, or one is not known"),
    F("seconds", "lost_seconds", says="the largest age of what the target lacks; null: not known"),
    F(
        "dead_letters",
        omit=lambda _: False,  # always written; a kept report may lack it
        says="records that became dead letters in place of copies; null: not known",
    ),
    F(
        "before_adoption",
        omit=lambda _: False,  # as above
        says="records that another replicator left out; 0: the lane took over nothing; null: not known",
    ),
)
WAY = Form(EvidenceReport, F("via", "flow", FLOW, says="the flow along which clients moved"), *_MEASURED, name="way")
RPO = Form(
    EvidenceReport,
    *(replace(one, says=f"{one.says}. Of a full drill always null: see ways") for one in _MEASURED),
    F(
        "ways",
        lambda report: list(map(WAY.dump, ways_of(report))),
        Kind(schema=lambda: {"type": "array", "items": WAY.schema()}),
        omit=lambda report: not report.ways,
        says="of a full drill: each way that was begun, apart; absent: another report, or one in "
        "which both ways are mixed",
    ),
    F("partitions", "losses", many(LOSS.kind)),
    F(
        "passed_over",
        kind=optional(many(PASSED_OVER.kind)),
        omit=lambda _: False,  # as above
        says="source offsets that were never copied on purpose, which are not part of `records`, and records that are "
        "not on the target for another reason; null or absent: not known",
    ),
    name="rpo",
)

RTO = Form(
    EvidenceReport,
    F("seconds", "rto_s", says="of a failover from the loss; null: not known, or not measured"),
    F("means", "rto_means", says="what it was taken of, or why it is not known"),
    F(
        "from_start_seconds",
        "from_start_s",
        omit=lambda _: False,  # always written; a kept report may lack it
        says="of a switch and a full drill: from the start of the command to the end that the RTO has; null or "
        "absent: not known, or not measured",
    ),
    F(
        "first_record_seconds",
        "first_record_s",
        omit=lambda _: False,  # as above
        says="until a consumer of a group of the new cluster had its first record; null or absent: not known, or not "
        "measured",
    ),
    F(
        "first_record_means",
        omit=lambda _: False,  # as above
        says="from when that counts, or why it is not known; empty: nothing was to be measured",
    ),
    name="rto",
)

EVIDENCE = Form(
    EvidenceReport,
    F("id", says="unique in the flow"),
    F("kind", kind=enum(EvidenceKind), says="the first four are drills"),
    F("flow", kind=FLOW),
    F("lane"),
    F("policy", says="the replication policy"),
    F("clusters", kind=many(fields(EvidenceCluster))),
    F("who", says="who began it: a person at a terminal, or a DAG"),
    F(
        "asked_by",
        default="",
        omit=lambda one: not one.asked_by,
        says="the user of Airflow who started the DAG; not there: not known, or in no DAG",
    ),
    F(
        "reason",
        default="",
        omit=lambda one: not one.reason,
        says="why it was started, in that user's words; not there: not recorded",
    ),
    F("version", says="of Ferry"),
    F("began_ms"),
    F("ended_ms"),
    F(
        "outcome",
        kind=enum(EvidenceOutcome),
        says="deviations: all was done, and something was not as it should be",
    ),
    F("summary"),
    F("rpo", RPO.dump, Kind(schema=RPO.schema)),
    F("rto", RTO.dump, Kind(schema=RTO.schema)),
    F("goals", kind=many(GOAL.kind)),
    F("steps", kind=many(STEP.kind)),
    F("groups", kind=many(GROUP.kind)),
    F("verification", kind=optional(COMPARED.kind)),
    F("samples", kind=many(SAMPLE.kind), says="lag and throughput while records were copied"),
    F("checks", kind=many(CHECK.kind)),
    F("would", kind=many(), says="what was not done but would be"),
    F("deviations", kind=many()),
    F("refusals", kind=many()),
    F("notes", kind=many()),
)

evidence_json = EVIDENCE.dump
"""Make the JSON object of the evidence, without its place in a folder."""

LINK = optional(fields(Link, page_sha256="of its page"))
SIGNER = optional(fields(Signer, key_sha256="of the public key's SubjectPublicKeyInfo"))

REPORT = Form(
    SealedReport,
    F(
        "report",
        lambda report: WAYS_VERSION if report.evidence.ways else REPORT_VERSION,
        Kind(schema=lambda: {"enum": [REPORT_VERSION, WAYS_VERSION]}),
        says="the version of this shape; 2: of a full drill, with ways",
    ),
    F("number", least=1, says="its place in the folder"),
    F("previous", kind=LINK, says="the report before it; null: it is the first"),
    F("signer", kind=SIGNER, says="null: it is not signed"),
    *EVIDENCE.within("evidence"),
)


def encode_report(report: SealedReport) -> bytes:
    """Return the canonical bytes that are signed, and whose SHA-256 is in the next report."""
    return canonical(REPORT.dump(report))


def decode_report(content: bytes, name: str) -> SealedReport:
    """Parse a report. Raises Corrupt, with the file's name, for other content and for a report of a later Ferry."""
    try:
        body = json.loads(content)
        version = body["report"]
        if version not in (REPORT_VERSION, WAYS_VERSION):
            raise Corrupt(f"{name} is a report of version {version}: read it with the Ferry that wrote it, or a newer")
        return _sealed(body)
    except Corrupt:
        raise
    except (*MALFORMED, BadInput) as error:
        raise Corrupt(f"{name} is not a report of Ferry ({type(error).__name__}: {error}): it was changed") from None


def _sealed(body: dict[str, Any]) -> SealedReport:
    previous, signer = body["previous"], body["signer"]
    return SealedReport(
        number=int(body["number"]),
        evidence=_evidence(body),
        previous=None if previous is None else Link(**previous),
        signer=None if signer is None else Signer(**signer),
    )


def _evidence(body: dict[str, Any]) -> EvidenceReport:
    rpo, rto = body["rpo"], body["rto"]
    return EVIDENCE.load(
        body,
        losses=tuple(map(LOSS.load, rpo["partitions"])),
        losses_at_ms=rpo["at_ms"] or 0,
        ways=tuple(Way(flow=Flow.parse(way["via"]), losses_at_ms=way["at_ms"] or 0) for way in rpo.get("ways", ())),
        passed_over=_passed_over(rpo),
        rto_s=rto["seconds"],
        rto_means=rto["means"],
        from_start_s=rto.get("from_start_seconds"),  # an earlier Ferry did not measure it
        first_record_s=rto.get("first_record_seconds"),  # as above
        first_record_means=rto.get("first_record_means", ""),
    )


def _passed_over(rpo: dict[str, Any]) -> tuple[PassedOver, ...] | None:
    """Return what the target lacks; an earlier Ferry did not record it, or not the dead letters."""
    rows = rpo.get("passed_over") if "dead_letters" in rpo else None
    return None if rows is None else tuple(map(PASSED_OVER.load, rows))
