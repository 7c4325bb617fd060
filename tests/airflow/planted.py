"""Flows whose clusters ask for a login, with the secrets where users put them, and the places to look for them.

The source of each flow is an Airflow connection. The target's password is a literal in the file, a `${env:}` and a
`${file:}` reference, one behind the other in one `sasl.jaas.config`; an `ssl.key.password` stands beside it.
"""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote, urldefrag, urljoin, urlsplit
from urllib.request import urlopen

import psutil

from ferry.dev import RunningCluster
from ferry.run.spark.parent_watch import SUPERVISOR_VARIABLE
from tests.clusters import PASSWORDS, USER
from tests.tiers import ANSWER_S

ALIASES = ("linked", "planted", "shipped")
CONNECTIONS = {"linked": "kafka_linked", "planted": "kafka_planted", "shipped": "kafka_planted"}
VARIABLE = "FERRY_PLANTED"
LOGGED = "SPARK_SUBMIT_OPTS"
"""The variable by which spark-submit is told to keep an event log."""
LITERAL, BY_VARIABLE, BY_FILE = PASSWORDS["target"]
SECRETS = {
    "literal": LITERAL,
    "variable": BY_VARIABLE,
    "file": BY_FILE,
    "key password": f"planted-key-{secrets.token_hex(8)}",
    "connection": "".join(PASSWORDS["source"]),
}
LOOK_SECONDS = 0.1
MOST_PAGES = 300
_LINK = re.compile(rb"""href=["']([^"']+)["']""")
_IN_LINKS = "%/:?&=#+,;~@()"
_NO_PAGE = re.compile(r"/(static|kill|threadDump|heapHistogram)\b|/kill|(sort|desc|pageSize)=")
"""What ends something, changes no text, or is the same table in another order."""

Secrets = Mapping[str, str | bytes]
"""What must not be seen, by the name that a test shows instead."""


def with_secrets(
    text: str, target: RunningCluster, folder: Path, connections: Mapping[str, str] = MappingProxyType(CONNECTIONS)
) -> str:
    """A configuration file's text, with `connections` for sources, by alias, and logins for the targets of these."""
    vault = folder / "vault.properties"
    vault.write_text(f"password = {BY_FILE}\n")
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    password = f"{LITERAL}${{env:{VARIABLE}}}${{file:{vault}:password}}"
    lines = []
    for line in text.splitlines():
        alias = line.partition(".")[0]
        if not line.startswith(f"{alias}.bootstrap.servers = "):
            lines.append(line)
        elif alias in connections:
            lines.append(f"{alias}.ferry.airflow.conn.id = {connections[alias]}")
        elif alias.removeprefix("t") in connections:
            lines += [
                f"{alias}.bootstrap.servers = {target.bootstrap_of('SASL')}",
                f"{alias}.security.protocol = SASL_PLAINTEXT",
                f"{alias}.sasl.mechanism = PLAIN",
                f'{alias}.sasl.jaas.config = {module} required username="{USER}" password="{password}";',
                f"{alias}.ssl.key.password = {SECRETS['key password']}",
            ]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def environment(folder: Path) -> dict[str, str]:
    """What Airflow is started with: the variable that the file refers to, and Spark's event log in `folder`/events.

    By Java's properties, for with a folder of SPARK_CONF_DIR of their own no JVM of Spark's would use the archive.
    """
    events = folder / "events"
    events.mkdir()
    log = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    return {
        VARIABLE: BY_VARIABLE,
        LOGGED: " ".join(f"-Dspark.eventLog.{name}={value}" for name, value in log.items()),
    }


def connection(conn_id: str, source: RunningCluster, password: str = SECRETS["connection"]) -> dict[str, Any]:
    """A connection to the source's SASL listener, as the form sends it."""
    return {
        "connection_id": conn_id,
        "conn_type": "kafka_cluster",
        "host": source.bootstrap_of("SASL"),
        "login": USER,
        "password": password,
        "extra": json.dumps(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "ssl.key.password": SECRETS["key password"],
                "ssl.truststore.location": None,
            }
        ),
    }


