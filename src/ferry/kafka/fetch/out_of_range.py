"""The fate of an offset that a leader reports out of range: deleted at the log's start, or cut off at its end."""

from __future__ import annotations

from ferry.model import RefusalKind, TopicPartition


def lost_range(
    place: TopicPartition, cluster: str, wanted: tuple[int, int], edges: tuple[int, int]
) -> tuple[RefusalKind, str] | None:
    """Return why `wanted` offsets `[start, end)` cannot be read of a log with these `edges`.

    None when the log has the first of them. The end of the log is its high watermark.
    """
    (start, end), (log_start, log_end) = wanted, edges
    where = f"{place} on cluster {cluster}"
    if start < log_start:
        last = min(end, log_start) - 1
        lost = f"offset {start} was" if last == start else f"offsets {start} to {last} were"
        return RefusalKind.RETENTION_PASSED, (
            f"{where} begins at offset {log_start} by now, {lost} deleted after the run was planned and before it was "
            "copied: raise retention at the source, and plan again; the plan shows what to do"
        )
    if start > log_end:
        return RefusalKind.SOURCE_TRUNCATED, (
            f"{where} ends at offset {log_end} by now, though {start} to {end - 1} were there when the run was "
            "planned: its log was truncated (unclean leader election?): plan again, and the plan shows what to do"
        )
    return None
