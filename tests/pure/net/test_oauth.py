"""Tokens from an endpoint and from a file, without a broker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.config.login.security import OAuthLogin
from ferry.kafka.connect.oauth import Tokens
from ferry.kafka.connect.refusal import LoginFailed
from tests.golden import Golden

LOGIN = OAuthLogin(
    endpoint_url="http://nowhere.invalid/token?realm=x",
    client_id="me/you",
    client_secret="geh:eim",
    scope=None,
    url_encode=False,
    tls=None,
    token_file=None,
    token="",
    extensions={},
    connect_timeout_ms=2_000,
    read_timeout_ms=2_000,
    retry_ms=1,
    retry_max_ms=2,
)


def test_a_file_is_read_each_time_and_its_last_content_serves_where_it_is_not(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "token"
    tokens = Tokens(replace(LOGIN, endpoint_url=None, token_file=str(path), token="from-the-plan"), None)
    assert tokens.token() == "from-the-plan"
    path.write_text("fresh\n")
    assert tokens.token() == "fresh"
    path.write_text("two words")
    with pytest.raises(LoginFailed) as caught:
        tokens.token()
    golden(caught.value)
