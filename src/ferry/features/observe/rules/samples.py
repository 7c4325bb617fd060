"""Ferry's metrics: their names, in MirrorMaker 2's words where it has them, and single values of them.

MirrorMaker 2's `record-count` (`MirrorSourceMetrics`) is `ferry_record_count_total` here, with its tags `source`,
`target` and `topic`, which is the topic's name at the target. A run is short, and its process has ended when Prometheus
scrapes. So every counter has a twin: a gauge of what the last run added to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LAST_RUN = "ferry_last_run_"
PREFIX = "ferry_"

Labels = tuple[tuple[str, str], ...]
"""Names and values, in the order of the names."""
Values = Mapping[tuple[str, Labels], float]
"""Values by metric and labels."""


BY_TOPIC = ("topic",)
"""Labels of values per topic; they are per partition if the file says so (`ferry.metrics.per.partition`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `name` is without the suffix `_total` that a counter has in Prometheus."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()
    """Labels in addition to source, target and lane, which all metrics have."""
    counts: bool = False
    """Whether it is a counter, which only grows; else a gauge."""

    @property
    def last_run(self) -> str:
        """The name of a counter's twin: what the last run added."""
        return LAST_RUN + self.name.removeprefix(PREFIX)

    @property
    def written(self) -> str:
        """The name in Prometheus's text."""
        return self.name + ("_total" if self.counts else "")

    @property
    def word(self) -> str:
        """The name in MirrorMaker 2's spelling, without Ferry's own prefix: `record-count`."""
        return self.name.removeprefix(PREFIX).replace("_", "-")


def _counter(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(name=PREFIX + name, meaning=meaning, labels=labels, counts=True)


def _gauge(name: str, meaning: str, *labels: str) -> Metric:
    return Metric(name=PREFIX + name, meaning=meaning, labels=labels)


RUN_COUNT = _counter("run_count", "Runs that were reported")
SUCCESS_COUNT = _counter("success_count", "Runs that succeeded: nothing refused, nothing missing, no group failed")
RECORD_COUNT = _counter("record_count", "Records copied; topic is the name at the target", *BY_TOPIC)
BYTE_COUNT = _counter("byte_count", "Bytes copied, as stored", *BY_TOPIC)
BATCH_COUNT = _counter("batch_count", "Batches written", *BY_TOPIC)
TRANSCODED_BATCH_COUNT = _counter(
    "transcoded_batch_count", "Batches that could not be copied as bytes and were rewritten", *BY_TOPIC
)
MISSING_COUNT = _counter(
    "missing_record_count", "Offsets in what was copied of which the source has no record", *BY_TOPIC
)
DEAD_LETTER_COUNT = _counter(
    "dead_letter_count", "Records that a transform could not be applied to, and that became dead letters", *BY_TOPIC
)
SIFTED_READ = _counter("transform_read_count", "Records that a transform was given", "source_topic")
SIFTED_LEFT_OUT = _counter("transform_left_out_count", "Those of them that it left out", "source_topic")
SOURCE_RECORD_POLL = _counter(
    "source_record_poll", "Records read, with markers and records of aborted transactions, which are not copied"
)
SOURCE_RECORD_WRITE = _counter("source_record_write", "Records copied, over all topics")
THROTTLE_MS = _counter(
    "throttle_ms", "Milliseconds that tasks were held back, added up; by ferry, source or target", "by"
)
GUARD_COUNT = _counter(
    "guard_count", "Guards that tripped, by guard and outcome: refused, skipped or restarted", "guard", "outcome"
)
REFUSAL_COUNT = _counter("refusal_count", "What a run refused, by kind", "kind")
GAP_COUNT = _counter("gap_count", "Gaps that policies made, and places passed by hand (stuck), by kind", "kind")
UNFINISHED_COUNT = _counter("unfinished_count", "Slices that were planned and neither copied nor refused")

COUNTERS = (
    RUN_COUNT,
    SUCCESS_COUNT,
    RECORD_COUNT,
    BYTE_COUNT,
    BATCH_COUNT,
    TRANSCODED_BATCH_COUNT,
    MISSING_COUNT,
    DEAD_LETTER_COUNT,
    SIFTED_READ,
    SIFTED_LEFT_OUT,
    SOURCE_RECORD_POLL,
    SOURCE_RECORD_WRITE,
    THROTTLE_MS,
    GUARD_COUNT,
    REFUSAL_COUNT,
    GAP_COUNT,
    UNFINISHED_COUNT,
)

FIRST_RUN_TIME = _gauge("first_run_timestamp_seconds", "When the first run began that was reported in this file")
LAST_RUN_TIME = _gauge("last_run_timestamp_seconds", "When the last run ended, in seconds since 1970")
LAST_SUCCESS_TIME = _gauge("last_success_timestamp_seconds", "When the last run that succeeded ended")
SUCCESS_DUE_TIME = _gauge(
    "success_due_timestamp_seconds",
    "When the next success is overdue, by schedule and patience; without a schedule it is not there",
)
LAST_RUN_STATE = _gauge("last_run_state", "1 for the state of the last run: success, partial or failed", "state")
LAST_RUN_SECONDS = _gauge("last_run_seconds", "How long the last run took, to its last receipt")
GENERATION = _gauge("last_run_generation", "The last run's place in the ledger")
LAG_RECORDS = _gauge(
    "lag_records", "Offsets not yet copied when the last run ended, where known: an upper bound of records", *BY_TOPIC
)
LAG_BYTES = _gauge("lag_bytes", "About how many bytes that is", *BY_TOPIC)
LAG_SECONDS = _gauge("lag_seconds", "Age of the oldest record that was not yet copied then", *BY_TOPIC)
LAG_UNKNOWN = _gauge("lag_unknown_partitions", "Partitions whose lag, or its age, is not known", *BY_TOPIC)
LAG_TIME = _gauge("lag_timestamp_seconds", "When the lag was measured")
LAG_LIMIT = _gauge("lag_limit_seconds", "The flow's recovery point objective, ferry.rpo.seconds")
LAG_MOST_RECORDS = _gauge("lag_most_records", "Offsets not yet copied then of the partition with the largest lag")
LAG_LIMIT_RECORDS = _gauge("lag_limit_records", "The flow's recovery point objective of a partition, ferry.rpo.records")
VERIFIED_TIME = _gauge("verification_timestamp_seconds", "When was last compared: by a run, or by ferry verify", "by")
VERIFIED_EQUAL = _gauge(
    "verification_equal",
    "1: all that was to be compared is equal, else 0; a comparison of nothing leaves it",
    "by",
)
VERIFIED_DIFFERENCES = _gauge("verification_differences", "Differences that were found", "by")

RECORD_RATE = _gauge("record_rate", "Records per second in the last run", *BY_TOPIC)
BYTE_RATE = _gauge("byte_rate", "Bytes per second in the last run", *BY_TOPIC)
SOURCE_RECORD_POLL_RATE = _gauge("source_record_poll_rate", "Records read per second in the last run")
SOURCE_RECORD_WRITE_RATE = _gauge("source_record_write_rate", "Records copied per second in the last run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Four gauges of one quantity in the last run: the newest, the least, the most and the mean of its values."""

    last: Metric
    min: Metric
    max: Metric
    avg: Metric

    @property
    def all(self) -> tuple[Metric, ...]:
        """All four gauges."""
        return self.last, self.min, self.max, self.avg


def _spread(name: str, what: str, last: str, *labels: str) -> Spread:
    return Spread(
        last=_gauge(name, f"{what}: {last}", *labels),
        min=_gauge(f"{name}_min", f"{what}: the least in the last run", *labels),
        max=_gauge(f"{name}_max", f"{what}: the most in the last run", *labels),
        avg=_gauge(f"{name}_avg", f"{what}: the mean in the last run", *labels),
    )


RECORD_AGE_MS = _spread(
    "record_age_ms",
    "Milliseconds from a record's timestamp to its way to the target",
    "the youngest of the last transaction",
    *BY_TOPIC,
)
REPLICATION_LATENCY_MS = _spread(
    "replication_latency_ms",
    "Milliseconds from a record's timestamp to the receipt with which it was committed",
    "the youngest of the last transaction",
    *BY_TOPIC,
)
CHECKPOINT_LATENCY_MS = _spread(
    "checkpoint_latency_ms",
    "Milliseconds from asking the source for a group's offsets to the target's answer",
    "the mean in the last run",
)
SPREADS = (RECORD_AGE_MS, REPLICATION_LATENCY_MS, CHECKPOINT_LATENCY_MS)

OF_LAST_RUN = (
    RECORD_RATE,
    BYTE_RATE,
    SOURCE_RECORD_POLL_RATE,
    SOURCE_RECORD_WRITE_RATE,
    *(metric for spread in SPREADS for metric in spread.all),
)
"""Gauges about the last run alone: for a topic of which it copied nothing, they are not there."""

GAUGES = (
    *OF_LAST_RUN,
    FIRST_RUN_TIME,
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
    LAG_MOST_RECORDS,
    LAG_LIMIT_RECORDS,
    VERIFIED_TIME,
    VERIFIED_EQUAL,
    VERIFIED_DIFFERENCES,
)

METRICS = (
    *COUNTERS,
    *(
        Metric(
            name=one.last_run, meaning=f"In the last run: {one.meaning[0].lower()}{one.meaning[1:]}", labels=one.labels
        )
        for one in COUNTERS
    ),
    *GAUGES,
)
"""All metrics, in the order in which they are written."""


def labelled(common: Labels, **more: str) -> Labels:
    """Return the labels that every metric of a flow has, and some more."""
    return tuple(sorted((*common, *more.items())))
