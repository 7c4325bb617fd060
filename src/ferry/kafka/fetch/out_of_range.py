"""The fate of an offset that a leader reports out of range: deleted at the log's start, or cut off at its end."""

from __future__ import annotations

from ferry.messages.catalogue import sentence
from ferry.model import Fact, RefusalKind, Sentence, TopicPartition


def lost_range(
    place: TopicPartition, cluster: str, wanted: tuple[int, int], edges: tuple[int, int]
) -> tuple[RefusalKind, Sentence] | None:
    """Return why `wanted` offsets `[start, end)` cannot be read of a log with these `edges`.

    None when the log has the first of them. The end of the log is its high watermark.
    """
    (start, end), (log_start, log_end) = wanted, edges
    facts: dict[str, Fact] = {"source": str(place), "cluster": cluster, "start": start}
    if start < log_start:
        last = min(end, log_start) - 1
        facts["log_start"] = log_start
        if last == start:
            return RefusalKind.RETENTION_PASSED, sentence("source.retention-passed.since-plan.one", **facts)
        return RefusalKind.RETENTION_PASSED, sentence("source.retention-passed.since-plan", last=last, **facts)
    if start > log_end:
        facts |= {"log_end": log_end, "last": end - 1}
        return RefusalKind.SOURCE_TRUNCATED, sentence("source.shorter.since-plan", **facts)
    return None
