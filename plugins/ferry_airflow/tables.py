"""Plans and reports as text for task logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ferry.features.groups.rules.sentences import group_sentences
from ferry.ledger.report import UNKNOWN, Report, as_known, missing_sentence, pieces_sentence, throttled_sentence
from ferry.model import GroupOutcome, Plan, Receipt, RunVerified, TopicPartition
from ferry.plan.rules.change_sentences import deeds, differences, proposals
from ferry.words import count_of
from ferry_airflow.log_groups import END_GROUP, GROUP

MEGABYTE = 1_000_000
SHOWN_RECORDS = 3
"""Records of each side of a difference that a log shows."""
OPEN_ROWS = 20
"""The longest table that a log shows unfolded."""
LINES = 200
"""The longest table that a log shows; the ledger has the rest."""


def plan_lines(plan: Plan) -> list[str]:
    """Return what a plan would do, line by line; the last one sums it up."""
    head = f"plan of run {plan.run} of {plan.flow} (lane {plan.lane}): {pieces_sentence(plan)}, "
    head += f"about {sum(piece.bytes_estimate for piece in plan.kept) / MEGABYTE:.1f} MB, {len(plan.used_slots)} tasks"
    rows = [
        [str(piece.source), str(piece.target), str(piece.start), str(piece.end), f"{piece.bytes_estimate}"]
        for piece in plan.kept
    ]
    lines = table(["source", "target", "from", "to", "bytes, about"], rows)
    dealt = [[unit.source.topic, str(unit.target), str(unit.partitions), str(unit.offsets)] for unit in plan.dealt]
    lines += table(["source", "target", "of", "offsets"], dealt) if dealt else []
    lines += proposals(plan.changes) if plan.only_shown else deeds(plan.changes)
    lines += differences(plan.drift)
    would = "would be " if plan.only_shown else ""
    lines += [f"ACL {would}{change.kind}d: {change.binding}" for change in plan.acls]
    lines += [f"refused: {refusal.message}" for refusal in plan.refusals]
    lines += [f"paused: {name}" for name in plan.held_back]
    lines += [f"note: {note}" for note in plan.notes]
    return [*lines, *(f"not copied: {left.message}" for left in plan.not_copied), head]


def report_lines(report: Report) -> list[str]:
    """Return the outcome of a run, line by line; the last one sums it up."""
    rate = report.bytes / MEGABYTE / report.seconds if report.seconds else 0.0
    copied = f"{report.records} records, {report.bytes / MEGABYTE:.1f} MB in {report.seconds:.1f} s"
    copied = as_known(copied, report) or UNKNOWN
    head = (
        f"run {report.plan.run} of {report.plan.flow} (lane {report.plan.lane}): {report.state}, "
        f"{len({receipt.source for receipt in report.kept})} of {len(report.plan.kept)} slices, {_units(report)}"
        f"{copied}{'' if report.uncounted else f', {rate:.1f} MB/s'}"
    )
    lines = table(["source", "target", "from", "to", "records", "bytes", "chunks"], _copied(report.kept))
    if report.dealt:
        lines += table(["source", "target", "records", "bytes", "chunks"], _dealt(report.dealt))
    lines += [f"paused: {name}" for name in report.plan.held_back]
    said = missing_sentence(report.missing), throttled_sentence(report.throttled)
    lines += [sentence for sentence in said if sentence is not None]
    lines += [f"refused: {message}" for message in dict.fromkeys(refusal.message for refusal in report.refusals)]
    lines += [f"missing: {piece.name} up to {piece.end}" for piece in report.unfinished]
    lines += [f"copied by a later run: the rest of {piece.name} up to {piece.end}" for piece in report.later]
    lines += [
        f"left to the next run, because the time was over: {piece.name} up to {piece.end}" for piece in report.left
    ]
    if report.groups is not None and not report.groups.is_empty:
        lines += group_sentences(report.groups)
    lines += run_verified_lines(report.verified)
    return [*lines, *(f"note: {note}" for note in report.notes), head]


def group_lines(found: GroupOutcome | None) -> list[str]:
    """Return the outcome of the consumer groups, line by line."""
    if found is None:
        return ["groups are left alone: sync.group.offsets.enabled is off, the flow is paused, or a newer run does it"]
    return group_sentences(found)


def run_verified_lines(found: RunVerified | None) -> list[str]:
    """Return the result of a run that verified itself, line by line."""
    return [] if found is None else [*found.complaints, found.sentence]


def verified_lines(body: Mapping[str, Any]) -> list[str]:
    """Return a result of `ferry verify --json`, line by line: differences, and sizes and digests of their records."""
    rows, records = [], []
    for number, one in enumerate(body["differences"], 1):
        place, there = f"{one['topic']}-{one['partition']}", f"{one['target_topic']}-{one['target_partition']}"
        rows.append([f"{number}", one["kind"], place, f"{one['source_range']}", there, f"{one['target_range']}"])
        for side in ("source", "target"):
            records += [[f"{number}", side, *_record(each)] for each in one[f"{side}_records"][:SHOWN_RECORDS]]
    lines = table(["#", "kind", "source", "offsets", "target", "offsets"], rows)
    lines += table(["#", "side", "offset", "timestamp, ms", "key", "value", "headers"], records)
    lines += [f"not compared: {left['message']}" for left in body["not_compared"]]
    lines += begin_lines(body)
    lines += [f"note: {note}" for note in body["notes"]]
    if body["sample"] is not None:
        lines.append(f"a sample: one of {body['sample']} segments of each partition, seed {body['seed']}")
    return [*lines, verified_sentence(body)]


def shortened(body: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Return a result of `ferry verify --json` with `most` differences at most; it counts the others."""
    left = len(body["differences"][most:])
    return {**body, "differences": body["differences"][:most], "more_differences": body["more_differences"] + left}


