"""Settings of a client that leave something open to others on the network: allowed, and worth a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferry.config.login.allowed import ALLOWED_URLS, ENDPOINT, allowed_urls
from ferry.config.login.jaas import KAFKA_OPTS
from ferry.config.text.secrets import shown_address

_HOST_NAMES = "ssl.endpoint.identification.algorithm"
_IN_CLEAR = {"PLAIN": "the password", "OAUTHBEARER": "the token"}


def weaknesses(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences that begin with the key; `properties` are effective, and may hold references."""
    protocol = properties.get("security.protocol", "").strip().upper()
    mechanism = properties.get("sasl.mechanism", "GSSAPI").strip() if protocol.startswith("SASL") else ""
    if protocol == "SASL_PLAINTEXT" and mechanism in _IN_CLEAR:
        yield (
            f"security.protocol: SASL_PLAINTEXT with {mechanism} sends {_IN_CLEAR[mechanism]} in clear, to be read on"
            " the way; write SASL_SSL"
        )
    if protocol.endswith("SSL") and properties.get(_HOST_NAMES, "https").strip() == "":
        yield (
            f"{_HOST_NAMES}: is empty, so the names of brokers are not verified, and each certificate of a trusted"
            " authority passes for a broker's; write https"
        )
    url = properties.get(ENDPOINT, "").strip() if mechanism == "OAUTHBEARER" else ""
    if url.lower().startswith("http:"):
        yield f"{ENDPOINT}: {shown_address(url)} is asked in clear, with the client's secret; write https://"
    if url.lower().startswith("http") and allowed_urls() is None:
        yield (
            f"{ENDPOINT}: there is no list of allowed token endpoints, so any address in the file is asked; name them"
            f" in {KAFKA_OPTS}, as Java's clients of Kafka 4 need it: -D{ALLOWED_URLS}={shown_address(url)}"
        )
