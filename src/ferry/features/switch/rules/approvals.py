"""What a person has approved in Airflow, as ledger records: `["approval", run]`, for a run as it was asked for.

Not in an XCom: who may write XComs could approve in anybody's name. Each approval is used once, and not for ever.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from ferry.errors import Refused
from ferry.ledger.codec import LEDGER_VERSION, Json, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as, text, whole
from ferry.model import Record
from ferry.model.switch import Approval

_AGAIN = "nothing was done: trigger the DAG again, or clear its task approve with those after it"


def approval_record(approval: Approval) -> Record:
    """The record of an approval; of one that was asked for again the last one counts."""
    body = {"v": LEDGER_VERSION, "kind": "approval", **asdict(approval)}
    return Record(key=encode(["approval", approval.run]), value=encode(body))


def approval_of_run(view: LedgerView, run: str) -> Approval | None:
    """What was approved of a run, if anything; BadInput for a record that is none."""
    record = view.by_key.get(encode(["approval", run]).decode())
    if record is None or record.value is None:
        return None
    return read_as(record, _parse_approval)


def _parse_approval(body: Json) -> Approval:
    return Approval(
        run=text(body["run"]),
        who=text(body["who"]),
        at_ms=whole(body["at_ms"]),
        asked_by=text(body["asked_by"]),
        params=text(body["params"]),
        used_by=text(body["used_by"]),
        used_ms=whole(body["used_ms"]),
    )


def used(approval: Approval | None, *, params: str, by: str, now_ms: int, within_s: float) -> Approval:
    """The approval as it is used `by` a switch or a try of a drill; Refused where it is not one of this.

    `params` is the digest of the run's parameters. An approval that was not used after `within_s` has expired; what has
    begun by it may continue by it.
    """
    if approval is None:
        raise Refused(f"nobody has approved: {_AGAIN}")
    if approval.params != params:
        raise Refused(f"{approval.who} approved of other parameters than the run has now: {_AGAIN}")
    if approval.used_by == by:
        return approval
    if approval.used_by:
        raise Refused(f"the approval of {approval.who} was used already, by {approval.used_by}: {_AGAIN}")
    if now_ms - approval.at_ms > within_s * 1000:
        age = (now_ms - approval.at_ms) // 1000
        raise Refused(f"{approval.who} approved {age} s ago, and an approval holds for {within_s:.0f} s: {_AGAIN}")
    return replace(approval, used_by=by, used_ms=now_ms)
