"""Java client properties as options of Ferry's connections and of confluent-kafka, and what is refused."""

import pickle
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from kafka.net.manager import KafkaConnectionManager

from ferry.config.client_options import FetchOptions
from ferry.config.flow.clients import kafka_python_options
from ferry.config.flow.librdkafka import TIMES, librdkafka_options, reading_options
from ferry.config.login.security import OAuthLogin
from ferry.lane.connections import manager_options
from tests.pure.config.test_clients import ENDPOINT, OAUTH, SERVERS, kerberos, keytab

__all__ = ["keytab"]  # a fixture


def test_logins_travel_to_machines_without_their_files(keytab: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc.def.ghi")
    by_keytab = f'useKeyTab=true keyTab="{keytab}" principal="me@HERE" serviceName="kafka"'
    for path, properties in ((keytab, kerberos(by_keytab)), (token, OAUTH | {ENDPOINT: token.as_uri()})):
        sent = pickle.dumps(kafka_python_options(properties))
        path.unlink()
        arrived = pickle.loads(sent)
        assert set(manager_options(arrived)) <= set(KafkaConnectionManager.DEFAULT_CONFIG)
        if isinstance(arrived.login, OAuthLogin):
            assert manager_options(arrived)["sasl_oauth_token_provider"].token() == "abc.def.ghi"
        else:
            assert arrived.login.keytab == b"\x05\x02 and keys"


def test_librdkafka_takes_the_plain_options() -> None:
    Consumer({**librdkafka_options(SERVERS), "group.id": "g"}).close()


@pytest.mark.parametrize("row", TIMES, ids=lambda row: row[0])
def test_librdkafka_takes_a_time_at_both_ends_of_its_range(row: tuple[str, str, str, int, int]) -> None:
    java, _, _, low, high = row
    given = {"reconnect.backoff.max.ms": "3600000"} if java == "reconnect.backoff.ms" else {}
    for value in (max(low, 1), high, 2**40):
        options = librdkafka_options(SERVERS | given | {java: str(value)})
        Consumer({**options, "group.id": "g"}).close()


@pytest.mark.parametrize("memory", [1, 4 << 20, 256 << 20, 64 << 30])
@pytest.mark.parametrize("size", [None, 0, 1_000, 2**31 - 1])
def test_librdkafka_takes_the_options_of_reading_ahead(memory: int, size: int | None) -> None:
    fetch = FetchOptions(max_bytes=size, partition_max_bytes=size, min_bytes=size, max_wait_ms=size, rack="r1")
    Consumer({**librdkafka_options(SERVERS), **reading_options(fetch, memory), "group.id": "g"}).close()
