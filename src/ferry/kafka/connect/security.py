"""TLS and logins as arguments of kafka-python.

kafka-python's own mechanisms serve PLAIN, SCRAM and OAUTHBEARER. `ferry.kafka.connect.kerberos` replaces its GSSAPI for
Ferry's connections, because that one supports a single principal per process.
"""

from __future__ import annotations

import logging
import ssl
from typing import Any

from kafka.protocol.sasl import SaslAuthenticateRequest, SaslBytesRequest

from ferry.config.login.security import KerberosLogin, Login, OAuthLogin, PasswordLogin, TlsOptions
from ferry.kafka.connect.kerberos import KerberosTickets, use_own_gssapi
from ferry.kafka.connect.private_file import private_file

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def security_arguments(tls: TlsOptions | None, login: Login | None) -> dict[str, Any]:
    """Return keyword arguments of kafka-python's connection manager. Raises Refused when a library is missing."""
    found: dict[str, Any] = {}
    if tls is not None:
        found["ssl_context"] = tls_context(tls)
    if login is not None:
        found["sasl_mechanism"] = login.mechanism
        for name in ("kafka.net.connection", "kafka.protocol.parser"):
            logging.getLogger(name).addFilter(_without_credentials)
    match login:
        case PasswordLogin(mechanism="PLAIN"):
            found |= {"sasl_plain_username": login.username, "sasl_plain_password": login.password}
        case PasswordLogin():
            # RFC 5802, 5.1: these two characters would end the attribute. kafka-python sends names unchanged.
            name = login.username.replace("=", "=3D").replace(",", "=2C")
            found |= {"sasl_plain_username": name, "sasl_plain_password": login.password}
        case OAuthLogin():
            # Spark's workers import this module, and few of them need an HTTP client.
            from ferry.kafka.connect.oauth import Tokens  # noqa: PLC0415 - as said

            context = None if login.tls is None else tls_context(login.tls)
            found["sasl_oauth_token_provider"] = Tokens(login, context)
        case KerberosLogin():
            use_own_gssapi()
            found["sasl_kerberos_name"] = KerberosTickets(login)
    return found


def _without_credentials(record: logging.LogRecord) -> bool:
    """Keep the content of logins out of kafka-python's debug log, which shows each request whole."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            type(argument).__name__ if isinstance(argument, SaslAuthenticateRequest | SaslBytesRequest) else argument
            for argument in record.args
        )
    return True


def tls_context(tls: TlsOptions) -> ssl.SSLContext:
    """Make a client's context. It always verifies the chain, and host names unless that is switched off."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.check_hostname
    context.minimum_version = _VERSIONS[tls.versions[0]]
    context.maximum_version = _VERSIONS[tls.versions[-1]]
    # Java, too, accepts every certificate in the trust store as the end of a chain, self-signed or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if tls.trusted_pem is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=tls.trusted_pem)
    if tls.key_pem is not None and tls.chain_pem is not None:
        with private_file((tls.key_pem + tls.chain_pem).encode()) as path:
            context.load_cert_chain(path)
    return context
