"""The JSON that commands answer with: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import FLOW, SECONDS, Kind, enum, fields, filled, many, optional, or_minus_one, row, typed
from ferry.codec.schema import described, object_of, of_type
from ferry.commands.flow_status import FlowStatus
from ferry.config.reasons import Why
from ferry.features.groups.cli.forms import GROUPS
from ferry.ledger.acl_codec import ACL_CHANGE
from ferry.ledger.adoption_codec import ADOPTION
from ferry.ledger.codec import GAP, TARGET, gap_json
from ferry.ledger.history import Forgotten, Holder, PastRun, PastState
from ferry.ledger.progress import Progress
from ferry.ledger.pruning import PRUNED_FORM, Pruned
from ferry.ledger.receipt_codec import DEALT_RECEIPT, ORIGIN, RECEIPT, THROTTLED_SAYS, receipt_json
from ferry.ledger.repartitioned_at import Dealt, DealtAt
from ferry.ledger.report import GuardCount, Report, RunState, guard_counts, unfinished_sentence
from ferry.ledger.run_codec import REFUSAL, refusal_json
from ferry.ledger.sentence_codec import noted_in
from ferry.ledger.slice_codec import CHANGE, SLICE
from ferry.ledger.verified_codec import RUN_VERIFIED
from ferry.model import Adoption, Flow, Gap, Pause, Plan, Receipt, Refusal, Segment, Slice, Unsupported
from ferry.plan.rules.lag import PartitionLag, TotalLag, total_of

UNFINISHED = "unfinished"
"""A kind in addition to those of refusals: a slice that was not refused, but was not copied to its end."""


def guards_json(refusals: Iterable[Refusal], plan: Plan) -> Json:
    """Return how often each guard refused, skipped and restarted; guards that did none of these are left out."""
    return {kind: asdict(count) for kind, count in guard_counts(refusals, plan.gaps, plan.lifted).items()}


_GUARDS = typed(Mapping[str, GuardCount])
_GUARDS_SAY = "guards that tripped, by the refusal's word, with how often each refused, skipped and restarted"
_GAPS_SAY = "what policies skipped, or went back from, in place of refusals"
_DRIFT_SAYS = "settings that differ from the source and are left alone, because sync.topic.configs.enabled is false"
_UNCOUNTED_SAYS = (
    "slices whose receipts are forgotten, because their copies were deleted later: no figure has them; absent: none"
)
_UNIT = (
    F("topic", "source.topic", says="name at the source"),
    *TARGET,
)

UNIT = Form(
    Slice,
    *_UNIT,
    F("partitions", least=1, says="to which records are assigned by their keys"),
    F("offsets", says="source offsets, of all partitions together, that are read for it"),
    F("slot", says="the task that copies it"),
    name="unit",
)
"""What a run would write to one target partition of a repartitioned topic."""

PLAN = Form(
    Plan,
    F("flow", kind=FLOW),
    F("lane"),
    F("slices", lambda plan: plan.kept, many(SLICE.kind)),
    F("changes", kind=many(CHANGE.kind), says="to the target's topics, before the copy"),
    F("drift", kind=many(CHANGE.kind), says=_DRIFT_SAYS),
    F(
        "not_copied",
        kind=many(
            fields(
                Unsupported,
                what="a stable word; more may come",
                count="null: the cluster does not report it, or nothing to count",
                message="one sentence with what to do",
            )
        ),
        says="what belongs to the source and is left to the operator",
    ),
    F("acls", kind=many(ACL_CHANGE.kind), says="to the target's ACLs, before the copy"),
    F("refusals", kind=many(REFUSAL.kind)),
    F("notes", kind=many()),
    noted_in("notes"),
    F("gaps", kind=many(GAP.kind), says=_GAPS_SAY),
    F("guards", lambda plan: guards_json(plan.refusals, plan), _GUARDS, says=_GUARDS_SAY),
    F("paused", kind=many(), says="source topics held back"),
    F("flow_paused", says="whether the whole flow is paused"),
    F(
        "units",
        lambda plan: plan.dealt,
        many(UNIT.kind),
        omit=lambda plan: not plan.dealt,
        says="of repartitioned topics: what goes to each target partition; absent: none",
    ),
)

plan_json = PLAN.dump
"""`ferry plan`: what a run would do now."""


def _verification(report: Report) -> Json:
    """Return what a run's own verification found, counted as a guard's refusals."""
    found = report.verified
    if found is None or found.equal:
        return {}
    refused = len(found.differences) + found.more + len(found.not_compared)
    return {"verification": asdict(GuardCount(refused=refused))}


def _key(why: Why) -> str | None:
    return None if why.setting is None else why.setting.key or why.setting.name


WHY = Form(
    Why,
    F("taken"),
    F("reason"),
    F("key", _key, typed(str | None), says="the key that decided; null: no key can change it"),
    F(
        "line",
        lambda why: None if why.setting is None else why.setting.line,
        typed(int | None, None),
        says="null: the default",
    ),
    F("item", says="the item of the key's list"),
)

why_json = WHY.dump
"""`ferry plan --explain`: one verdict."""

_SHORT = (
    "topic", "partition", "target_topic", "target_partition", "start", "end", "segments", "records", "bytes", "missing",
    "transform",
)  # fmt: skip
SHORT_RECEIPT = Form(Receipt, *(one for name in _SHORT for one in RECEIPT.table if one.name == name))
"""The part of a receipt that shows what was copied and where to."""

SHORT_UNIT = Form(
    Receipt,
    *_UNIT,
    F("target_start", kind=or_minus_one(None), says="of its first record; -1: it has none"),
    F("target_next", kind=or_minus_one(None), says="target offset after the last record; -1: none yet"),
    F(
        "offsets",
        lambda unit: unit.end - unit.start,
        typed(int),
        says="source offsets, of all partitions together, that were read for it",
    ),
    F("records"),
    F("bytes", says="as stored, compressed"),
    name="unit_receipt",
)
"""The part of a unit's receipt that shows what was written to which target partition."""


