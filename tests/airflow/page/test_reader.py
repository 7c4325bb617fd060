"""The reader as a process: who starts it, who shares it, when it ends, and what the page shows where there is none."""

from __future__ import annotations

import gc
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn, cast

import psutil
import pytest

import ferry
from ferry.errors import BadInput
from ferry.reader import process as starting
from ferry.reader import service as serving
from ferry.reader import watcher
from ferry.reader.answering import HANDLERS
from ferry.reader.client import BRIEF_SECONDS, WAIT_SECONDS, Reader
from ferry.reader.documents import Answer, Status
from ferry.reader.flows import Flows
from ferry.reader.process import NoReader, ReaderProcess, Slow
from ferry.reader.questions import Begin, OfRefusals, OfTopics
from ferry.reader.service import Service
from ferry.reader.watcher import Watchers
from ferry.reader.wire import MOST_TOLD, Message, Reply, decoded, encoded, receive, send, short_path
from ferry_airflow.page import app as page
from tests.airflow.page.conftest import HERE, Desk
from tests.golden import Golden
from tests.tiers import ANSWER_S, PATIENCE

FLOW = "primary->backup"
TEXT = """clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:1
backup.bootstrap.servers = 127.0.0.1:1
primary->backup.enabled = true
primary->backup.topics = .*
"""
CONNECTED = f"{TEXT.replace('primary.bootstrap.servers = 127.0.0.1:1', 'primary.ferry.airflow.conn.id = kafka_p')}"
PASSWORD = "planted-9f3c1d"
LOGIN = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required username='ada' password='{PASSWORD}';"
    ),
}
LONG_SECONDS = 60.0 * PATIENCE
WORKER = """
import sys, time
from pathlib import Path
from ferry.reader.client import Reader
from ferry.reader.process import ReaderProcess
from ferry.reader.questions import OfTopics
process = ReaderProcess.of(Path(sys.argv[1]) / "ferry", {})
reader = Reader(process.exchange, config=sys.argv[2], lookup=lambda _: {})
while not reader.status("primary->backup").number:
    time.sleep(0.05)
print("seen", flush=True)
for line in sys.stdin:
    while not reader.ask("primary->backup", OfTopics(q=line.strip())).at_ms:
        time.sleep(0.05)
    print("answered", flush=True)
"""
"""A process of the API server: it has asked, asks for topics by each line, and lives until its input ends."""


def unknown(conn_id: str) -> NoReturn:
    raise BadInput(f"Airflow connection {conn_id!r} does not exist")


def reader_of(
    home: Path, config: Path, lookup: Callable[[str], Mapping[str, str]] = unknown
) -> tuple[ReaderProcess, Reader]:
    """What a process of the API server has."""
    process = ReaderProcess.of(home / "ferry", {})
    return process, Reader(process.exchange, config=str(config), lookup=lookup)


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for something that takes as long as the machine needs for it."""
    end = time.monotonic() + LONG_SECONDS
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def readers_at(home: Path) -> list[int]:
    """The processes that are readers of this home."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdecimal():
            with suppress(OSError):
                words = (one / "cmdline").read_bytes().split(b"\0")
                if b"ferry.reader" in words and os.fsencode(home / "ferry" / "reader.sock") in words:
                    found.append(int(one.name))
    return found


def is_gone(number: int) -> bool:
    """Whether a process is no child of this one, not even a zombie: one that has ended and was not waited for."""
    return number not in {one.pid for one in psutil.Process().children()}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the flows."""
    made = tmp_path / "flows.properties"
    made.write_text(TEXT)
    monkeypatch.setenv("FERRY_CONFIG", str(made))
    return made


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home of Airflow; its readers end with the test. Its path is too long for a socket's name."""
    made = tmp_path / ("a" * 60) / ("b" * 40)
    made.mkdir(parents=True)
    yield made
    for number in readers_at(made):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        until(partial(is_gone, number), "its end is not waited for")


def looked(reader: Reader) -> Status:
    """The flow, once it was looked at."""
    until(lambda: reader.status(FLOW).number, "it was never looked at")
    until(lambda: not reader._is_slow, "it stays slow")
    return reader.status(FLOW)


def hindered(reader: Reader) -> Status:
    """The flow, once the page says that it cannot look."""
    found: list[Status] = []

    def is_said() -> bool:
        found.append(reader.status(FLOW))
        return bool(found[-1].hindrances)

    until(is_said, "nothing is said")
    return found[-1]


def never_a_reader(program: Path, runs_until: Path) -> Path:
    """A program that starts and never listens; it ends well once a file is gone."""
    runs_until.touch()
    program.write_text(f"#!/bin/sh\nwhile [ -e '{runs_until}' ]; do sleep 0.05; done\n")
    program.chmod(0o700)
    return program


