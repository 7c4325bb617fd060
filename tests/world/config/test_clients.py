"""Java client properties as options of Ferry's connections and of confluent-kafka, and what is refused."""

import pickle
from pathlib import Path

from kafka.net.manager import KafkaConnectionManager

from ferry.config.flow.clients import kafka_python_options
from ferry.config.login.security import OAuthLogin
from ferry.lane.connections import manager_options
from tests.pure.config.test_clients import ENDPOINT, OAUTH, kerberos, keytab

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