def begin_lines(body: Mapping[str, Any]) -> list[str]:
    """Return what of the logs neither receipts nor gaps name; answers of earlier versions do not have it."""
    return [one["message"] for one in body.get("begins", ()) if one["message"]]


def verified_sentence(body: Mapping[str, Any]) -> str:
    """Return a result of `ferry verify --json` in one sentence."""
    count = len(body["differences"]) + body["more_differences"]
    equal = "equal as far as receipts go" if body.get("whole") is False else "equal"
    same = equal if body["records"] else "nothing to compare"
    verdict = f"{count} differences" if count else same if body["equal"] else "not all could be compared"
    first = ""
    if body["differences"]:
        one = body["differences"][0]
        first = f", first: {one['kind']} in {one['topic']}-{one['partition']} {one['source_range']}"
    return (
        f"flow {body['flow']}: {verdict}{first}; {body['partitions']} partitions, {body['records']} records, "
        f"{body['bytes'] / MEGABYTE:.1f} MB read of both in {body['seconds']:.1f} s"
    )


def _record(record: Mapping[str, Any]) -> list[str]:
    fields = [
        "null" if record[f"{name}_bytes"] is None else f"{record[f'{name}_bytes']} B {record[f'{name}_digest']}"
        for name in ("key", "value", "headers")
    ]
    return [f"{record['offset']}", f"{record['timestamp_ms']}", *fields]


def _units(report: Report) -> str:
    count = len(report.plan.dealt)
    return f"{len({unit.target for unit in report.dealt})} of {count} units, " if count else ""


def _dealt(units: Iterable[Receipt]) -> list[list[str]]:
    """Return the rows of repartitioned topics, by target partition."""
    found: dict[TopicPartition, list[Receipt]] = {}
    for unit in units:
        found.setdefault(unit.target, []).append(unit)
    return [
        [
            ones[0].source.topic,
            str(place),
            str(sum(one.records for one in ones)),
            str(sum(one.bytes for one in ones)),
            str(len(ones)),
        ]
        for place, ones in sorted(found.items())
    ]


def _copied(receipts: Iterable[Receipt]) -> list[list[str]]:
    by_source: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts:
        by_source.setdefault(receipt.source, []).append(receipt)
    return [
        [
            str(source),
            str(parts[0].target),
            str(parts[0].start),
            str(parts[-1].end),
            str(sum(part.records for part in parts)),
            str(sum(part.bytes for part in parts)),
            str(len(parts)),
        ]
        for source, parts in by_source.items()
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return aligned columns, in a group that Airflow folds if they are many; no lines when there are no rows."""
    if not rows:
        return []
    shown = [head, *rows[:LINES]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in shown]
    lines += [f"... and {len(rows) - LINES} more"] if len(rows) > LINES else []
    return lines if len(rows) <= OPEN_ROWS else [f"{GROUP}{count_of(len(rows), 'row')}", *lines, END_GROUP]
