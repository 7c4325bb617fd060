"""The metrics of MirrorMaker 2, each with its counterpart in Ferry, or with the reason why there is none.

Sources, of Kafka 4.3.0: `MirrorSourceMetrics`, `MirrorCheckpointMetrics`, and of Kafka Connect, in which they run, the
groups of `ConnectMetricsRegistry` that a source connector has.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.samples import Metric, Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """A metric of MirrorMaker 2 in its own spelling, with a remark.

    `here` are Ferry's metrics with the same content; empty: there are none.
    """

    name: str
    here: tuple[Metric, ...]
    remark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The metrics of one MBean, under Kafka's name for it."""

    mbean: str
    rows: tuple[Counterpart, ...]


def _is(name: str, *here: Metric, remark: str = "") -> Counterpart:
    return Counterpart(name=name, here=here, remark=remark)


def _spread(of: Spread, remark: str) -> tuple[Counterpart, ...]:
    return tuple(_is(metric.word, metric, remark=remark if metric is of.last else "") for metric in of.all)


def _none(why: str, *names: str) -> tuple[Counterpart, ...]:
    return tuple(Counterpart(name=name, here=(), remark=why) for name in names)


_READS = "when the record goes to the target; how true the figures are is said above"
_NO_OFFSETS = "Connect commits its own offsets aside; positions here are part of each transaction"
_NO_WORKERS = "no worker, connector or task runs between runs: Airflow and Spark show their own"
_NO_LOOP = "nothing polls: a run reads ahead and writes at the same time, and ends"
_NO_CLASSES = "no connector, task or converter is loaded: batches go as bytes, and Spark does what transforms say"
_NO_LOG = "nothing is skipped with a line in a log alone: it is refused by name, counted as a gap, or a dead letter"
_NO_LETTER = (
    "a letter is in the transaction of the copy around it: where it cannot be written, its partition is refused"
)

MIRROR_GROUPS = (
    Group(
        mbean="kafka.connect.mirror:type=MirrorSourceConnector,source=,target=,topic=,partition=",
        rows=(
            _is("record-count", m.RECORD_COUNT),
            _is(
                "record-rate",
                m.RECORD_RATE,
                remark="over any time: `rate(ferry_record_count_total[1h])`",
            ),
            *_spread(m.RECORD_AGE_MS, _READS),
            _is("byte-count", m.BYTE_COUNT, remark="as stored; MirrorMaker 2 counts values, uncompressed"),
            _is("byte-rate", m.BYTE_RATE),
            *_spread(m.REPLICATION_LATENCY_MS, "until the receipt, which the commit follows"),
        ),
    ),
    Group(
        mbean="kafka.connect.mirror:type=MirrorCheckpointConnector,source=,target=,group=,topic=,partition=",
        rows=_spread(m.CHECKPOINT_LATENCY_MS, "over the groups that a run wrote; no labels of a group"),
    ),
    Group(
        mbean="kafka.connect:type=source-task-metrics,connector=,task=",
        rows=(
            _is("source-record-poll-total", m.SOURCE_RECORD_POLL),
            _is("source-record-poll-rate", m.SOURCE_RECORD_POLL_RATE),
            _is("source-record-write-total", m.SOURCE_RECORD_WRITE),
            _is("source-record-write-rate", m.SOURCE_RECORD_WRITE_RATE),
            *_none(_NO_LOOP, "poll-batch-max-time-ms", "poll-batch-avg-time-ms"),
            *_none(
                _NO_LOOP,
                "source-record-active-count",
                "source-record-active-count-max",
                "source-record-active-count-avg",
            ),
            *_none(
                "a transaction is a chunk of many partitions, bounded by bytes and time; the ledger has each",
                "transaction-size-min",
                "transaction-size-max",
                "transaction-size-avg",
            ),
        ),
    ),
    Group(
        mbean="kafka.connect:type=connector-task-metrics,connector=,task=",
        rows=(
            _is("status", m.LAST_RUN_STATE, remark="`success`, `partial` or `failed`"),
            *_none(_NO_WORKERS, "running-ratio", "pause-ratio"),
            *_none(
                _NO_OFFSETS,
                "offset-commit-max-time-ms",
                "offset-commit-avg-time-ms",
                "offset-commit-failure-percentage",
                "offset-commit-success-percentage",
            ),
            _is("batch-size-max", remark="batches keep the size that their producers gave them"),
            _is(
                "batch-size-avg",
                m.RECORD_COUNT,
                m.BATCH_COUNT,
                remark="records over batches, as `rate(…) / rate(…)`",
            ),
            *_none(
                _NO_CLASSES,
                "connector-class",
                "connector-type",
                "connector-version",
                "task-class",
                "task-version",
                "key-converter-class",
                "key-converter-version",
                "value-converter-class",
                "value-converter-version",
                "header-converter-class",
                "header-converter-version",
            ),
        ),
    ),
    Group(
        mbean="kafka.connect:type=task-error-metrics,connector=,task=",
        rows=(
            _is("total-record-failures", m.REFUSAL_COUNT),
            _is("total-record-errors", m.REFUSAL_COUNT),
            _is(
                "total-records-skipped",
                m.GAP_COUNT,
                m.DEAD_LETTER_COUNT,
                remark="places that a policy of the file, or an operator, passed; with `poison = skip` dead letters",
            ),
            *_none("attempts are in the ledger, and tries of tasks in Airflow", "total-retries"),
            *_none(_NO_LOG, "total-errors-logged"),
            _is("deadletterqueue-produce-requests", m.DEAD_LETTER_COUNT, remark="those that were committed"),
            *_none(_NO_LETTER, "deadletterqueue-produce-failures"),
            _is("last-error-timestamp", m.LAST_RUN_STATE, m.LAST_RUN_TIME),
        ),
    ),
)
"""MirrorMaker 2's metrics, in its order."""
