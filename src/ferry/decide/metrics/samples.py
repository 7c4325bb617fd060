"""Ferry's metrics: their names, in MirrorMaker 2's words where it has them, and single values of them.

MirrorMaker 2's `record-count` (`MirrorSourceMetrics`) is `ferry_record_count_total` here, with its tags `source`,
`target` and `topic`, which is the topic's name at the target. A run is short and its process gone when somebody asks,
so every counter has a twin, a gauge of what the last run added to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LAST_RUN = "ferry_last_run_"
PREFIX = "ferry_"

Labels = tuple[tuple[str, str], ...]
"""Names and values, in order of the names."""
Values = Mapping[tuple[str, Labels], float]
"""Values by metric and labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `name` is without the `_total` that Prometheus puts behind a counter's."""

    name: str
    meaning: str
    counts: bool = False
    """Whether it only grows: a counter, else a gauge."""

    @property
    def last_run(self) -> str:
        """A counter's twin: what the last run added."""
        return LAST_RUN + self.name.removeprefix(PREFIX)


def _counter(name: str, meaning: str) -> Metric:
    return Metric(name=PREFIX + name, meaning=meaning, counts=True)


def _gauge(name: str, meaning: str) -> Metric:
    return Metric(name=PREFIX + name, meaning=meaning)


RUN_COUNT = _counter("run_count", "Runs that were reported")
SUCCESS_COUNT = _counter("success_count", "Runs that succeeded: nothing refused, nothing missing, no group failed")
RECORD_COUNT = _counter("record_count", "Records copied; topic is the name at the target")
BYTE_COUNT = _counter("byte_count", "Bytes copied, as stored")
BATCH_COUNT = _counter("batch_count", "Batches written")
TRANSCODED_BATCH_COUNT = _counter("transcoded_batch_count", "Batches that could not go as bytes and were written anew")
MISSING_COUNT = _counter("missing_record_count", "Offsets in what was copied of which the source has no record")
THROTTLE_MS = _counter("throttle_ms", "Milliseconds that tasks were held back, added up; by ferry, source or target")
GUARD_COUNT = _counter("guard_count", "Guards that tripped, by guard and outcome: refused, skipped or restarted")
REFUSAL_COUNT = _counter("refusal_count", "What a run refused, by kind")
GAP_COUNT = _counter("gap_count", "Gaps that policies made, by kind")
UNFINISHED_COUNT = _counter("unfinished_count", "Slices that were planned and neither copied nor refused")

COUNTERS = (
    RUN_COUNT,
    SUCCESS_COUNT,
    RECORD_COUNT,
    BYTE_COUNT,
    BATCH_COUNT,
    TRANSCODED_BATCH_COUNT,
    MISSING_COUNT,
    THROTTLE_MS,
    GUARD_COUNT,
    REFUSAL_COUNT,
    GAP_COUNT,
    UNFINISHED_COUNT,
)

LAST_RUN_TIME = _gauge("last_run_timestamp_seconds", "When the last run ended, in seconds since 1970")
LAST_SUCCESS_TIME = _gauge("last_success_timestamp_seconds", "When the last run that succeeded ended")
SUCCESS_DUE_TIME = _gauge("success_due_timestamp_seconds", "When the next success is overdue, by schedule and patience")
LAST_RUN_STATE = _gauge("last_run_state", "1 for the state of the last run: success, partial or failed")
LAST_RUN_SECONDS = _gauge("last_run_seconds", "How long the last run took, to its last receipt")
GENERATION = _gauge("last_run_generation", "The last run's place in the ledger")
LAG_RECORDS = _gauge("lag_records", "Offsets not yet copied when the last run ended, an upper bound of records")
LAG_BYTES = _gauge("lag_bytes", "About how many bytes that is")
LAG_SECONDS = _gauge("lag_seconds", "Age of the oldest record that was not yet copied then")
LAG_UNKNOWN = _gauge("lag_unknown_partitions", "Partitions that do not tell how far they are behind, or how old it is")
LAG_TIME = _gauge("lag_timestamp_seconds", "When the lag was measured")
LAG_LIMIT = _gauge("lag_limit_seconds", "The flow's recovery point objective, ferry.rpo.seconds")
VERIFIED_TIME = _gauge("verification_timestamp_seconds", "When was last compared: by a run, or by ferry verify")
VERIFIED_EQUAL = _gauge("verification_equal", "1 when all that was compared agreed, else 0")
VERIFIED_DIFFERENCES = _gauge("verification_differences", "Differences that were found")

GAUGES = (
    LAST_RUN_TIME,
    LAST_SUCCESS_TIME,
    SUCCESS_DUE_TIME,
    LAST_RUN_STATE,
    LAST_RUN_SECONDS,
    GENERATION,
    LAG_RECORDS,
    LAG_BYTES,
    LAG_SECONDS,
    LAG_UNKNOWN,
    LAG_TIME,
    LAG_LIMIT,
    VERIFIED_TIME,
    VERIFIED_EQUAL,
    VERIFIED_DIFFERENCES,
)

METRICS = (
    *COUNTERS,
    *(
        Metric(name=one.last_run, meaning=f"In the last run: {one.meaning[0].lower()}{one.meaning[1:]}")
        for one in COUNTERS
    ),
    *GAUGES,
)
"""All of them, in the order in which they are written."""


def labelled(common: Labels, **more: str) -> Labels:
    """The labels that every metric of a flow has, and some of its own."""
    return tuple(sorted((*common, *more.items())))


def summed(parts: Iterable[tuple[Labels, float]], name: str) -> dict[tuple[str, Labels], float]:
    """One value per set of labels."""
    found: dict[tuple[str, Labels], float] = {}
    for labels, value in parts:
        found[name, labels] = found.get((name, labels), 0.0) + value
    return found