def test_the_first_question_starts_it_and_a_killed_one_is_started_again_while_the_last_figures_stay(
    home: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, reader = reader_of(home, config)
    assert reader.status(FLOW).number == 0
    assert {one.cluster for one in looked(reader).troubles} >= {"backup"}
    (first,) = readers_at(home)
    socket_file = home / "ferry" / "reader.sock"
    assert socket_file.stat().st_mode & 0o777 == 0o600
    assert (home / "ferry").stat().st_mode & 0o777 == 0o700
    os.kill(first, signal.SIGKILL)
    assert process._process is not None
    process._process.wait(LONG_SECONDS)
    starting_up = tmp_path / "starting"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(never_a_reader(tmp_path / "never", starting_up)))
        seen = reader.status(FLOW)
        assert seen.number, "what was known stays"
        assert not seen.hindrances
        until(lambda: reader.status(FLOW) == seen and process._process is not None, "none is started")
        assert reader.status(FLOW) == seen  # returns: a request waits for no start
        assert process._process.poll() is None
        starting_up.unlink()
    until(lambda: reader.ask(FLOW, OfTopics()).at_ms, "no other answers")
    assert readers_at(home) not in ([], [first])


def test_a_reader_that_has_ended_is_no_zombie_though_no_page_asks_again(home: Path, config: Path) -> None:
    _, reader = reader_of(home, config)
    looked(reader)
    (number,) = readers_at(home)
    assert not is_gone(number)
    os.kill(number, signal.SIGKILL)
    until(lambda: is_gone(number), "its end is not waited for")


def test_processes_of_the_api_server_share_one_which_ends_when_they_are_gone(home: Path, config: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(home), str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        assert [one.stdout and one.stdout.readline() for one in workers] == ["seen\n"] * 2
        until(lambda: len(readers_at(home)) == 1, "there is more than one")
        (only,) = readers_at(home)
        workers[0].kill()
        workers[0].wait(LONG_SECONDS)
        stdin, stdout = workers[1].stdin, workers[1].stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("new\n")
        stdin.flush()
        assert stdout.readline() == "answered\n"
        assert readers_at(home) == [only], "the one that is left is answered by it"
    finally:
        for one in workers:
            one.kill()
            one.communicate()
    until(lambda: not readers_at(home), "it does not end")
    assert not (home / "ferry" / "reader.sock").exists()


def test_a_file_that_an_ended_reader_has_left_is_in_nobodys_way(home: Path, config: Path) -> None:
    folder = home / "ferry"
    folder.mkdir(mode=0o700)
    with short_path(folder / "reader.sock") as name:
        left = socket.socket(socket.AF_UNIX)
        left.bind(name)
        left.close()
    looked(reader_of(home, config)[1])


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda folder: folder.mkdir() or folder.chmod(0o777),
        lambda folder: folder.symlink_to("/tmp"),
        lambda folder: folder.write_text(""),
    ],
    ids=["others may write", "a link", "a file"],
)
def test_a_folder_that_others_may_write_to_is_not_used(
    home: Path, config: Path, spoilt: Callable[[Path], object], golden: Golden
) -> None:
    spoilt(home / "ferry")
    _, reader = reader_of(home, config)
    seen = reader.status(FLOW)
    (hindrance,) = seen.hindrances
    golden(hindrance.why)
    assert (seen.number, seen.total, seen.runs) == (0, None, ())
    assert reader.ask(FLOW, OfTopics()).got is None
    assert not readers_at(home)