def _refusals_json(report: Report) -> list[Json]:
    """Return what was refused, and what was not refused but not copied to its end."""
    return [refusal_json(refusal) for refusal in report.refusals] + [
        {
            "topic": piece.source.topic,
            "partition": piece.source.partition,
            "kind": UNFINISHED,
            "message": unfinished_sentence(report, piece),
        }
        for piece in (*report.unfinished, *report.later)
    ]


_TRANSFORMED = Kind(
    lambda sifted: [
        {"topic": topic, "read": one.read, "left_out": one.left_out} for topic, one in sorted(sifted.items())
    ],
    schema=lambda: {
        "type": "array",
        "items": object_of(
            {
                "topic": described(of_type(str), "the source's"),
                "read": described(of_type(int), "records that its transform was given in the last attempt"),
                "left_out": described(of_type(int), "those of them that it left out"),
            }
        ),
    },
)

RUN = Form(
    Report,
    F("run", "plan.run"),
    F("flow", "plan.flow", FLOW),
    F("state", kind=enum(RunState)),
    F(
        "superseded_by",
        "superseded",
        filled(""),
        says="the newest run of the lane, where it began before this one was finished: it, or the next run, copies "
        "the rest",
    ),
    F("slices", lambda report: len(report.plan.kept), typed(int), says="slices of the plan"),
    F("records", says="copied"),
    F("bytes", says="copied, as stored"),
    F("transcoded", says="batches that could not be copied as bytes and were rewritten record by record"),
    F("missing", says="offsets in what was copied of which the source has no record"),
    F(
        "dead_letters",
        says="records that a transform could not be applied to, and that are among the dead letters",
    ),
    F("transformed", "sifted", _TRANSFORMED, says="of topics with a transform, counted while records were read"),
    F("seconds", kind=SECONDS, says="from opening the run to its last receipt"),
    F("changes", "plan.changes", many(CHANGE.kind), says="made to the target's topics before the copy"),
    F("drift", "plan.drift", many(CHANGE.kind), says=_DRIFT_SAYS),
    F(
        "throttled_seconds",
        lambda report: {name: ms / 1000 for name, ms in asdict(report.throttled).items()},
        Kind(
            schema=lambda: object_of(
                {name: {**of_type(float), "minimum": 0, "description": says} for name, says in THROTTLED_SAYS.items()}
            )
        ),
        says="how long tasks were held back, added up over tasks",
    ),
    F("paused", "plan.paused", many(), says="source topics that are paused, of which nothing was copied"),
    F(
        "flow_paused",
        "plan.flow_paused",
        says="true: the whole flow was paused, so the run copied nothing; runs of an earlier Ferry have false",
    ),
    F("refusals", _refusals_json, Kind(schema=many(REFUSAL.kind).schema), says="what was not (wholly) copied"),
    F("gaps", "plan.gaps", many(GAP.kind), says=_GAPS_SAY),
    F(
        "guards",
        lambda report: guards_json(report.refusals, report.plan) | _verification(report),
        _GUARDS,
        says=_GUARDS_SAY,
    ),
    F("acls", "plan.acls", many(ACL_CHANGE.kind), says="to the target's ACLs, before the copy"),
    F("groups", kind=optional(GROUPS.kind), says="null: the consumer groups were not checked"),
    F("verified", kind=optional(RUN_VERIFIED.kind), says="null: the run did not verify itself"),
    F("notes", kind=many(), says="of the plan, and of what was copied"),
    noted_in("notes"),
    F("receipts", lambda report: report.kept, many(SHORT_RECEIPT.kind)),
    F(
        "units",
        lambda report: report.dealt,
        many(SHORT_UNIT.kind),
        omit=lambda report: not report.dealt,
        says="of repartitioned topics: what went to each target partition; absent: nothing",
    ),
    F(
        "uncounted",
        lambda report: len(report.uncounted),
        typed(int, 1),
        omit=lambda report: not report.uncounted,
        says=_UNCOUNTED_SAYS,
    ),
)

