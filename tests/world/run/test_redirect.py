"""The hook of a switch: what it is told, what is kept of its answer, and how it fails."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ferry.config.settings import parse_settings
from ferry.errors import BadInput, Refused
from ferry.features.switch.acts.redirect import SAID_BYTES, call_hook, redirect, refuse_unusable, with_given, words_of
from ferry.features.switch.acts.sides import Sides, sides_of
from ferry.features.switch.settings import SwitchHook
from ferry.model.switch import Switch, SwitchState, Verb
from tests.golden import Golden
from tests.tiers import ANSWER_S

FILE = """
clusters = primary, backup
primary.bootstrap.servers = p:9092
backup.bootstrap.servers = b-1:9092,b-2:9092
primary->backup.enabled = true
backup->primary.enabled = true
"""
SLOW_SECONDS = 20
PIECE_SECONDS = 0.3
PIECES = 60
"""So many that the whole answer takes far longer than a hook may, and no piece does."""


def mine() -> None:
    """Nobody has taken the step over."""


def sides(verb: Verb = Verb.FAILOVER) -> Sides:
    """Of the file's flows."""
    settings = parse_settings(FILE, "mm2.properties")
    return sides_of(settings, settings.flow("primary->backup"), verb)


def state(verb: Verb = Verb.FAILOVER) -> SwitchState:
    """A switch that is about to call its hook."""
    made = sides(verb)
    switch = Switch(
        id="s-1",
        verb=verb,
        named=made.named,
        via=made.via.flow,
        who="ann@desk-7",
        approved_by="bob",
        approved_ms=1,
        at_ms=2,
    )
    return SwitchState(switch=switch, offset=0)


