"""The exchange of a Kerberos login (RFC 4752), with a security context that does no cryptography."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka.net.sasl import SASL_MECHANISMS, get_sasl_mechanism, register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from ferry.config.login.security import KerberosLogin
from ferry.kafka.connect import kerberos
from ferry.kafka.connect.refusal import LoginFailed
from tests.golden import Golden


class Forged(Exception):
    """Stands for GSSError."""


class Context:
    """Takes one token of the broker, and then wraps what it is given in brackets."""

    initiator_name, target_name = "ferry@A", "kafka/broker@A"

    def __init__(self) -> None:
        self.complete = False

    def step(self, token: bytes) -> bytes | None:
        if token != b"ticket accepted":
            raise Forged("Minor (1): not genuine")
        self.complete = True
        return None

    def unwrap(self, message: bytes) -> SimpleNamespace:
        return SimpleNamespace(message=message[1:-1])

    def wrap(self, message: bytes, encrypt: bool) -> SimpleNamespace:
        assert not encrypt
        return SimpleNamespace(message=b"[" + message + b"]")


@pytest.fixture
def mechanism(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The mechanism that kafka-python's connection makes for one of Ferry's."""
    monkeypatch.setattr(kerberos, "_gssapi", lambda: SimpleNamespace(exceptions=SimpleNamespace(GSSError=Forged)))
    monkeypatch.setattr(
        kerberos.KerberosTickets, "first_context", lambda _, host: (Context(), f"ticket for {host}".encode())
    )
    before = SASL_MECHANISMS["GSSAPI"]
    kerberos.use_own_gssapi()
    login = KerberosLogin(service_name="kafka", principal=None, keytab_path=None, keytab=b"", ticket_cache=None)
    yield get_sasl_mechanism("GSSAPI")(host="broker", sasl_kerberos_name=kerberos.KerberosTickets(login))
    register_sasl_mechanism("GSSAPI", before, overwrite=True)


@pytest.mark.parametrize(("layers", "chosen"), [(0b111, 1), (0b001, 1), (0b110, 0)])
def test_a_login_sends_its_ticket_and_chooses_no_layer(mechanism: Any, layers: int, chosen: int) -> None:
    assert mechanism.auth_bytes() == b"ticket for broker"
    mechanism.receive(b"ticket accepted")
    assert mechanism.auth_bytes() == b""
    assert not mechanism.is_done()
    mechanism.receive(b"[" + bytes([layers, 0, 1, 0]) + b"]")
    assert not mechanism.is_done()
    assert mechanism.auth_bytes() == b"[" + bytes([chosen, 0, 1, 0]) + b"]"
    assert (mechanism.is_done(), mechanism.is_authenticated()) == (True, True)
    mechanism.receive(b"")
    assert "ferry@A" in mechanism.auth_details()


def test_a_broker_that_has_not_the_services_key_is_no_broker(mechanism: Any, golden: Golden) -> None:
    with pytest.raises(LoginFailed) as caught:
        mechanism.receive(b"anything")
    golden(caught.value)
    assert not mechanism.is_authenticated()


@pytest.mark.parametrize("offer", [b"[]", b""])
def test_an_offer_without_layers_is_none(mechanism: Any, offer: bytes, golden: Golden) -> None:
    mechanism.receive(b"ticket accepted")
    with pytest.raises(LoginFailed) as caught:
        mechanism.receive(offer)
    golden(caught.value)


def test_nothing_comes_after_the_end(mechanism: Any, golden: Golden) -> None:
    mechanism.receive(b"ticket accepted")
    mechanism.receive(b"[\1\0\1\0]")
    mechanism.auth_bytes()
    with pytest.raises(LoginFailed) as caught:
        mechanism.receive(b"more")
    golden(caught.value)


def test_other_connections_of_the_process_have_kafka_pythons_own(
    mechanism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SaslMechanismGSSAPI, "__init__", lambda *_, **__: None)
    made = get_sasl_mechanism("GSSAPI")(host="broker", sasl_kerberos_service_name="kafka")
    assert type(made) is SaslMechanismGSSAPI
    assert type(mechanism) is not SaslMechanismGSSAPI
