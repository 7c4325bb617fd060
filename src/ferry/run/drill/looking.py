"""The looks that drills have in common: where groups go on after the copying, and whether the content is equal."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.config.flow.flow import FlowConfig
from ferry.decide.drill.figures import compared_of
from ferry.model.evidence import Compared, GroupMoved
from ferry.run.drill.diary import Entry
from ferry.run.verify.verifier import Verifier
from ferry.run.verify.wanted import Wanted


def compare_content(flow: FlowConfig, wanted: Wanted, entry: Entry, *, patience_s: float) -> Compared:
    """Compare both clusters in this process, and note how that ended; raises as `Verifier`."""
    with Verifier(flow, wanted, patience_s=patience_s) as verifier:
        survey = verifier.survey()
        found = compared_of(verifier.sum_up(survey, verifier.compare(survey)))
    same = "equal" if found.records else "nothing to compare"
    word = same if found.equal else f"{found.differences} differences"
    entry.detail = f"{found.records} records: {word}"
    return found


def note_next_records(groups: Iterable[GroupMoved], entry: Entry) -> None:
    """Note of how many of the groups' partitions the next record is the source's."""
    exact = committed = 0
    for group in groups:
        exact += group.exact or 0
        committed += group.committed
    entry.detail = f"in {exact} of {committed} partitions the next record is the source's"