@dataclass(kw_only=True)
class Gateway:
    """A server that keeps what it gets, and answers with `status` (0: `said` alone) or points to `location`.

    It sends `said` that often more, as `pieces`, each after PIECE_SECONDS; `sent` counts them.
    """

    port: int
    status: int = 200
    seconds: float = 0.0
    said: bytes = b"moved"
    location: str | None = None
    pieces: int = 0
    sent: int = 0
    told: list[tuple[dict[str, str], str | None]] = field(default_factory=list)
    logins: list[str | None] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/switch"


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    """Until the test ends."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.told.append((body, self.headers["Idempotency-Key"]))
            made.logins.append(self.headers["Authorization"])
            ended.wait(made.seconds)
            if made.status:
                self.send_response(made.status)
                if made.location is not None:
                    self.send_header("Location", made.location)
                self.end_headers()
            self.wfile.write(made.said)
            for _ in range(made.pieces):
                if ended.wait(PIECE_SECONDS):
                    break
                self.wfile.write(made.said)
                made.sent += 1

        def handle(self) -> None:
            with contextlib.suppress(OSError):  # the caller has hung up
                super().handle()

        def do_GET(self) -> None:
            made.followed.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - the server's name for it
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Gateway(port=server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    ended.set()
    server.shutdown()
    thread.join(ANSWER_S)
    server.server_close()


def python(code: str) -> str:
    """A command that runs some Python."""
    return shlex.join([sys.executable, "-c", code])


def test_both_hooks_are_told_which_way_clients_go(gateway: Gateway) -> None:
    code = "import os; print(sorted((k, v) for k, v in os.environ.items() if k.startswith('FERRY_SWITCH')))"
    found = redirect(sides(), state(), SwitchHook(command=python(code), url=gateway.url), mine)
    told = {
        "hook": "redirect",
        "switch": "s-1",
        "verb": "failover",
        "flow": "primary->backup",
        "from": "primary",
        "to": "backup",
        "bootstrap": "b-1:9092,b-2:9092",
    }
    assert gateway.told == [(told, "s-1")]
    command, call = found.facts["hook"]
    assert command["said"] == str(sorted((f"FERRY_SWITCH_{name.upper()}", value) for name, value in told.items()))
    assert (call["status"], call["said"]) == (200, "moved")


def test_a_failback_tells_the_way_back(gateway: Gateway) -> None:
    redirect(sides(Verb.FAILBACK), state(Verb.FAILBACK), SwitchHook(command=None, url=gateway.url), mine)
    ((told, _),) = gateway.told
    assert (told["flow"], told["from"], told["to"], told["bootstrap"]) == (
        "primary->backup",
        "backup",
        "primary",
        "p:9092",
    )


def test_a_hook_has_nothing_of_what_airflow_keeps_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AIRFLOW__CORE__FERNET_KEY", "AIRFLOW_CONN_KAFKA_A", "AIRFLOW_VAR_X"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("AIRFLOW_HOME", "/opt/airflow")
    file = tmp_path / "said"
    script = f"import json, os; json.dump(dict(os.environ), open({str(file)!r}, 'w'))"
    redirect(sides(), state(), SwitchHook(command=python(script), url=None), mine)
    found = json.loads(file.read_text())
    assert "s3cret" not in found.values()
    assert found["AIRFLOW_HOME"] == "/opt/airflow"
    assert found["FERRY_SWITCH_HOOK"] == "redirect"


def test_no_hook_is_said() -> None:
    found = redirect(sides(), state(), SwitchHook(command=None, url=None), mine)
    assert "by hand" in found.sentence


@pytest.mark.parametrize(
    "hook",
    [
        SwitchHook(command=python("print('no route'); exit(3)"), url=None),
        SwitchHook(command="/no/such/program now", url=None),
        SwitchHook(command="echo a\0b", url=None),
        # It waits for a signal that only its end brings.
        SwitchHook(command=python("import signal; signal.pause()"), url=None, timeout_seconds=1),
        SwitchHook(command=None, url="http://127.0.0.1:1/"),
        SwitchHook(command=None, url="127.0.0.1/hook?token=secret"),
        SwitchHook(command=None, url="http://127.0.0.1:1/s\u00ebcret"),
    ],
    ids=["exit code", "no program", "no argument", "too slow", "no answer", "no scheme", "no ASCII"],
)
def test_a_hook_that_fails_stops_the_switch_and_says_how_to_go_on(hook: SwitchHook, golden: Golden) -> None:
    with pytest.raises(Refused) as refused:
        redirect(sides(), state(), hook, mine)
    golden(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "seconds", "most", "why"), [(503, 0, 60, "HTTP 503"), (200, SLOW_SECONDS, 1, "longer than 1 s")]
)
def test_a_gateway_that_fails_or_sleeps_stops_it_too(
    gateway: Gateway, status: int, seconds: float, most: int, why: str
) -> None:
    gateway.status, gateway.seconds = status, seconds
    with pytest.raises(Refused, match=why):
        redirect(sides(), state(), SwitchHook(command=None, url=gateway.url, timeout_seconds=most), mine)


@pytest.mark.parametrize(
    ("status", "said"),
    [(200, b"working...\n"), (0, b"HTTP/1.1 100 Continue\r\n\r\n"), (0, b"H")],
    ids=["body", "headers", "status"],
)
def test_a_gateway_may_not_take_longer_in_small_pieces(
    gateway: Gateway, status: int, said: bytes, golden: Golden
) -> None:
    gateway.status, gateway.said, gateway.pieces = status, said, PIECES
    with pytest.raises(Refused) as refused:
        redirect(sides(), state(), SwitchHook(command=None, url=gateway.url, timeout_seconds=1), mine)
    golden(refused.value)
    assert gateway.sent < PIECES / 2


def test_an_answer_in_pieces_is_kept_that_ends_in_time(gateway: Gateway) -> None:
    gateway.said, gateway.pieces = b"moved ", 2
    (call,) = redirect(sides(), state(), SwitchHook(command=None, url=gateway.url), mine).facts["hook"]
    assert (call["status"], call["said"]) == (200, "moved moved moved")


def test_the_login_of_an_address_is_sent_as_basic_authentication(gateway: Gateway) -> None:
    host = gateway.url.removeprefix("http://")
    for login in ("", "ferry:p%40ss@"):
        redirect(sides(), state(), SwitchHook(command=None, url=f"http://{login}{host}"), mine)
    assert gateway.logins == [None, f"Basic {b64encode(b'ferry:p@ss').decode()}"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/login?token=secret", "http://user:secret@127.0.0.1:{port}/login?token=secret"])
def test_a_redirect_is_no_answer_of_the_hook_and_is_not_followed(gateway: Gateway, status: int, location: str) -> None:
    gateway.status, gateway.location = status, location.format(port=gateway.port)
    with pytest.raises(Refused, match=rf"HTTP {status}, .*/login, ") as refused:
        redirect(sides(), state(), SwitchHook(command=None, url=gateway.url), mine)
    assert "secret" not in str(refused.value)
    assert (len(gateway.told), gateway.followed) == (1, [])


@pytest.mark.parametrize(
    ("location", "why"), [("http://[::1/x", "a redirect to no address"), ("file:///x", "a redirect to file:/+x")]
)
def test_a_redirect_to_nowhere_stops_it_too(gateway: Gateway, location: str, why: str) -> None:
    gateway.status, gateway.location = 302, location
    with pytest.raises(Refused, match=f"302, {why}"):
        redirect(sides(), state(), SwitchHook(command=None, url=gateway.url), mine)


@pytest.mark.parametrize(
    "said", [b"moved\r\n", b"HTTP/1.1 two hundred\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000]
)
def test_an_answer_that_is_no_http_stops_it_in_one_sentence(gateway: Gateway, said: bytes) -> None:
    gateway.status, gateway.said = 0, said
    with pytest.raises(Refused, match="HTTP"):
        redirect(sides(), state(), SwitchHook(command=None, url=gateway.url), mine)


def test_the_end_of_what_a_command_says_is_kept_and_the_beginning_of_an_http_answer(gateway: Gateway) -> None:
    gateway.said = b"moved" + b"." * SAID_BYTES
    code = f"print('begun' + '.' * {SAID_BYTES} + 'done')"
    command, call = redirect(sides(), state(), SwitchHook(command=python(code), url=gateway.url), mine).facts["hook"]
    assert (len(call["said"]), call["said"][:6]) == (SAID_BYTES, "moved.")
    assert (len(command["said"]), command["said"][-5:]) == (SAID_BYTES - 1, ".done"), "its last byte is the line's end"


@pytest.mark.parametrize("command", ["echo 'open", "  ", ""])
def test_a_command_that_cannot_be_read_is_refused_before_anything_is_written(command: str, golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        refuse_unusable(SwitchHook(command=command, url=None), "redirect")
    golden(wrong.value)


@pytest.mark.parametrize(
    "url", ["", " ", "h/hook?token=secret", "ftp://h/secret", "http://[::1/secret", "http:///secret"]
)
def test_an_address_that_cannot_be_called_is_refused_without_it(url: str) -> None:
    with pytest.raises(BadInput, match="--stop-url") as refused:
        refuse_unusable(SwitchHook(command=None, url=url), "stop")
    assert "secret" not in str(refused.value)


def test_a_hook_that_is_given_takes_the_place_of_its_kind_alone() -> None:
    file = SwitchHook(command="file", url="http://file", timeout_seconds=7)
    for given, wanted, words in [
        (None, file, ()),
        (SwitchHook(command=None, url=None), file, ()),
        (
            SwitchHook(command="mine", url=None),
            SwitchHook(command="mine", url="http://file", timeout_seconds=7),
            ("command",),
        ),
        (
            SwitchHook(command=None, url="http://mine"),
            SwitchHook(command="file", url="http://mine", timeout_seconds=7),
            ("url",),
        ),
    ]:
        assert (with_given(file, given), words_of(given)) == (wanted, words)


def test_the_hook_that_stops_clients_is_called_by_its_own_name(gateway: Gateway, golden: Golden) -> None:
    code = "import os, sys; print(os.environ['FERRY_SWITCH_HOOK']); sys.exit(3)"
    switchover = sides(Verb.SWITCHOVER), state(Verb.SWITCHOVER)
    assert call_hook(*switchover, SwitchHook(command=None, url=None), "stop", mine) == []
    (called,) = call_hook(*switchover, SwitchHook(command=None, url=gateway.url), "stop", mine)
    assert called["status"] == 200
    ((told, key),) = gateway.told
    assert (told["hook"], told["from"], key) == ("stop", "primary", "s-1")
    with pytest.raises(Refused) as refused:
        call_hook(*switchover, SwitchHook(command=python(code), url=None), "stop", mine)
    golden(refused.value)