def test_a_folder_of_another_user_is_not_used(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    (home / "ferry").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    (hindrance,) = reader_of(home, config)[1].status(FLOW).hindrances
    golden(hindrance.why.replace(f"(id {os.getuid()})", "(id UID)"))
    assert not readers_at(home)


def test_logins_are_handed_over_and_are_in_no_file_argument_or_environment(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(CONNECTED)
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", PASSWORD)
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_P", PASSWORD)
    asked: list[str] = []

    def lookup(conn_id: str) -> Mapping[str, str]:
        asked.append(conn_id)
        return LOGIN

    _, reader = reader_of(home, config, lookup)
    seen = looked(reader)
    assert asked == ["kafka_p"], "once, as long as it is looked at"
    assert {one.cluster for one in seen.troubles} == {"primary", "backup"} or seen.troubles
    assert not seen.hindrances
    (number,) = readers_at(home)
    for name in ("cmdline", "environ"):
        assert os.fsencode(PASSWORD) not in Path(f"/proc/{number}/{name}").read_bytes()
    files = [one for one in home.rglob("*") if one.is_file()]
    assert all(os.fsencode(PASSWORD) not in one.read_bytes() for one in files)
    assert b"FERRY_CONFIG" in Path(f"/proc/{number}/environ").read_bytes()


def test_a_connection_that_is_missing_is_said(home: Path, config: Path) -> None:
    config.write_text(CONNECTED)
    _, reader = reader_of(home, config)
    (hindrance,) = looked(reader).hindrances
    assert (hindrance.cluster, "'kafka_p'" in hindrance.why) == ("", True)


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/python"])
def test_one_that_cannot_be_started_is_said_and_nothing_is_shown_as_known(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch, program: str, golden: Golden
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    monkeypatch.setattr(starting, "BETWEEN_SECONDS", 0.05)
    process, reader = reader_of(home, config)
    began = time.monotonic()
    seen = hindered(reader)
    (hindrance,) = seen.hindrances
    golden(hindrance.why)
    assert seen.number == 0
    assert process._not_before > began
    failed = process._failed
    for _ in range(20):
        reader.status(FLOW)
    assert process._failed <= failed + 2, "it is not tried again and again"


@contextmanager
def pretender(path: Path, reply: Callable[[socket.socket], None]) -> Iterator[None]:
    """A listener that answers in place of a reader."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    with short_path(path) as name:
        listener.bind(name)
    listener.listen(16)

    def answered(line: socket.socket) -> None:
        with suppress(OSError):
            reply(line)

    def work() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answered, args=listener.accept()[:1], daemon=True).start()

    threading.Thread(target=work, daemon=True).start()
    try:
        yield
    finally:
        listener.close()


def test_a_slow_one_has_the_last_answer_shown_with_its_age(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "PATIENCE_SECONDS", 0.2)
    service = Service(Flows(), Watchers(), stays=True)
    lines: list[socket.socket] = []
    is_slow = threading.Event()

    def reply(line: socket.socket) -> None:
        lines.append(line)
        while (content := receive(line, MOST_TOLD)) is not None and not is_slow.is_set():
            send(line, service.reply(content))

    socket_file = home / "ferry" / "reader.sock"
    with pretender(socket_file, reply):
        process, reader = reader_of(home, config)
        seen = looked(reader)
        answers: list[Answer] = []

        def is_answered() -> bool:
            answers.append(reader.ask(FLOW, OfTopics()))
            return bool(answers[-1].at_ms)

        until(is_answered, "no answer")
        before = answers[-1]
        is_slow.set()
        waits: list[float] = []

        def exchange(content: bytes, seconds: float) -> bytes:
            waits.append(seconds)
            return process.exchange(content, seconds)  # of itself the pretender never ends the wait

        monkeypatch.setattr(reader, "_exchange", exchange)
        assert reader.status(FLOW) == seen
        again = reader.ask(FLOW, OfTopics())
        assert (again.got, again.at_ms, again.is_asked) == (before.got, before.at_ms, True)
        assert reader.ask(FLOW, OfTopics(q="other")).waiting
        assert waits == [WAIT_SECONDS, BRIEF_SECONDS, WAIT_SECONDS], "of the other there is nothing to show yet"
        with pytest.raises(Slow):
            process.exchange(b"{}", 0.05)


def test_one_that_takes_no_connection_holds_no_request(home: Path, config: Path) -> None:
    (home / "ferry").mkdir(mode=0o700)
    with (
        socket.socket(socket.AF_UNIX) as listener,
        short_path(home / "ferry" / "reader.sock") as name,
        ExitStack() as open_,
    ):
        listener.bind(name)
        listener.listen(0)
        waiting = [open_.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(name)  # the last ones find no room
        process, reader = reader_of(home, config)
        with pytest.raises(Slow):  # returns, although the connection is never accepted
            process.exchange(b"{}", 0.2)
        assert reader.status(FLOW) == Status()


@pytest.mark.parametrize(
    "content",
    [b"\xff\xff\xff\xff", b"\0\0\0\3abc", b"\0\0\0\2{}"],
    ids=["too long", "no JSON", "another form"],
)
def test_an_answer_that_is_too_long_or_none_is_refused(
    home: Path, config: Path, content: bytes, golden: Golden
) -> None:
    def reply(line: socket.socket) -> None:
        receive(line, MOST_TOLD, until=time.monotonic() + ANSWER_S)
        line.sendall(content)

    with pretender(home / "ferry" / "reader.sock", reply):
        _, reader = reader_of(home, config)
        (hindrance,) = hindered(reader).hindrances
        golden(hindrance.why)


def test_a_message_that_is_too_long_is_refused_and_the_connection_answers_the_next_one(
    home: Path, config: Path, golden: Golden
) -> None:
    _, reader = reader_of(home, config)
    looked(reader)
    begin = Begin(who="ada", what="plan", event="ferry_dry_run", topics=tuple("x" * 249 for _ in range(5_000)))
    with pytest.raises(NoReader) as refused:
        reader.act(FLOW, begin)
    golden(re.sub(r"message of \d+", "message of SIZE", str(refused.value)))
    assert reader.status(FLOW).number


def test_a_reply_has_a_bound_and_what_goes_beyond_is_said(
    config: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(serving, "MOST_TOLD", 3_000)
    monkeypatch.setitem(
        cast("dict[type[object], object]", HANDLERS),
        OfRefusals,
        lambda *_: Answer(error="x" * 5_000, failed_ms=1),
    )
    service = Service(Flows(), Watchers(), stays=True)
    reader = Reader(lambda message, _: service.reply(message), config=str(config), lookup=unknown)
    size, most = re.findall(r"\d+", said := reader.ask(FLOW, OfRefusals()).error)
    assert (int(size) > 5_000, int(most)) == (True, 3_000)
    golden(said.replace(size, "SIZE"))
    assert not reader.ask(FLOW, OfTopics()).error


def test_one_of_another_version_or_for_another_file_says_so_and_ends(config: Path) -> None:
    service = Service(Flows(), Watchers())
    for version, path in (("0", str(config)), (ferry.__version__, "/elsewhere")):
        message = Message(version=version, config=path, deployment="", asks=())
        reply: Reply = decoded(Reply, service.reply(encoded(Message, message)))
        assert reply.other
        assert service.is_outdated
    assert decoded(Reply, service.reply(b"[]")).other
    assert decoded(Reply, service.reply(b"\xff")).other


def test_what_is_no_longer_used_leaves_no_connection_open(
    home: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "PATIENCE_SECONDS", 0.2)
    service = Service(Flows(), Watchers(), stays=True)

    def reply(line: socket.socket) -> None:
        with line:
            while (content := receive(line, MOST_TOLD)) is not None:
                send(line, service.reply(content))

    with pretender(home / "ferry" / "reader.sock", reply):
        process, reader = reader_of(home, config)
        looked(reader)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            del process, reader
            gc.collect()
    assert [str(one.message) for one in found if one.category is ResourceWarning and "reader.sock" in str(one)] == []


def test_a_named_one_is_not_started_and_one_that_stays_is_shared(home: Path, config: Path, golden: Golden) -> None:
    path = home / "side.sock"
    named = {"FERRY_READER": f"unix:{path}"}
    process = ReaderProcess.of(home / "ferry", named)
    with pytest.raises(NoReader) as refused:
        process.exchange(b"{}", 1)
    golden(refused.value)
    side = subprocess.Popen([sys.executable, "-m", "ferry.reader", str(path), "--stay"])
    try:
        reader = Reader(process.exchange, config="/another/file", lookup=unknown)
        until(path.exists, "it does not listen")
        looked(reader)
        assert side.poll() is None
    finally:
        side.kill()
        side.wait()


def test_the_application_asks_a_reader_of_its_home_and_has_no_thread_and_no_client_of_its_own(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "AIRFLOW_HOME", str(home))
    monkeypatch.delenv("FERRY_READER", raising=False)
    desk.app.state.office = replace(desk.app.state.office, reader=page._reader())
    before = set(threading.enumerate())
    until(lambda: 'id="trouble:' in desk.page(f"{HERE}/"), "no cluster is said to be down")
    assert len(readers_at(home)) == 1
    here = desk.page(f"{HERE}/run/nosuch")
    assert 'id="unread"' in here or "data-waiting" in here
    own = [one.name for one in set(threading.enumerate()) - before if "ferry" in one.name]
    assert own == []


def test_importing_the_page_imports_nothing_that_connects() -> None:
    program = "import ferry_airflow.page.app, sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    found = done.stdout.split()
    assert "ferry.reader.client" in found
    assert not [name for name in found if name.split(".")[0] in ("kafka", "confluent_kafka")]
    connects = tuple(f"ferry.{folder}" for folder in ("kafka", "run", "lane", "copy"))
    assert not [name for name in found if name.startswith(connects)]


def test_a_variable_that_names_no_socket_is_said(home: Path, config: Path, golden: Golden) -> None:
    process = ReaderProcess.of(home / "ferry", {"FERRY_READER": "off"})
    reader = Reader(process.exchange, config=str(config), lookup=unknown)
    (hindrance,) = reader.status(FLOW).hindrances
    golden(hindrance.why)
