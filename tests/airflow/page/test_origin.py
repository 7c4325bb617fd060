"""From where the page takes requests, also behind a proxy, and what it says to who set that up."""

from __future__ import annotations

import pytest

from ferry_airflow.page.origin import is_of
from tests.airflow.page.conftest import Desk

BEHIND = "https://airflow.example.com"


@pytest.mark.parametrize(
    ("origin", "host", "base_url", "ours"),
    [
        ("http://localhost:8080", "localhost:8080", "", True),
        (BEHIND, "airflow.example.com", "", True),
        (BEHIND, "airflow.example.com:443", "", True),
        (BEHIND, "10.0.0.3:8080", "", False),
        (BEHIND, "10.0.0.3:8080", f"{BEHIND}/airflow", True),
        (BEHIND, "10.0.0.3:8080", "https://Airflow.Example.com:443/", True),
        (BEHIND, "airflow.example.com:80", "", False),
        (f"{BEHIND}:8443", "airflow.example.com", BEHIND, False),
        ("https://evil.example", "airflow.example.com", BEHIND, False),
        ("http://rebound.example:8080", "rebound.example:8080", "http://127.0.0.1:8080", False),
        ("http://localhost:8080", "localhost:8080", "http://127.0.0.1:8080", True),
        ("http://[::1]:8080", "[::1]:8080", "http://localhost:8080/airflow", True),
        ("http://localhost:8081", "localhost:8081", "http://127.0.0.1:8080", False),
        ("http://localhost", "localhost:80", "http://127.0.0.1:80", True),
        ("null", "airflow.example.com", "", False),
        ("null", "", "", False),
        ("https://[", "airflow.example.com", "", False),
    ],
)
def test_whose_a_page_is(origin: str, host: str, base_url: str, ours: bool) -> None:
    assert is_of(origin, host, base_url) is ours


def test_behind_a_proxy_that_writes_another_host_it_is_said_what_to_set(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"Origin": BEHIND, "Host": "10.0.0.3:8080", "Sec-Fetch-Site": "same-origin"}
    status, answer = desk.act("run", {}, **sent)
    assert status == 403
    for said in (BEHIND, "sent to 10.0.0.3:8080", "base_url is not set", "set [api] base_url"):
        assert said in str(answer["detail"])
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", BEHIND)
    assert desk.act("run", {}, **sent)[0] == 200


def test_a_page_that_is_nobodys_starts_nothing(desk: Desk) -> None:
    assert desk.act("run", {}, Origin="null")[0] == 403
    assert not desk.triggered
