"""Approvals that a person gave in Airflow, as ledger records with the key `["approval", run]`, one for each DAG run.

They are not kept in an XCom: a user who may write XComs could approve in another person's name. An approval is used
once, and it expires. Each use has a record of its own, `["approval", run, by]`, so that no later one replaces it. Of
the uses of one answer, the first in the ledger counts.
"""

from __future__ import annotations

from dataclasses import replace

from ferry.codec.form import F, Form
from ferry.errors import Refused
from ferry.ledger.codec import encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.messages.catalogue import sentence
from ferry.model import Record
from ferry.model.switch import Approval

_APPROVAL = Form(
    Approval, *head("approval"), F("run"), F("who"), F("at_ms"), F("asked_by"), F("params"), F("used_by"), F("used_ms")
)


def approval_record(approval: Approval) -> Record:
    """Make the record of an approval, or of its use. If a run is approved more than once, the last answer counts."""
    by = [approval.used_by] if approval.used_by else []
    return Record(key=encode(["approval", approval.run, *by]), value=encode(_APPROVAL.dump(approval)))


def approval_of_run(view: LedgerView, run: str) -> Approval | None:
    """Return the approval of a run with its first use, or None if there is none.

    Raises BadInput for a record that cannot be read.
    """
    record = view.by_key.get(encode(["approval", run]).decode())
    if record is None or record.value is None:
        return None
    given = read_as(record, _APPROVAL.load)
    for key, use in view.of_kind("approval"):  # in the order of the ledger
        if key[1] == run and len(key) > 2:
            taken = read_as(use, _APPROVAL.load)
            if replace(taken, used_by=given.used_by, used_ms=given.used_ms) == given:
                return taken
    return given


def used(approval: Approval | None, *, params: str, by: str, now_ms: int, within_s: float) -> Approval:
    """Return the approval, marked as used `by` a switch or by one attempt of a drill.

    Raises Refused if there is no approval, if it is for other parameters or was used by another, or if it has expired.
    `params` is the digest of the run's parameters. An approval expires `within_s` seconds after it was given, unless it
    was used before. The switch or attempt that has used it may use it again.
    """
    if approval is None:
        raise Refused(sentence("approval.none"))
    if approval.params != params:
        raise Refused(sentence("approval.other", who=approval.who))
    if approval.used_by == by:
        return approval
    if approval.used_by:
        raise Refused(sentence("approval.used", who=approval.who, by=approval.used_by))
    if now_ms - approval.at_ms > within_s * 1000:
        age_s, holds_s = (now_ms - approval.at_ms) // 1000, round(within_s)
        raise Refused(sentence("approval.expired", who=approval.who, age_s=age_s, holds_s=holds_s))
    return replace(approval, used_by=by, used_ms=now_ms)
