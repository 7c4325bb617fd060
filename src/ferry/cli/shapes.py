"""The JSON that commands answer with: a contract, described in docs/json.md with a schema for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from ferry.codec.form import Json
from ferry.config.flow.flow import FlowConfig
from ferry.config.why import Why
from ferry.features.groups.cli.shapes import groups_json
from ferry.ledger.acl_codec import acl_change_json
from ferry.ledger.adoption_codec import adoption_json as adopted_json
from ferry.ledger.codec import gap_json
from ferry.ledger.dealt_at import DealtAt
from ferry.ledger.history import Forgotten, Holder, PastRun
from ferry.ledger.pruning import Pruned, pruned_json
from ferry.ledger.receipt_codec import receipt_json
from ferry.ledger.report import GuardCount, Report, guard_counts, unfinished_sentence
from ferry.ledger.run_codec import refusal_json
from ferry.ledger.slice_codec import change_json, slice_json
from ferry.ledger.unit_codec import unit_receipt_json
from ferry.ledger.verified_codec import run_verified_json
from ferry.model import Adoption, Flow, Gap, Pause, Piece, Plan, Receipt, Refusal, Unit, UnitReceipt
from ferry.plan.rules.lag import PartitionLag, total_of

UNFINISHED = "unfinished"
"""Beside the kinds of refusals: a slice that nobody refused, but that was not copied to its end."""


def plan_json(plan: Plan) -> Json:
    """`ferry plan`: what a run would do now."""
    return {
        "flow": str(plan.flow),
        "lane": plan.lane,
        "slices": [slice_json(piece) for piece in plan.slices],
        "changes": [change_json(change) for change in plan.changes],
        "drift": [change_json(change) for change in plan.drift],
        "not_copied": [asdict(left) for left in plan.not_copied],
        "acls": [acl_change_json(change) for change in plan.acls],
        "refusals": [refusal_json(refusal) for refusal in plan.refusals],
        "notes": list(plan.notes),
        "gaps": [gap_json(gap) for gap in plan.gaps],
        "guards": guards_json(plan.refusals, plan),
        "paused": list(plan.paused),
        **({"units": [_unit_json(unit) for unit in plan.units]} if plan.units else {}),
    }


def _unit_json(unit: Unit) -> Json:
    """What a run would deal to one target partition."""
    return {
        "topic": unit.source_topic,
        "target_topic": unit.target.topic,
        "target_partition": unit.target.partition,
        "partitions": unit.partitions,
        "offsets": unit.offsets,
        "slot": unit.slot,
    }


def guards_json(refusals: Iterable[Refusal], plan: Plan) -> Json:
    """How often each guard that tripped refused, skipped and restarted; guards that did not are left out."""
    return {kind: asdict(count) for kind, count in guard_counts(refusals, plan.gaps, plan.lifted).items()}


def _verification(report: Report) -> Json:
    """What a run found that verified itself, counted as a guard's refusals."""
    found = report.verified
    if found is None or found.equal:
        return {}
    refused = len(found.differences) + found.more + len(found.not_compared)
    return {"verification": asdict(GuardCount(refused=refused))}


def why_json(why: Why) -> Json:
    """`ferry plan --why`: one verdict."""
    setting = why.setting
    return {
        "taken": why.taken,
        "reason": why.reason,
        "key": None if setting is None else setting.key or setting.name,
        "line": None if setting is None else setting.line,
        "item": why.item,
    }


def run_json(report: Report) -> Json:
    """`ferry run`: what became of a run."""
    return {
        "run": report.plan.run,
        "flow": str(report.plan.flow),
        "state": report.state.value,
        "superseded_by": report.superseded or None,
        "slices": len(report.plan.slices),
        "records": report.records,
        "bytes": report.bytes,
        "transcoded": report.transcoded,
        "missing": report.missing,
        "dead_letters": report.dead_letters,
        "transformed": [
            {"topic": topic, "read": one.read, "left_out": one.left_out} for topic, one in sorted(report.sifted.items())
        ],
        "seconds": report.seconds,
        "changes": [change_json(change) for change in report.plan.changes],
        "drift": [change_json(change) for change in report.plan.drift],
        "throttled_seconds": {name: ms / 1000 for name, ms in asdict(report.throttled).items()},
        "paused": list(report.plan.paused),
        "refusals": [refusal_json(refusal) for refusal in report.refusals]
        + [_unfinished_json(report, piece) for piece in report.unfinished],
        "gaps": [gap_json(gap) for gap in report.plan.gaps],
        "guards": guards_json(report.refusals, report.plan) | _verification(report),
        "acls": [acl_change_json(change) for change in report.plan.acls],
        "groups": None if report.groups is None else groups_json(report.groups),
        "verified": None if report.verified is None else run_verified_json(report.verified),
        "notes": list(report.notes),
        "receipts": [short_receipt_json(receipt) for receipt in report.receipts],
        **({"units": [_short_unit_json(unit) for unit in report.units]} if report.units else {}),
    }


def short_receipt_json(receipt: Receipt) -> Json:
    """The part of a receipt that says what was copied where."""
    return {
        "topic": receipt.source.topic,
        "partition": receipt.source.partition,
        "target_topic": receipt.target.topic,
        "target_partition": receipt.target.partition,
        "start": receipt.start,
        "end": receipt.end,
        "segments": [[part.source_start, part.target_start, part.count] for part in receipt.segments],
        "records": receipt.records,
        "bytes": receipt.bytes,
        "missing": receipt.missing,
        **({"transform": receipt.transform} if receipt.transform else {}),
    }


