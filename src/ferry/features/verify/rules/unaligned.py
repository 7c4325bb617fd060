"""What of two logs without an offset map could not be compared, in sentences."""

from __future__ import annotations

from ferry.features.verify.rules.by_content import LOOKAHEAD, ByContent
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.model import NotCompared, NotComparedKind, Range


def unaligned(span: CompareRange, found: ByContent) -> list[NotCompared]:
    """Return what could not be compared because the two logs do not begin or end alike, or have nothing in common."""
    source, end = span.source, span.source_range[1]
    left = []

    def leave(why: NotComparedKind, part: Range, message: str, *, asked: bool) -> None:
        left.append(NotCompared(source=source, start=part[0], end=part[1], why=why, message=message, asked=asked))

    here, there = found.before
    if here is not None:
        message = f"offsets {here[0]} to {here[1] - 1} of {source} are before the first record that both sides have"
        leave(NotComparedKind.TARGET_DELETED, here, f"{message}: the target's log does not begin at 0", asked=False)
    if there is not None:
        at = span.source_range[0]
        message = f"offsets {there[0]} to {there[1] - 1} of {span.target} are before the first record that both have"
        leave(NotComparedKind.SOURCE_DELETED, (at, at), f"{message}: the source's log does not begin at 0", asked=False)
    if found.behind is not None:
        message = f"offsets {found.behind} to {end - 1} of {source} are not on the target yet: wait, and verify again"
        nothing = not found.records  # it would report a mirror that never wrote as equal
        leave(NotComparedKind.NOT_COPIED, (found.behind, end), message, asked=span.to_end or nothing)
    if found.parted is not None:
        message = (
            f"from offset {found.parted} on {source} and {span.target} have nothing in common within {LOOKAHEAD} "
            "records: compare from a later time with --from"
        )
        leave(NotComparedKind.NOTHING_IN_COMMON, (min(found.parted, end), end), message, asked=True)
    return left
