"""An OAuth 2.0 token endpoint on this machine, and the keys by which brokers verify its tokens."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from ferry.ports import LOOPBACK

LIFE_SECONDS = 3600


class TokenEndpoint:
    """Gives tokens to clients that know their secret; counts the requests, and fails as often as it is told to."""

    def __init__(self, clients: Mapping[str, str], *, life: int = LIFE_SECONDS) -> None:
        """`life`: for how many seconds the tokens it gives are good."""
        self.clients = dict(clients)
        self.life = life
        self.asked: list[Mapping[str, list[str]]] = []
        self.failures: list[int] = []
        self.url = ""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def token(self, subject: str) -> str:
        """A signed JWT (RS256) for `subject`."""
        now = int(time.time())
        claims = {"sub": subject, "iat": now, "exp": now + self.life, "scope": "kafka"}
        text = f"{_encoded({'alg': 'RS256', 'kid': 'one', 'typ': 'JWT'})}.{_encoded(claims)}"
        return f"{text}.{_base64(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def write_keys(self, path: Path) -> Path:
        """The public key as a JWK set."""
        numbers = self._key.public_key().public_numbers()
        parts = {
            name: _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))
            for name, value in (("n", numbers.n), ("e", numbers.e))
        }
        path.write_text(json.dumps({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", **parts}]}))
        return path

    def answer(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, Mapping[str, Any]]:
        """Status and body for one request."""
        self.asked.append(form)
        if self.failures:
            return self.failures.pop(), {"error": "temporarily_unavailable"}
        client, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if self.clients.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": f"{client} and {secret} do not match"}
        return 200, {"access_token": self.token(client), "expires_in": self.life, "token_type": "Bearer"}

    @contextmanager
    def serving(self, identity: Path) -> Iterator[None]:
        """Serve over TLS with the key and certificate of a PEM file."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, body = endpoint.answer(self.headers["Authorization"], form)
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = f"https://{LOOPBACK}:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _encoded(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
