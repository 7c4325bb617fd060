"""What an Airflow connection may use on this machine: a user who edits connections must not read its files by that.

Kafka's clients have the list of token endpoints since CVE-2025-27817; the list of paths is Ferry's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ferry.config.login.jaas import KAFKA_OPTS, JaasLogin, jvm_property
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import shown_address
from ferry.messages.catalogue import sentence

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
"""The system property of Java's clients, here of KAFKA_OPTS: whole addresses with commas between."""
PATHS_VARIABLE = "FERRY_CONNECTION_PATHS"
"""The folders and files that connections may name, with colons between; none by default."""

_JAAS = "sasl.jaas.config"
_CACHES = ("FILE:", "file:")


def allowed_urls() -> frozenset[str] | None:
    """Return the token endpoints that may be asked; None where KAFKA_OPTS has no list."""
    text = jvm_property(ALLOWED_URLS)
    return frozenset(item.strip() for item in text.split(",")) if text else None


def not_allowed(url: str) -> str:
    """Return why a token endpoint that is not in the list is not asked, and what to do."""
    return (
        f"{shown_address(url)} is not among the allowed token endpoints; add it to -D{ALLOWED_URLS} of {KAFKA_OPTS} on"
        " the machines that use it, or correct it"
    )


def check_connection(properties: Mapping[str, str], jaas: JaasLogin | None) -> None:
    """Refuse (BadValue) settings with which this machine would use its own files or logins for a connection's brokers.

    `properties` are those of the connection; `jaas` is its login module, if it has one.
    """
    url = properties.get(ENDPOINT, "").strip()
    if url.lower().startswith("file:"):
        raise BadValue(sentence("login.endpoint-file", endpoint=ENDPOINT))
    if url and url not in (allowed_urls() or ()):
        raise BadValue(sentence("login.endpoint", endpoint=ENDPOINT, why=not_allowed(url)))
    if jaas is None and properties.get("security.protocol", "").strip().upper().startswith("SASL"):
        raise BadValue(sentence("login.none", jaas=_JAAS, kafka_opts=KAFKA_OPTS))
    for name, path in _paths(properties, jaas):
        _check_path(name, path)


def _paths(properties: Mapping[str, str], jaas: JaasLogin | None) -> Iterator[tuple[str, str]]:
    yield from ((key, value) for key, value in properties.items() if key.endswith(".location"))
    if jaas is None:
        return
    for option, value in jaas.options.items():
        if option in ("keyTab", "ticketCache") or option.endswith(".location"):
            yield f"{_JAAS}: {option}", value
    if jaas.is_on("useTicketCache") and not jaas.options.get("ticketCache", "").strip():
        raise BadValue(sentence("login.ticket-cache", jaas=_JAAS, paths_variable=PATHS_VARIABLE))


def _check_path(name: str, value: str) -> None:
    text = value.strip()
    for prefix in _CACHES:
        text = text.removeprefix(prefix)
    allowed = [Path(os.path.realpath(one)) for one in os.environ.get(PATHS_VARIABLE, "").split(os.pathsep) if one]
    if text and not any(Path(os.path.realpath(text)).is_relative_to(one) for one in allowed):
        raise BadValue(sentence("login.path", name=name, text=text, paths_variable=PATHS_VARIABLE))