def found(pieces: Iterable[tuple[str, bytes]], hidden: Secrets = SECRETS) -> set[tuple[str, str]]:
    """Which secret is in which of the named pieces, as it is or in Base64."""
    needles = {name: _needles(secret) for name, secret in hidden.items()}
    return {
        (name, where)
        for where, content in pieces
        for name, forms in needles.items()
        if any(form in content for form in forms)
    }


def _needles(secret: str | bytes) -> tuple[bytes, ...]:
    raw = secret.encode() if isinstance(secret, str) else secret
    # In Base64 a text looks different at each of three positions; its first and last characters mix with neighbours.
    return raw, *(base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3))


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every regular file below the folder."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()


def pages(*urls: str) -> Iterator[tuple[str, bytes]]:
    """These pages of 127.0.0.1, and all that they link to at the same ports, but for what ends something."""
    waiting, known = list(urls), set(urls)
    places = {urlsplit(url).netloc for url in urls}
    while waiting:
        url = waiting.pop()
        try:
            with urlopen(url, timeout=ANSWER_S) as answer:
                content, url = answer.read(), answer.geturl()
        except HTTPError as error:
            content = error.read()
        yield url, content
        assert len(known) < MOST_PAGES, f"so many pages cannot be right: {sorted(known)[:20]}"
        for link in _LINK.findall(content):
            to = urldefrag(urljoin(url, quote(html.unescape(link.decode()), safe=_IN_LINKS))).url
            to = to.replace("//localhost:", "//127.0.0.1:")
            if urlsplit(to).netloc in places and to not in known and not _NO_PAGE.search(to):
                known.add(to)
                waiting.append(to)


def shows(url: str, text: bytes) -> bool:
    """Whether the page is there by now, with this text in it."""
    try:
        with urlopen(url, timeout=ANSWER_S) as answer:
            return text in answer.read()
    except OSError:  # nobody listens yet, or the page is not ready
        return False


def tables(database: Path) -> set[str]:
    """The names of its tables, of empty ones as well."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connected:
        found = {name for (name,) in connected.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connected.close()
    return found


def cells(database: Path) -> Iterator[tuple[str, bytes]]:
    """Every row of every table: long values are spread over pages in the file itself."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connected:
        for (table,) in connected.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connected.execute(f'SELECT * FROM "{table}"'):
                yield table, b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for cell in row)
    connected.close()


class Watch:
    """Looks at all processes again and again while its block runs: what they carry and that they were there."""

    def __init__(self, hidden: Secrets = SECRETS, *, only_new: bool = False) -> None:
        """`carried`: secret, place, and whether a process of Spark's or another; `seen`: commands of Spark's.

        `only_new` leaves out what was there before: other tests of this process have sessions with such secrets.
        """
        self._hidden = hidden
        self._only_new = only_new
        self.carried: set[tuple[str, str, str]] = set()
        self.seen: set[str] = set()
        self._known: set[tuple[int, tuple[str, ...]]] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)

    def __enter__(self) -> Self:
        for process in psutil.process_iter() if self._only_new else ():
            with suppress(psutil.Error):
                self._known.add((process.pid, tuple(process.cmdline())))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(ANSWER_S)
        assert not self._thread.is_alive()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for process in psutil.process_iter():
                try:
                    command = tuple(process.cmdline())
                    if (process.pid, command) not in self._known:
                        self._add(command, process.environ())
                        self._known.add((process.pid, command))
                except psutil.Error:
                    continue  # ended, or another user's

    def _add(self, command: tuple[str, ...], environment: dict[str, str]) -> None:
        of_spark = bool(environment.get(SUPERVISOR_VARIABLE))
        if of_spark:
            self.seen.add(" ".join(command))
        owner = "spark" if of_spark else "other"
        pieces = [("argv", "\n".join(command).encode()), ("environ", "\n".join(environment.values()).encode())]
        self.carried |= {(secret, place, owner) for secret, place in found(pieces, self._hidden)}
