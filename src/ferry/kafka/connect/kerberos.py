"""SASL GSSAPI with a principal for each cluster: two realms in one process.

kafka-python takes the process's default credentials. With MIT Kerberos' credential stores (`gss_acquire_cred_from`),
each login has its own keytab and a ticket cache in memory. The file krb5.conf says which realm a broker is in.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from ferry.config.login.jaas import jvm_property
from ferry.config.login.security import KerberosLogin
from ferry.errors import Refused
from ferry.kafka.connect.private_file import private_file
from ferry.kafka.connect.refusal import LoginDelayed, LoginFailed

_NO_LAYER = 1
"""The bit of a security layer that neither signs nor encrypts: Kafka's brokers have no other."""

_KDC_SILENT = ("cannot contact any kdc", "cannot resolve", "resource temporarily unavailable", "timed out")


def _gssapi() -> Any:
    try:
        import gssapi  # noqa: PLC0415 - an extra: it needs Kerberos' own libraries
    except (ImportError, OSError) as error:
        raise Refused(
            f"sasl.mechanism=GSSAPI needs the Python package gssapi, which is not usable here ({error}): install "
            "ferry-replicator[kerberos]; it is built with libkrb5-dev"
        ) from None
    return gssapi


def use_own_gssapi() -> None:
    """Make kafka-python use `_Gssapi` for Ferry's connections; those of other code in this process stay unchanged.

    Raises Refused when the Python package or the Kerberos library is missing.
    """
    _gssapi()
    java_file = jvm_property("java.security.krb5.conf")
    if java_file:
        os.environ.setdefault("KRB5_CONFIG", java_file)
    if SASL_MECHANISMS.get("GSSAPI") is not _mechanism:
        register_sasl_mechanism("GSSAPI", _mechanism, overwrite=True)


def _mechanism(**config: Any) -> SaslMechanism:
    """Make the mechanism of one connection, by its options: Ferry's tickets are in `sasl_kerberos_name`."""
    tickets = config.get("sasl_kerberos_name")
    if isinstance(tickets, KerberosTickets):
        return _Gssapi(tickets, config["host"])
    return SaslMechanismGSSAPI(**config)


class KerberosTickets:
    """The tickets of one login. Each connection asks for them; the library renews them when they end."""

    def __init__(self, login: KerberosLogin) -> None:
        self._login = login
        # A cache of its own: two principals in one cache would replace each other.
        self._cache = f"MEMORY:ferry-{uuid.uuid4().hex}"

    def first_context(self, host: str) -> tuple[Any, bytes]:
        """Return a security context with the broker at `host`, and its first token.

        Raises LoginFailed when the login cannot succeed, LoginDelayed when no KDC answers.
        """
        gssapi = _gssapi()
        login = self._login
        try:
            credentials = self._credentials(gssapi)
        except gssapi.exceptions.GSSError as error:
            raise _failure(error, f"Kerberos login of {self._who}", self._remedy()) from None
        try:
            name = gssapi.Name(f"{login.service_name}@{host}", name_type=gssapi.NameType.hostbased_service)
            broker = name.canonicalize(gssapi.MechType.kerberos)
            context = gssapi.SecurityContext(name=broker, creds=credentials, usage="initiate")
            token: bytes = context.step(None) or b""
        except gssapi.exceptions.GSSError as error:
            what = f"getting a Kerberos ticket of {self._who} for {login.service_name}@{host}"
            remedy = "correct sasl.kerberos.service.name, the broker's address, or [domain_realm] in krb5.conf"
            raise _failure(error, what, remedy) from None
        return context, token

    def _credentials(self, gssapi: Any) -> Any:
        login = self._login
        name = None
        if login.principal is not None:
            name = gssapi.Name(login.principal, name_type=gssapi.NameType.kerberos_principal)
        if login.keytab_path is None:
            store = {"ccache": login.ticket_cache} if login.ticket_cache else None
            return gssapi.Credentials(name=name, usage="initiate", store=store)
        with private_file(login.keytab) as path:
            store = {"client_keytab": f"FILE:{path}", "ccache": self._cache}
            credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
            # The question about the lifetime makes the library fetch the ticket, while the keytab exists.
            credentials.inquire(name=False, lifetime=True, usage=False, mechs=False)
        return credentials

    @property
    def _who(self) -> str:
        return self._login.principal or "the ticket cache"

    def _remedy(self) -> str:
        login = self._login
        if login.keytab_path is None:
            return f"fill the ticket cache {login.ticket_cache or 'of this machine'} with kinit, or use a keytab"
        return f"correct principal and keyTab {login.keytab_path}, or the realm in krb5.conf"


class _Gssapi(SaslMechanism):  # type: ignore[misc]  # kafka-python has no types
    """The exchange of SASL GSSAPI (RFC 4752, section 3.1) with the tickets of one login, without a security layer."""

    def __init__(self, tickets: KerberosTickets, host: str) -> None:
        self._context, self._token = tickets.first_context(host)
        self._answered = False
        self._done = False

    def auth_bytes(self) -> bytes:
        """Return what is sent next. The client sends last, so the exchange is done with the answer about layers."""
        self._done = self._answered
        return self._token

    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's answer. Raises LoginFailed when it does not prove that the broker sent it."""
        try:
            self._receive(auth_bytes)
        except _gssapi().exceptions.GSSError as error:
            raise LoginFailed(
                f"the broker's Kerberos answer is not accepted ({_said(error)}): look at the broker's log"
            ) from None

    def _receive(self, auth_bytes: bytes) -> None:
        if self._done:  # brokers confirm the last token with an empty one
            if auth_bytes:
                raise LoginFailed("the broker's Kerberos answer continues after its end: look at the broker's log")
        elif not self._context.complete:
            self._token = self._context.step(auth_bytes) or b""
        else:
            offer = self._context.unwrap(auth_bytes).message  # a set of layers, and how long a message may be
            if not offer:
                raise LoginFailed("the broker's Kerberos answer offers no security layer: look at the broker's log")
            # No identity after it: the ticket's own.
            self._token = self._context.wrap(bytes([offer[0] & _NO_LAYER]) + offer[1:], False).message
            self._answered = True

    def is_done(self) -> bool:
        """Return whether the client has sent its last token."""
        return self._done

    def is_authenticated(self) -> bool:
        """Return whether the broker has proved that it has the service's key."""
        return self._answered

    def auth_details(self) -> str:
        """Return who is logged in where, for kafka-python's log."""
        return f"authenticated as {self._context.initiator_name} to {self._context.target_name} by GSSAPI"


def _failure(error: Any, what: str, remedy: str) -> LoginFailed | LoginDelayed:
    said = _said(error)
    if any(words in said.lower() for words in _KDC_SILENT):
        return LoginDelayed(f"{what}: {said}")
    return LoginFailed(f"{what} failed ({said}): {remedy}")


def _said(error: Any) -> str:
    """Return the Kerberos library's own text, without the general part of GSSAPI before it."""
    minor = error.gen_message() if hasattr(error, "gen_message") else str(error)
    return " ".join(str(minor).rpartition("Minor (")[2].partition("): ")[2].split()) or str(minor)
