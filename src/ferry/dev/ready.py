"""Whether brokers answer: ApiVersions, the full membership, and loaded transaction and group coordinators."""

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import GroupIdNotFoundError, KafkaError, TransactionalIdNotFoundError

POLL_SECONDS = 0.1
REQUEST_TIMEOUT_MS = 5_000
# ApiVersions (key 18, version 0, no client id): the one request that any broker answers to any client.
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode` of ASCII `text`; coordinators are found by it."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value


def names_of_all_partitions(partitions: int) -> list[str]:
    """Return one name per partition of a coordinator's topic: asking for each finds every coordinator loaded.

    Kafka chooses `abs(hashCode) % partitions` with the sign bit cleared (`Utils.abs`, `Utils.toPositive`).
    """
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        name = f"ferry-dev-{number}"
        number += 1
        value = java_hash(name)
        if value < 1 << 31:  # `abs` and `toPositive` agree on these
            found.setdefault(value % partitions, name)
    return [found[partition] for partition in range(partitions)]


def _client(address: str) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=address, request_timeout_ms=REQUEST_TIMEOUT_MS, client_id="ferry-dev", retry_backoff_ms=100
    )


def _members(address: str) -> set[int]:
    """Return the node ids that the broker at `address` sees alive."""
    client = _client(address)
    try:
        description: dict[str, Any] = client.describe_cluster()
        return {broker["broker_id"] for broker in description["brokers"] if not broker.get("is_fenced")}
    finally:
        client.close()


def answers(host: str, port: int) -> bool:
    """Return whether a PLAINTEXT listener answers ApiVersions within a second.

    A starting broker accepts connections seconds before it serves them, and a whole client would wait for that.
    """
    try:
        with socket.create_connection((host, port), timeout=1) as connection:
            connection.sendall(API_VERSIONS)
            return bool(connection.recv(4))
    except OSError:
        return False


def sees(address: str, node_ids: set[int]) -> bool:
    """Return whether the broker at `address` answers and sees all of `node_ids` alive."""
    try:
        return node_ids <= _members(address)
    except (KafkaError, OSError):
        return False


def coordinators_loaded(address: str, *, transaction_partitions: int, group_partitions: int) -> bool:
    """Return whether each transaction and group coordinator answers; creates their topics without writing to them."""
    try:
        client = _client(address)
    except (KafkaError, OSError):
        return False
    try:
        for name in names_of_all_partitions(transaction_partitions):
            try:
                client.describe_transactions([name])
            except TransactionalIdNotFoundError:
                continue
        for name in names_of_all_partitions(group_partitions):
            try:
                client.describe_groups([name])
            except GroupIdNotFoundError:
                continue
    except (KafkaError, OSError):
        return False
    finally:
        client.close()
    return True


def wait_until(condition: Callable[[], bool], *, deadline: float, alive: Callable[[], bool]) -> bool:
    """Check `condition` until it holds; False when `alive` no longer does or `deadline` (time.monotonic) passes."""
    while not condition():
        if not alive() or time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
