"""Tokens for SASL OAUTHBEARER: from OAuth 2.0 client credentials (RFC 6749, section 4.4), or from a file.

Kafka's `ClientCredentialsJwtRetriever` and `FileJwtRetriever` do the same (KIP-768, KIP-1139).
"""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from urllib.parse import quote_plus, urlencode

from kafka.net.sasl.oauth import AbstractTokenProvider

from ferry.config.login.security import OAuthLogin
from ferry.errors import MALFORMED
from ferry.files import read_bounded
from ferry.http_calls import answer_of
from ferry.kafka.connect.refusal import LoginDelayed, LoginFailed

_USED_SHARE = 0.8
"""The share of a token's life after which it is renewed, as with Java's `sasl.login.refresh.window.factor`."""

_DEFAULT_LIFE_SECONDS = 60.0
_MAX_ANSWER_BYTES = 1 << 20
_TRIES = 4
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHOWN_CHARACTERS = 200


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """Provides a valid token, and asks for a new one when it must. One provider serves all connections of a cluster."""

    def __init__(self, login: OAuthLogin, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._login = login
        self._context = context
        self._token = ""
        self._good_until = 0.0

    def token(self) -> str:
        """Return a token. Raises LoginFailed when there is none, LoginDelayed when the endpoint does not answer."""
        if self._login.token_file is not None:
            return _checked(self._from_file(self._login.token_file), f"file {self._login.token_file}")
        if time.monotonic() > self._good_until:
            asked = time.monotonic()
            self._token, life = self._from_endpoint()
            self._good_until = asked + life * _USED_SHARE
        return self._token

    def extensions(self) -> Mapping[str, str]:
        """Return the SASL extensions (KIP-342)."""
        return self._login.extensions

    def _from_file(self, path: str) -> str:
        """Read the file each time, because its owner replaces it. A machine without the file uses the plan's token."""
        try:
            return read_bounded(Path(path)).decode("ascii").strip()
        except FileNotFoundError:
            return self._login.token
        except (OSError, UnicodeDecodeError) as error:
            raise LoginFailed(f"the token file {path} cannot be read ({error}): correct its rights") from None

    def _from_endpoint(self) -> tuple[str, float]:
        """Request a new token; return it and its life in seconds."""
        login = self._login
        url = login.endpoint_url or ""
        delay = login.retry_ms / 1000
        why: object = None
        for tried in range(1, _TRIES + 1):
            try:
                return _parsed(self._ask(url), url)
            except urllib.error.HTTPError as error:
                said = _begin_of(error)
                if error.code not in _TRY_AGAIN:
                    raise LoginFailed(
                        f"the token endpoint {_address(url)} answers {error.code} {error.reason} "
                        f"({_without(said, login.client_secret)}): correct clientId, clientSecret and scope"
                    ) from None
                why = f"{error.code} {error.reason}"
            except urllib.error.URLError as error:
                if isinstance(error.reason, ssl.SSLCertVerificationError):
                    raise LoginFailed(
                        f"the token endpoint {_address(url)} shows a certificate that is not trusted "
                        f"({error.reason.verify_message}): add ssl.truststore.location to sasl.jaas.config"
                    ) from None
                why = error.reason
            except (OSError, HTTPException) as error:
                why = error
            if tried < _TRIES:
                time.sleep(delay)
                delay = min(delay * 2, login.retry_max_ms / 1000)
        raise LoginDelayed(f"the token endpoint {_address(url)} does not answer ({why})")

    def _ask(self, url: str) -> bytes:
        login = self._login
        who, secret = login.client_id, login.client_secret
        if login.url_encode:
            who, secret = quote_plus(who), quote_plus(secret)
        form = {"grant_type": "client_credentials"} | ({"scope": login.scope} if login.scope else {})
        request = urllib.request.Request(
            url,
            data=urlencode(form).encode(),
            headers={
                "Authorization": "Basic " + base64.b64encode(f"{who}:{secret}".encode()).decode(),
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
        )
        seconds = (login.connect_timeout_ms + login.read_timeout_ms) / 1000
        _, content = answer_of(request, seconds=seconds, most=_MAX_ANSWER_BYTES, context=self._context)
        return content


def _begin_of(error: urllib.error.HTTPError) -> str:
    """Return how an answer with an error begins; empty if that does not come in time."""
    try:
        with error:
            return error.read(_SHOWN_CHARACTERS).decode("utf-8", "replace")
    except (OSError, HTTPException):
        return ""


def _parsed(content: bytes, url: str) -> tuple[str, float]:
    try:
        body = json.loads(content)
        token = str(body["access_token"])
        life = body.get("expires_in")
        seconds = float(life) if isinstance(life, int | float) else _life_of(token)
    except MALFORMED:
        raise LoginFailed(
            f"the token endpoint {_address(url)} answers without an access_token: correct its address"
        ) from None
    return _checked(token, f"endpoint {_address(url)}"), max(0.0, seconds)


def _life_of(token: str) -> float:
    """Return the seconds until the `exp` claim of a JWT."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"]) - time.time()
    except MALFORMED:
        return _DEFAULT_LIFE_SECONDS


def _checked(token: str, origin: str) -> str:
    """Return the token, if a SASL message can hold it (RFC 6750, b64token). Raises LoginFailed otherwise."""
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise LoginFailed(f"what the token {origin} gave is not a token: correct sasl.oauthbearer.token.endpoint.url")
    return token


def _address(url: str) -> str:
    return url.partition("?")[0].rpartition("@")[2]


def _without(text: str, secret: str) -> str:
    shown = " ".join(text.split())
    return shown.replace(secret, "[hidden]") if secret else shown
