"""SASL GSSAPI with a principal for each cluster: two realms in one process.

kafka-python takes the process's default credentials. With MIT Kerberos' credential stores (`gss_acquire_cred_from`),
each login has its own keytab and a ticket cache in memory. krb5.conf says which realm a broker is in.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

from kafka.net.sasl import SASL_MECHANISMS, register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

from ferry.config.login.jaas import jvm_property
from ferry.config.login.security import KerberosLogin
from ferry.errors import Refused
from ferry.kafka.connect.private_file import private_file
from ferry.kafka.connect.refusal import LoginDelayed, LoginFailed

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
    """Make kafka-python use `_Gssapi`, which leaves connections of other code in this process unchanged.

    Raises Refused when the Python package or the Kerberos library is missing.
    """
    _gssapi()
    java_file = jvm_property("java.security.krb5.conf")
    if java_file:
        os.environ.setdefault("KRB5_CONFIG", java_file)
    if SASL_MECHANISMS.get("GSSAPI") is not _Gssapi:
        register_sasl_mechanism("GSSAPI", _Gssapi, overwrite=True)


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


class _Gssapi(SaslMechanismGSSAPI):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's mechanism with the tickets of one login."""

    def __init__(self, **config: Any) -> None:
        tickets = config.get("sasl_kerberos_name")
        if not isinstance(tickets, KerberosTickets):
            super().__init__(**config)
            return
        self._is_done = False
        self._is_authenticated = False
        self.auth_id = ""  # no other identity than that of the ticket (RFC 4752, 3.1)
        self._client_ctx, self._next_token = tickets.first_context(config["host"])

    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's answer. Raises LoginFailed when it does not prove that the broker sent it."""
        try:
            super().receive(auth_bytes)
        except _gssapi().exceptions.GSSError as error:
            raise LoginFailed(
                f"the broker's Kerberos answer is not accepted ({_said(error)}): look at the broker's log"
            ) from None


def _failure(error: Any, what: str, remedy: str) -> LoginFailed | LoginDelayed:
    said = _said(error)
    if any(words in said.lower() for words in _KDC_SILENT):
        return LoginDelayed(f"{what}: {said}")
    return LoginFailed(f"{what} failed ({said}): {remedy}")


def _said(error: Any) -> str:
    """Return the Kerberos library's own text, without the general part of GSSAPI before it."""
    minor = error.gen_message() if hasattr(error, "gen_message") else str(error)
    return " ".join(str(minor).rpartition("Minor (")[2].partition("): ")[2].split()) or str(minor)
