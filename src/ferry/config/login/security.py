"""How a client proves its identity and what it trusts, as values that hold all they need, so that they work anywhere.

Stores, keytabs and similar files are read where the configuration is read; Spark's executors need none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """One TLS client, all of it PEM text. `key_pem` is not encrypted and never shown."""

    check_hostname: bool
    trusted_pem: str | None = field(repr=False)
    """Certificates that end a chain, whatever their issuer is, as in Java; None: those of the operating system."""
    chain_pem: str | None = field(repr=False)
    """The client's certificate and those up to its issuer; None: the client shows none."""
    key_pem: str | None = field(repr=False)
    versions: tuple[str, ...] = TLS_VERSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordLogin:
    """SASL PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

    mechanism: str
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthLogin:
    """SASL OAUTHBEARER: a token from a token endpoint (OAuth 2.0 client credentials), or from a file. Times are ms."""

    endpoint_url: str | None
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None
    url_encode: bool
    """Whether id and secret are encoded in the Authorization header, as RFC 6749 requires and Kafka does on request."""
    tls: TlsOptions | None
    token_file: str | None
    token: str = field(repr=False)
    """The content of the file when the configuration was read, for machines without the file."""
    extensions: Mapping[str, str] = field(repr=False)
    connect_timeout_ms: int
    read_timeout_ms: int
    retry_ms: int
    retry_max_ms: int
    mechanism: str = "OAUTHBEARER"


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """SASL GSSAPI, with a keytab or with a ticket cache that another program fills."""

    service_name: str
    principal: str | None
    """The client's principal; None: that of the ticket cache."""
    keytab_path: str | None
    keytab: bytes = field(repr=False)
    ticket_cache: str | None
    """The path of the ticket cache; None: the default cache of the machine. Not used when there is a keytab."""
    mechanism: str = "GSSAPI"


Login = PasswordLogin | OAuthLogin | KerberosLogin
