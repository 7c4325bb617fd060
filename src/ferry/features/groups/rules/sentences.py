"""What happened to consumer groups, in sentences."""

from __future__ import annotations

from ferry.model import GroupOutcome, Why
from ferry.words import count_of

_HOW = {
    "gap": "at the next copied record, because nothing of their own was copied",
    "ahead": "at the copied end, because their groups are ahead of it",
    "before": "at the first copied record, because their groups are before it",
    "approximate": "at or before their record, because another replicator copied it",
    "again": "where they miss nothing of repartitioned topics",
    "log-start": "at the target's log start, because the target has deleted what their groups would read next",
}
_LABELS = {Why.FAILED: "group failed", Why.DELETED: "group deleted at the source"}


def group_sentences(found: GroupOutcome) -> list[str]:
    """Make a sentence for each group that was left or failed, and one for the sums at the end."""
    lines = [f"{_LABELS.get(one.why, 'group left')}: {one.message}" for one in found.left]
    if found.more:
        lines.append(f"and {found.more} more of the groups were left or failed")
    more = {"again": f", and read {count_of(found.again, 'record')} at most again"} if found.again else {}
    inexact = [f"{count} {_HOW[word]}{more.get(word, '')}" for word, count in sorted(found.inexact.items())]
    lines.append(
        f"groups: {found.groups} written with {found.offsets} offsets"
        + (f" ({'; '.join(inexact)})" if inexact else "")
        + f", {found.unchanged} offsets right already, {len({one.group for one in found.left})} left or failed"
    )
    return lines
