"""Tokens from an endpoint and from a file, without a broker."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ferry.config.login.security import OAuthLogin
from ferry.kafka.connect.oauth import Tokens
from ferry.kafka.connect.refusal import LoginDelayed, LoginFailed
from tests.golden import Golden
from tests.pure.net.test_oauth import LOGIN

PIECE_SECONDS = 0.1


class Endpoint:
    """Answers what it is given, one answer after the other and then the last one again; keeps the headers it got.

    If `slow`, each byte takes PIECE_SECONDS; `sent` counts them.
    """

    def __init__(self, *answers: tuple[int, str], slow: bool = False) -> None:
        self.answers = list(answers)
        self.slow = slow
        self.sent = 0
        self.headers: list[str] = []
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[OAuthLogin]:
        """Serve; a login at this endpoint."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.headers.append(self.headers["Authorization"])
                answers = endpoint.answers
                status, body = answers.pop(0) if len(answers) > 1 else answers[0]
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", body)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # the caller has hung up
                    for at in range(0, len(body), 1 if endpoint.slow else len(body)):
                        time.sleep(PIECE_SECONDS if endpoint.slow else 0)
                        self.wfile.write(body[at:].encode()[: 1 if endpoint.slow else None])
                        endpoint.sent += 1

            do_GET = do_POST  # noqa: N815 - the server's name for it

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}/token"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield replace(LOGIN, endpoint_url=self.url)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def test_a_token_serves_until_four_fifths_of_its_life(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint((200, '{"access_token": "one", "expires_in": 100}'), (200, '{"access_token": "two"}'))
    now = [1_000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with endpoint.serving() as login:
        tokens = Tokens(login, None)
        assert [tokens.token(), tokens.token()] == ["one", "one"]
        now[0] += 79
        assert tokens.token() == "one"
        now[0] += 2
        assert tokens.token() == "two"
    assert endpoint.headers == ["Basic bWUveW91OmdlaDplaW0="] * 2


def test_id_and_secret_are_encoded_where_the_file_asks_for_it() -> None:
    endpoint = Endpoint((200, '{"access_token": "one"}'))
    with endpoint.serving() as login:
        Tokens(replace(login, url_encode=True), None).token()
    assert endpoint.headers == ["Basic bWUlMkZ5b3U6Z2VoJTNBZWlt"]  # me%2Fyou:geh%3Aeim


def test_a_redirect_does_not_carry_the_secret_away() -> None:
    elsewhere = Endpoint((200, '{"access_token": "one"}'))
    with elsewhere.serving() as other:
        endpoint = Endpoint((302, other.endpoint_url or ""))
        with endpoint.serving() as login, pytest.raises(LoginFailed, match="302"):
            Tokens(login, None).token()
    assert elsewhere.headers == []


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, "invalid_scope"),
        (401, "no geh:eim\nhere"),
        (200, "<html>"),
        (200, "[]"),
        (200, '{"access_token": "two words"}'),
    ],
)
def test_a_refusal_is_final_and_one_sentence(status: int, body: str, golden: Golden) -> None:
    endpoint = Endpoint((status, body))
    with endpoint.serving() as login, pytest.raises(LoginFailed) as caught:
        Tokens(login, None).token()
    golden(str(caught.value).replace(endpoint.url, "URL"))
    assert "geh:eim" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(endpoint.headers) == 1


@pytest.mark.parametrize(("status", "error"), [(200, LoginDelayed), (401, LoginFailed)], ids=["an answer", "a refusal"])
def test_an_answer_may_not_take_longer_in_small_pieces(status: int, error: type[Exception]) -> None:
    body = '{"access_token": "' + "x" * 300 + '"}'
    endpoint = Endpoint((status, body), slow=True)
    with endpoint.serving() as login:
        with pytest.raises(error):
            Tokens(replace(login, connect_timeout_ms=100, read_timeout_ms=300), None).token()
        assert endpoint.sent < len(body) / 2


def test_a_server_in_trouble_is_asked_again_and_then_given_up_for_now(golden: Golden) -> None:
    endpoint = Endpoint((503, ""), (500, ""), (200, '{"access_token": "one"}'))
    with endpoint.serving() as login:
        assert Tokens(login, None).token() == "one"
    with pytest.raises(LoginDelayed) as caught:
        Tokens(replace(LOGIN, endpoint_url=endpoint.url), None).token()  # nothing serves there any more
    assert endpoint.url in str(caught.value)
    golden(str(caught.value).replace(endpoint.url, "URL"))