run_json = RUN.dump
"""`ferry run`: the outcome of a run."""

LAG = Form(
    PartitionLag,
    F("topic", "source.topic", says="name at the source"),
    F(
        "partition",
        "source.partition",
        says="0 also for a topic that the login may not see: which partitions it has is not known",
    ),
    *TARGET,
    F("position", least=None, says="source offset that the next run begins at"),
    F(
        "source_end",
        least=None,
        says="the high watermark; null: the partition has no leader, the topic is gone, or the login may not see it",
    ),
    F("lag_records", "records", least=None, says="offsets not yet copied, an upper bound of the records"),
    F("lag_bytes", "bytes", least=None, says="an estimate; nothing of the data is read"),
    F(
        "lag_bytes_from",
        "bytes_from",
        says="what the estimate is made from: the average of the source's whole log by its size on disk; the average "
        "of the chunk that was copied last; 1024 bytes for each offset",
    ),
    F(
        "lag_seconds",
        "seconds",
        says="age of the oldest record not yet copied, by the first timestamp of its batch; 0: none; null: its "
        "timestamp is not known",
    ),
)
"""The lag of a partition; null where it is not known."""

TOTAL_LAG = fields(
    TotalLag,
    behind="partitions with something to copy",
    unknown="partitions whose lag or age is not known; the sums do not include them",
    seconds="the greatest of the known ages; null: only partitions of unknown age have lag",
)


PROGRESS = fields(
    Progress,
    slices="slices of the plan",
    done="those that are committed to their end",
    offsets="source offsets of the plan",
    passed="those that are committed or sent; of a transformed or repartitioned topic only committed ones",
    records="committed ones",
    bytes="committed ones",
    sent="records that are sent and not committed, about",
    sent_bytes="about; null: not known",
    unseen="slices that are not done and of which the target did not show what is sent",
    bytes_per_second="null: not measured, or nothing is sent yet",
    offsets_per_second="null: not measured, or nothing is sent yet",
)

STATUS = Form(
    FlowStatus,
    F("flow", kind=FLOW),
    F("lane"),
    F("state", kind=optional(enum(PastState)), says="of the newest run; null: the flow never ran, or is not known"),
    F("run", says="its id"),
    F("started_ms"),
    F(
        "silent_since_ms",
        says="when it last wrote to the ledger, if it has not ended and wrote nothing for 15 minutes; else null",
    ),
    F("records", says="what it copied; null: it has no plan"),
    F("progress", kind=optional(PROGRESS), says="how far the newest run has come; null: it is not open, or not known"),
    F("paused", kind=many(), says="topics that are paused; an empty name is the whole flow"),
    F("lag", kind=optional(TOTAL_LAG), says="null: not known"),
    F(
        "over_rpo",
        says="partitions beyond ferry.rpo.*, also those whose lag is not known; null: no limit is set, or the flow is "
        "not known",
    ),
    F(
        "late",
        says="whether ferry.alert.late.intervals times of ferry.schedule have passed since a run last succeeded, or "
        "since the first run if none has; null: the flow never ran, is paused or not known, or has no schedule or 0 "
        "intervals. Also null if its newest runs do not show it",
    ),
    F(
        "next_ms",
        says="the next time of the schedule; null: there is none, or the flow is paused. Of a flow that is not known "
        "also while it may be paused. A lag that starts runs (ferry.schedule.lag.*) has no time",
    ),
    F("words", kind=many(), says="the words of the page that apply to the flow, as in docs/troubleshooting.md"),
    F("why", says="why the flow is not known; else empty"),
)

status_json = STATUS.dump
"""Return the JSON of one flow of `ferry status`."""


def lag_json(lags: list[PartitionLag]) -> Json:
    """Return the JSON of `ferry lag`: the lag of every partition, and of all together."""
    return {"partitions": [LAG.dump(lag) for lag in lags], "total": asdict(total_of(lags))}


def receipts_json(receipts: list[Receipt], units: list[Receipt], of_run: PastRun | Forgotten | None = None) -> Json:
    """Return the JSON of `ferry ledger`: receipts as in the ledger, and the run that was asked for, or null."""
    return {
        "receipts": [receipt_json(receipt) for receipt in receipts],
        **({"units": [receipt_json(unit) for unit in units]} if units else {}),
        "run": None if of_run is None else _past_run_json(of_run),
    }


