"""A report in short, line by line, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.features.evidence.rules.figures import beside_the_loss
from ferry.features.evidence.rules.ways import MIXED, ways_of
from ferry.model.evidence import EvidenceReport, GroupMoved
from ferry.words import count_of


def report_lines_of(evidence: EvidenceReport) -> list[str]:
    """Return what is wrong first, then what was done, the outcome and the figures."""
    lines = [f"refused: {sentence}" for sentence in evidence.refusals]
    lines += deviation_lines(evidence.deviations)
    lines += [f"note: {sentence}" for sentence in evidence.notes]
    lines += [f"{number}. {sentence}" for number, sentence in enumerate(evidence.would, 1)]
    lines += [_group(group) for group in evidence.groups]
    what = f"{evidence.kind} drill" if evidence.kind.is_drill else str(evidence.kind)
    lines.append(f"{what} of {evidence.flow}: {evidence.outcome}; {evidence.summary}")
    lines += [_rpo(way, f" of {way.flow}" if evidence.ways else "") for way in ways_of(evidence) if way.losses_at_ms]
    if evidence.rto_s is not None:
        twice = "; ".join(_twice(way, f", {way.flow}" if evidence.ways else "") for way in ways_of(evidence))
        lines.append(f"RTO: {evidence.rto_s:.2f} s; {twice}")
    if evidence.first_record_means:
        lines.append(f"until a consumer of the new cluster had its first record: {first_record(evidence)}")
    return lines


def _group(group: GroupMoved) -> str:
    exact = "" if group.exact is None else f", {group.exact} at the same record"
    if exact and group.beyond:
        exact += f" or at the end of the copy; it had read {count_of(group.beyond, 'offset')} beyond it"
    return f"group {group.where}: {group.committed} of {count_of(group.partitions, 'offset')}{exact}"


def deviation_lines(deviations: Iterable[str]) -> list[str]:
    """Return a line for each deviation, a sentence that says what is not as it should be."""
    return [f"deviation: {sentence}" for sentence in deviations]


def _rpo(evidence: EvidenceReport, of: str) -> str:
    beside = beside_the_loss(evidence.passed_over)
    return f"RPO{of}: {_lost(evidence)}" + (f"; {beside}" if beside else "")


def _twice(evidence: EvidenceReport, of: str) -> str:
    if evidence.is_mixed:
        return f"records read twice: not known: {MIXED}"
    return f"records read twice{of}: {'not known' if evidence.reread is None else evidence.reread}"


def _lost(evidence: EvidenceReport) -> str:
    if evidence.is_mixed:
        return f"not known: {MIXED}"
    records, seconds = evidence.lost_records, evidence.lost_seconds
    if records is None and seconds is None:
        return "not known"
    many = "records not known" if records is None else count_of(records, "record")
    return f"{many}, {'age not known' if seconds is None else f'{seconds:.1f} s'}"


def first_record(evidence: EvidenceReport) -> str:
    """Return the seconds until a consumer had its first record and from when they count, or why they are not known."""
    if evidence.first_record_s is None:
        return evidence.first_record_means
    return f"{evidence.first_record_s:.2f} s, {evidence.first_record_means}"
