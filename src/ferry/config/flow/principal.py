"""The principal that a cluster's brokers know Ferry as, by the file: ACLs are granted to it.

Sources: `DefaultKafkaPrincipalBuilder`, `KerberosShortNamer` and `SslPrincipalMapper` of Kafka 4.3.0, each with its
default rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from cryptography import x509

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.layers import ROLE_AT, Side
from ferry.config.login.sasl import jaas_login
from ferry.config.login.stores import tls_options
from ferry.config.login.unknown import unknown_here
from ferry.config.text.secrets import ClientProperties, has_reference
from ferry.errors import BadInput, Refused

_SPECIAL = frozenset(',=+<>#;"\\')
"""Java and RFC 4514 escape these characters in different ways."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A principal as ACLs name it, `User:...`; None where the file does not show it, and `why` has the reason."""

    name: str | None
    why: str


def principal_of(flow: FlowConfig, side: Side) -> Principal:
    """Return the principal of the flow's client on that side. A name that comes from a reference is not known."""
    alias = flow.flow.source if side == "source" else flow.flow.target
    if alias in flow.clients.unknown:
        return _unknown(unknown_here(flow.clients.connections[alias]))
    try:
        protocol = security_protocol(flow, side)
        if protocol.startswith("SASL"):
            return _by_login(flow, side)
        if protocol == "SSL":
            return _by_certificate(flow.client(side, ROLE_AT[side]))
    except (BadInput, Refused) as error:
        return _unknown(str(error))
    return _unknown("PLAINTEXT has no login")


def security_protocol(flow: FlowConfig, side: Side) -> str:
    """Return how that side's listener is protected. Raises BadInput where a reference in it cannot be resolved."""
    return _plain(flow, side, "security.protocol", "PLAINTEXT").strip().upper()


def _plain(flow: FlowConfig, side: Side, name: str, default: str) -> str:
    clients = flow.clients
    return clients.providers.resolved(name, clients.properties[side, ROLE_AT[side]].get(name, default))


def _unknown(why: str) -> Principal:
    return Principal(name=None, why=why)


def _by_login(flow: FlowConfig, side: Side) -> Principal:
    mechanism = _plain(flow, side, "sasl.mechanism", "GSSAPI").strip()
    if mechanism == "OAUTHBEARER":
        return _unknown("who issues an OAUTHBEARER token decides whose it is")
    written = flow.clients.properties[side, ROLE_AT[side]]
    # As written: neither a password nor a keytab is needed for a name.
    try:
        _, jaas = jaas_login(written, mechanism)
    except BadInput:
        if has_reference(written.get("sasl.jaas.config", "")):
            return _unknown("the login comes out of ${...}")
        raise
    option = "principal" if mechanism == "GSSAPI" else "username"
    who = jaas.options.get(option, "").strip()
    if has_reference(who):
        return _unknown(f"{option} of the login comes out of ${{...}}")
    if not who:
        return _unknown(f"the login names no {option}")
    if mechanism == "GSSAPI":
        return Principal(name=f"User:{short_name(who)}", why=f"{who} of the login, by Kafka's default rule")
    return Principal(name=f"User:{who}", why="the login's user")


def short_name(principal: str) -> str:
    """Return the short name of a principal of the brokers' realm.

    The rule is `sasl.kerberos.principal.to.local.rules = DEFAULT`.
    """
    return principal.partition("@")[0].partition("/")[0]


def _by_certificate(properties: ClientProperties) -> Principal:
    try:
        chain = tls_options(properties).chain_pem
    except (BadInput, Refused) as error:
        return _unknown(properties.redacted(error))
    if chain is None:
        return _unknown("no client certificate is shown")
    subject = distinguished_name(x509.load_pem_x509_certificate(chain.encode()).subject)
    if subject is None:
        return _unknown("the certificate's subject has parts that Java spells in a way of its own")
    return Principal(name=f"User:{subject}", why="the certificate's subject")


def distinguished_name(subject: x509.Name) -> str | None:
    """Return a subject as Java's `X500Principal.getName()` spells it; None for parts whose spelling is not certain."""
    for part in subject.rdns:
        (one, *others) = part
        text = one.value
        plain = isinstance(text, str) and text.isascii() and text.isprintable() and text == text.strip()
        if others or not plain or _SPECIAL & set(text) or one.rfc4514_attribute_name == one.oid.dotted_string:
            return None
    return subject.rfc4514_string()
