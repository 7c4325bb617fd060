"""Kafka's error codes by the caller's next move (source: `org.apache.kafka.common.protocol.Errors`)."""

from __future__ import annotations

import kafka.errors as kafka_errors

UNKNOWN_SERVER_ERROR = -1
NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
MESSAGE_TOO_LARGE = 10
OFFSET_METADATA_TOO_LARGE = 12
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
NOT_COORDINATOR = 16
INVALID_TOPIC = 17
RECORD_LIST_TOO_LARGE = 18
NOT_ENOUGH_REPLICAS = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
ILLEGAL_GENERATION = 22
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
INVALID_COMMIT_OFFSET_SIZE = 28
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_TIMESTAMP = 32
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_REPLICATION_FACTOR = 38
INVALID_CONFIG = 40
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
POLICY_VIOLATION = 44
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
DUPLICATE_SEQUENCE_NUMBER = 46
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
INVALID_TRANSACTION_TIMEOUT = 50
CONCURRENT_TRANSACTIONS = 51
TRANSACTION_COORDINATOR_FENCED = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
SECURITY_DISABLED = 54
OPERATION_NOT_ATTEMPTED = 55
KAFKA_STORAGE_ERROR = 56
UNKNOWN_PRODUCER_ID = 59
GROUP_ID_NOT_FOUND = 69
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNSUPPORTED_COMPRESSION_TYPE = 76
OFFSET_NOT_AVAILABLE = 78
UNSTABLE_OFFSET_COMMIT = 88
INVALID_RECORD = 87
THROTTLING_QUOTA_EXCEEDED = 89
PRODUCER_FENCED = 90
UNKNOWN_TOPIC_ID = 100
TRANSACTIONAL_ID_NOT_FOUND = 105
FENCED_MEMBER_EPOCH = 110
STALE_MEMBER_EPOCH = 113
TRANSACTION_ABORTABLE = 120

LEADER_MOVED = frozenset(
    {
        UNKNOWN_TOPIC_OR_PARTITION,
        LEADER_NOT_AVAILABLE,
        NOT_LEADER_OR_FOLLOWER,
        KAFKA_STORAGE_ERROR,
        FENCED_LEADER_EPOCH,
        UNKNOWN_LEADER_EPOCH,
        OFFSET_NOT_AVAILABLE,
        REQUEST_TIMED_OUT,
    }
)
"""Errors after which the caller asks for the metadata again and then repeats."""

COORDINATOR_MOVED = frozenset(
    {COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, REQUEST_TIMED_OUT}
)
"""Errors after which the caller asks for the coordinator again and then repeats."""

FENCED = frozenset({INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, INVALID_PRODUCER_ID_MAPPING})
"""A newer writer initialised the transactional id, or the broker aborted the transaction: this writer must end."""

OF_TRANSACTION = FENCED | {
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_TXN_STATE,
    INVALID_TRANSACTION_TIMEOUT,
    CONCURRENT_TRANSACTIONS,
    TRANSACTION_COORDINATOR_FENCED,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_PRODUCER_ID,
    TRANSACTIONAL_ID_NOT_FOUND,
    TRANSACTION_ABORTABLE,
}
"""Errors of the transaction, its producer or its coordinator, also where an answer has them for one partition."""

UNAUTHORIZED = frozenset(
    {
        TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED,
        CLUSTER_AUTHORIZATION_FAILED,
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors about permissions: a repeat changes nothing."""

OF_ONE_PARTITION = frozenset({UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED})
"""Errors in an answer about several partitions of a transaction that concern one partition alone."""

_TOO_FEW = "fewer replicas are in sync than min.insync.replicas requires; bring them back, or lower min.insync.replicas"
_REMEDIES = {
    UNKNOWN_TOPIC_OR_PARTITION: "the topic is gone, find out who deleted it, then run again",
    UNKNOWN_TOPIC_ID: "the topic is gone, find out who deleted it, then run again",
    INVALID_TOPIC: "Kafka does not allow that name, choose another alias or replication policy",
    NOT_ENOUGH_REPLICAS: _TOO_FEW,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND: _TOO_FEW,
    INVALID_REPLICATION_FACTOR: "lower replication.factor, or add brokers",
    INVALID_CONFIG: "correct that setting at the source, or name it in config.properties.exclude",
    POLICY_VIOLATION: "a policy of the cluster (create.topic.policy.class.name, alter.config.policy.class.name) "
    "forbids it, do it by hand as it asks",
    KAFKA_STORAGE_ERROR: "its broker cannot write to its disk, look at that broker's log directories",
}
"""What the operator can do, by code, for conditions that only an operator can end."""


def advised(code: int, said: str | None = None) -> str:
    """Return the code, or what the broker said with it, and the remedy where there is one; the end of a sentence."""
    text = said or describe(code)
    return f"{text}: {_REMEDIES[code]}" if code in _REMEDIES else text


def describe(code: int) -> str:
    """Return the code as Kafka's name and number, for sentences: `NotLeaderForPartitionError (6)`."""
    return f"{kafka_errors.for_code(code).__name__} ({code})"