REPORT = Form(Report, *(one for one in RUN.table if one.name not in ("run", "flow", "receipts", "units")))

report_json = REPORT.dump
"""What became of a run, without its identity and its receipts."""
"""A run as in `ferry run`, without the fields that its surroundings have already."""


def _past_run_json(past: PastRun | Forgotten) -> Json:
    """Return a run as JSON; report null: it has no sealed plan, or the ledger has pruned it."""
    if isinstance(past, Forgotten):
        return {"run": past.run, "state": "forgotten", "report": None}
    report = None if past.report is None else REPORT.dump(past.report)
    return {"run": past.opened.record.run, "state": past.state.value, "report": report}


HOLDER = Form(
    Holder,
    *RECEIPT.within("receipt"),
    F(
        "segment",
        kind=optional(row(Segment)),
        says="the segment that holds the offset; null: it is in a gap",
    ),
    F("target_offset", least=None),
    F(
        "void",
        kind=optional(GAP.kind),
        says="why the receipt is no longer valid for the offset; null: it is valid",
    ),
)

ADOPTED = Form(Adoption, *(one for one in ADOPTION.table if one.name != "v"))

PRUNED = Form(
    Pruned,
    *PRUNED_FORM.table,
    F("target_topic", "copy.target.topic"),
    F("target_partition", "copy.target.partition"),
)

DEALT = Form(
    DealtAt,
    *TARGET,
    F(
        "offset",
        "state",
        enum(Dealt),
        says="a chunk has it; its receipt has gone with its run; it is before the current rule; not copied yet",
    ),
    F("without_key", "keyless", says="whether a record without a key goes there"),
    F("chunk", kind=optional(DEALT_RECEIPT.kind), says="null: no receipt has it"),
)


def holders_json(
    found: list[Holder], skipped: list[Gap], adopted: list[Adoption], gone: list[Pruned], units: list[DealtAt]
) -> Json:
    """Return the JSON of `ferry ledger --offset`: the receipts that hold an offset, with segment and target offset.

    Both are null for an offset in a gap. For a repartitioned topic it has the chunk of each target partition, null if
    none holds the offset.
    """
    return {
        **({"dealt": [DEALT.dump(one) for one in units]} if units else {}),
        "adopted": [ADOPTED.dump(one) for one in adopted],
        "skipped": [gap_json(gap) for gap in skipped],
        "pruned": [PRUNED.dump(one) for one in gone],
        "receipts": [HOLDER.dump(holder) for holder in found],
    }


def _of_report(get: Callable[[Report], Any]) -> Callable[[PastRun], Any]:
    """Return a figure of a run; None for one without a sealed plan."""
    return lambda past: get(past.report) if past.report else None


PAST_RUN = Form(
    PastRun,
    F("run", "opened.record.run"),
    F("generation", "opened.generation", says="ledger offset of the run's record"),
    F("state", kind=enum(PastState)),
    F("started_ms", "opened.record.started_ms"),
    F("slices", _of_report(lambda report: len(report.plan.kept)), typed(int | None, None)),
    F("records", _of_report(attrgetter("records")), typed(int | None, None)),
    F("bytes", _of_report(attrgetter("bytes")), typed(int | None, None)),
    F("seconds", _of_report(attrgetter("seconds")), typed(float | None)),
    F("origin", "opened.record.origin", ORIGIN),
    F(
        "deployment",
        "opened.record.deployment",
        filled(""),
        says="whose run it was; null: a Ferry wrote it that knew no deployments",
    ),
    F(
        "config_digest",
        "opened.record.config_digest",
        says="SHA-256 over what the flow copied, where to, and how much at a time",
    ),
    F(
        "took_over",
        "opened.record.took_over",
        filled(""),
        says="the deployment that the lane was taken from on purpose",
    ),
    F(
        "uncounted",
        lambda past: len(past.report.uncounted),
        typed(int, 1),
        omit=lambda past: past.report is None or not past.report.uncounted,
        says=_UNCOUNTED_SAYS,
    ),
)


def past_runs_json(runs: list[PastRun]) -> Json:
    """Return the JSON of `ferry ledger --runs`.

    Null: figures of a run without a sealed plan, a deployment that the run did not record.
    """
    return {"runs": [PAST_RUN.dump(past) for past in runs]}


PAUSE = Form(
    Pause,
    F("topic", kind=filled(""), says="null: the whole flow"),
    F("who"),
    F("why"),
    F("since_ms"),
    F("until_ms", kind=filled(0), says="null: until ferry resume"),
)

pause_json = PAUSE.dump
"""Return a pause of a flow or topic as the documented JSON object."""


def skip_json(flow: Flow, run: str | None, gap: Gap) -> Json:
    """Return the JSON of `ferry skip`; run null is a dry run."""
    return {"flow": str(flow), "run": run, "gap": gap_json(gap)}
