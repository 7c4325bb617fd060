"""The chain of a folder's reports.

Each has the SHA-256 of the one before it, so none can be changed or removed unseen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import FLOW, enum, typed
from ferry.features.evidence.rules.codec import SealedReport
from ferry.model.evidence import EvidenceKind, EvidenceOutcome, EvidenceReport, Link

_NAME = re.compile(r"report-([0-9]{6,})\.json")

SIGNATURE = ".sig"
"""The suffix of a detached signature's file name."""


def report_name(number: int) -> str:
    """Return the file name of a report's JSON. Numbers begin at 1, without gaps."""
    return f"report-{number:06d}.json"


def page_name(name: str) -> str:
    """Return the file name of the page that belongs to a report's JSON."""
    return f"{name.removesuffix('.json')}.html"


def pdf_name(name: str) -> str:
    """Return the file name of the PDF that may belong to a report's JSON."""
    return f"{name.removesuffix('.json')}.pdf"


def number_of(name: str) -> int | None:
    """Return the number in the file name of a report's JSON; None for any other file."""
    found = _NAME.fullmatch(name)
    return int(found.group(1)) if found else None


def sha256(content: bytes) -> str:
    """Return the digest for the chain, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One report of the folder: its digests and content; a `trouble` says why it cannot be read."""

    number: int
    name: str
    sha256: str
    page_sha256: str | None
    report: SealedReport | None
    trouble: str = ""
    has_pdf: bool = False

    @property
    def link(self) -> Link:
        """How the next report names this one."""
        return Link(name=self.name, sha256=self.sha256, page_sha256=self.page_sha256)


def broken_links(kept: Sequence[Kept], last: str | None = None) -> dict[str, str]:
    """Return what is wrong with the chain, by file name in order; `last` is the SHA-256 that the newest must have.

    Only the digests of the content are checked. The signatures show who wrote it.
    """
    found: dict[str, str] = {}
    before: Kept | None = None
    for one in sorted(kept, key=lambda one: one.number):
        wanted = 1 if before is None else before.number + 1
        if one.number != wanted:
            found[report_name(wanted)] = f"{report_name(wanted)} is missing: {one.name} comes next"
        in_order = one.number == wanted
        sentence = next(_troubles(one, before if in_order else None, in_order=in_order), "")
        if sentence:
            found[one.name] = sentence
        before = one
    if last is not None and (before is None or before.sha256 != last.lower()):
        name = report_name(1) if before is None else before.name
        newest = "there is no report" if before is None else f"the newest report is {name} with SHA-256 {before.sha256}"
        found.setdefault(name, f"{newest}, and not the one with {last}: later ones are gone, or it was changed")
    return found


def _troubles(one: Kept, before: Kept | None, *, in_order: bool) -> Iterator[str]:
    """Return what is wrong with a report and its link to `before`, which is None if that one is missing."""
    if one.report is None:
        yield one.trouble or f"{one.name} cannot be read"
        return
    if one.report.number != one.number:
        yield f"{one.name} says that it is report {one.report.number}: it was renamed"
    previous = one.report.previous
    if before is None:
        if previous is not None and in_order:
            yield f"{one.name} follows {previous.name}, which is gone"
    elif previous is None:
        yield f"{one.name} says that it is the first, and {before.name} is there"
    elif previous.name != before.name:
        yield f"{one.name} follows {previous.name}, and {before.name} is before it"
    elif previous.sha256 != before.sha256:
        yield _changed(before.name, one.name, was=previous.sha256, now=before.sha256)
    elif previous.page_sha256 not in (None, before.page_sha256):
        yield _changed(page_name(before.name), one.name, was=previous.page_sha256, now=before.page_sha256)


def _changed(name: str, after: str, *, was: str | None, now: str | None) -> str:
    state = "it is gone" if now is None else f"its SHA-256 is now {now}"
    return f"{name} was changed after {after} was written: {state}, and was {was}"


def kept_report_of(kept: Iterable[Kept], evidence: EvidenceReport) -> Kept | None:
    """Return the report of the same finished event; None if there is none, or only one from before it was finished.

    A finished event does not change, so a second report of it would only repeat the first one.
    """
    for one in kept:
        if one.report is not None and _what(one.report.evidence) == _what(evidence):
            return one
    return None


def _what(evidence: EvidenceReport) -> tuple[object, ...]:
    ended = evidence.outcome is not EvidenceOutcome.FAILED
    return evidence.id, evidence.kind, evidence.flow, evidence.began_ms, ended


LISTED = Form(
    Kept,
    F("number"),
    F("name"),
    F(
        "page",
        lambda one: page_name(one.name) if one.page_sha256 else None,
        typed(str | None),
        says="file name of the page; null when it is not there",
    ),
    F("sha256"),
    F("signed", lambda one: one.report.signer is not None, typed(bool)),
    F("id", "report.evidence.id"),
    F("kind", "report.evidence.kind", enum(EvidenceKind)),
    F("flow", "report.evidence.flow", FLOW),
    F("began_ms", "report.evidence.began_ms"),
    F("ended_ms", "report.evidence.ended_ms"),
    F("outcome", "report.evidence.outcome", enum(EvidenceOutcome)),
    F("summary", "report.evidence.summary"),
    F("rpo_records", "report.evidence.lost_records", says="null: not known, or of a full drill, whose ways have it"),
    F("rpo_seconds", "report.evidence.lost_seconds", says="null: as of rpo_records"),
    F("dead_letters", "report.evidence.dead_letters", says="records, in place of copies; null: not known"),
    F("before_adoption", "report.evidence.before_adoption", says="records left out before; null: not known"),
    F("rto_seconds", "report.evidence.rto_s"),
    F("who", "report.evidence.who"),
    name="listed",
)
"""One readable report in the folder's list."""


def index_json(kept: Iterable[Kept]) -> Json:
    """Return the folder's list, newest first, for pages that show it.

    It is made from the reports, which alone count.
    """
    newest_first = sorted(kept, key=lambda one: -one.number)
    return {"reports": [LISTED.dump(one) for one in newest_first if one.report is not None]}


def is_index(content: bytes) -> bool:
    """Return whether a file is such a list, and not a file of another program."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return False
    rows = body.get("reports") if isinstance(body, dict) and len(body) == 1 else None
    if not isinstance(rows, list):
        return False
    return all(isinstance(row, dict) and number_of(str(row.get("name"))) == row.get("number") for row in rows)