def _short_unit_json(unit: UnitReceipt) -> Json:
    """The part of a receipt of a unit that says what was dealt where."""
    return {
        "topic": unit.source_topic,
        "target_topic": unit.target.topic,
        "target_partition": unit.target.partition,
        "target_start": unit.target_start,
        "target_next": unit.target_next,
        "offsets": unit.end - unit.start,
        "records": unit.records,
        "bytes": unit.bytes,
    }


def _unfinished_json(report: Report, piece: Piece) -> Json:
    return {
        "topic": piece.source.topic,
        "partition": piece.source.partition,
        "kind": UNFINISHED,
        "message": unfinished_sentence(report, piece),
    }


def lag_json(lags: list[PartitionLag]) -> Json:
    """`ferry lag`: how far every partition is behind, and all together; null where nobody knows."""
    return {
        "partitions": [
            {
                "topic": lag.source.topic,
                "partition": lag.source.partition,
                "target_topic": lag.target.topic,
                "target_partition": lag.target.partition,
                "position": lag.position,
                "source_end": lag.source_end,
                "lag_records": lag.records,
                "lag_bytes": lag.bytes,
                "lag_bytes_from": lag.bytes_from,
                "lag_seconds": lag.seconds,
            }
            for lag in lags
        ],
        "total": asdict(total_of(lags)),
    }


def receipts_json(receipts: list[Receipt], units: list[UnitReceipt], of_run: PastRun | Forgotten | None = None) -> Json:
    """`ferry ledger`: receipts as the ledger has them, and the run that was asked for; null where none was."""
    return {
        "receipts": [receipt_json(receipt) for receipt in receipts],
        **({"units": [unit_receipt_json(unit) for unit in units]} if units else {}),
        "run": None if of_run is None else _past_run_json(of_run),
    }


def _past_run_json(past: PastRun | Forgotten) -> Json:
    """As `ferry run` says it; report null: the run ended before its plan was sealed, or the ledger has let it go."""
    if isinstance(past, Forgotten):
        return {"run": past.run, "state": "forgotten", "report": None}
    told = None
    if past.report is not None:
        listed = ("run", "flow", "receipts", "units")
        told = {name: value for name, value in run_json(past.report).items() if name not in listed}
    return {"run": past.opened.record.run, "state": past.state.value, "report": told}


def holders_json(
    found: list[Holder], skipped: list[Gap], adopted: list[Adoption], gone: list[Pruned], dealt: list[DealtAt]
) -> Json:
    """`ferry ledger --offset`: the receipts that hold an offset, with segment and target offset (null: a gap).

    Of a topic that is dealt to other partitions the chunk of each of these; null where none has it.
    """
    return {
        **({"dealt": [_dealt_json(one) for one in dealt]} if dealt else {}),
        "adopted": [{name: value for name, value in adopted_json(one).items() if name != "v"} for one in adopted],
        "skipped": [gap_json(gap) for gap in skipped],
        "pruned": [
            {**pruned_json(one), "target_topic": one.copy.target.topic, "target_partition": one.copy.target.partition}
            for one in gone
        ],
        "receipts": [
            {
                **receipt_json(holder.receipt),
                "segment": None
                if holder.segment is None
                else [holder.segment.source_start, holder.segment.target_start, holder.segment.count],
                "target_offset": holder.target_offset,
                "void": None if holder.void is None else gap_json(holder.void),
            }
            for holder in found
        ],
    }


def _dealt_json(one: DealtAt) -> Json:
    return {
        "target_topic": one.target.topic,
        "target_partition": one.target.partition,
        "offset": one.state.value,
        "without_key": one.keyless,
        "chunk": None if one.chunk is None else unit_receipt_json(one.chunk),
    }


def past_runs_json(runs: list[PastRun]) -> Json:
    """`ferry ledger --runs`; null: numbers of a run without a sealed plan, a deployment that nobody named."""
    return {
        "runs": [
            {
                "run": past.opened.record.run,
                "generation": past.opened.generation,
                "state": past.state.value,
                "started_ms": past.opened.record.started_ms,
                "slices": len(past.report.plan.slices) if past.report else None,
                "records": past.report.records if past.report else None,
                "bytes": past.report.bytes if past.report else None,
                "seconds": past.report.seconds if past.report else None,
                "origin": asdict(past.opened.record.origin),
                "deployment": past.opened.record.deployment or None,
                "config_digest": past.opened.record.config_digest,
                "took_over": past.opened.record.took_over or None,
            }
            for past in runs
        ]
    }


def pause_json(pause: Pause) -> Json:
    """A pause; topic null is the whole flow, until_ms null is until somebody resumes."""
    return {
        "topic": pause.topic or None,
        "who": pause.who,
        "why": pause.why,
        "since_ms": pause.since_ms,
        "until_ms": pause.until_ms or None,
    }


def skip_json(flow: Flow, run: str | None, gap: Gap) -> Json:
    """`ferry skip`; run null is a dry run."""
    return {"flow": str(flow), "run": run, "gap": gap_json(gap)}


def flow_json(flow: FlowConfig) -> Json:
    """`ferry flows`: the settings that tell one flow from another."""
    return {
        "flow": str(flow.flow),
        "topics": list(flow.topics.include.items),
        "topics_exclude": list(flow.topics.exclude.items),
        "policy": flow.policy_name,
        "lane": flow.lane,
        "tasks_max": flow.tasks_max,
        "schedule": flow.schedule,
    }
