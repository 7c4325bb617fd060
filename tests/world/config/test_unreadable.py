"""Files that whoever runs `ferry` may not read: each is one sentence with file, line and key, and nothing is started.

The suite may run as root, to whom everything is readable: `setpriv` takes that right away, and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.golden import Golden

BASE = """\
clusters = west, east
west.bootstrap.servers = broker-1.invalid:9092
east.bootstrap.servers = broker-3.invalid:9092
west->east.enabled = true
"""
KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true serviceName=k"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


class Row(NamedTuple):
    """Lines behind BASE (FOLDER: where the files are), and the line and key that are named."""

    lines: str
    line: int
    key: str
    checked: int = 0
    """The exit code of `config check`: what only a client needs may be on another machine, so it warns."""


ROWS = [
    Row("topics = ${file:hidden:a}", 5, "topics", 2),
    Row("topics = ${dir:closed:a}", 5, "topics", 2),
    Row("topics = ${file:closed/a:b}", 5, "topics", 2),
    Row("east.ssl.key.password = ${file:hidden:a}", 5, "east.ssl.key.password"),
    Row(
        "west.security.protocol = SSL\nwest.ssl.keystore.type = PKCS12\nwest.ssl.keystore.location = hidden\n"
        "west.ssl.keystore.password = geheim",
        7,
        "west.ssl.keystore.location",
    ),
    Row(
        "security.protocol = SSL\nssl.truststore.type = PEM\nssl.truststore.location = closed/ca.pem",
        7,
        "ssl.truststore.location",
    ),
    Row(
        f"east.security.protocol = SASL_PLAINTEXT\neast.sasl.jaas.config = {KRB5} keyTab=hidden principal=a;",
        6,
        "east.sasl.jaas.config",
    ),
    Row(
        "east.security.protocol = SASL_SSL\neast.sasl.mechanism = OAUTHBEARER\n"
        f"east.sasl.jaas.config = {BEARER}\neast.sasl.oauthbearer.token.endpoint.url = file://FOLDER/closed/token",
        8,
        "east.sasl.oauthbearer.token.endpoint.url",
    ),
    Row("west.security.protocol = SASL_SSL\nwest.sasl.mechanism = PLAIN", 6, "west.sasl.jaas.config"),
]

RUNNER = """
import contextlib, io, json, sys
from ferry.program import main

said = []
for arguments in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code
    said.append((code, out.getvalue(), err.getvalue()))
json.dump(said, sys.stdout)
"""

Said = tuple[int, str, str]
"""Exit code, standard output, standard error."""


def without_rights(folder: Path, commands: list[list[str]]) -> list[Said]:
    """What these commands say in a process that may read only what the rights of a file permit."""
    ahead = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*ahead, sys.executable, "-c", RUNNER],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "KAFKA_OPTS": "-Djava.security.auth.login.config=hidden"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file and a folder that nobody may read, and the configurations that name them."""
    made = tmp_path_factory.mktemp("unreadable")
    (made / "hidden").write_text("a = geheim\n")
    (made / "hidden").chmod(0)
    (made / "locked.properties").write_text(BASE)
    (made / "locked.properties").chmod(0)
    (made / "closed").mkdir(mode=0)
    for number, row in enumerate(ROWS):
        (made / f"{number}.properties").write_text(f"{BASE}{row.lines}\n".replace("FOLDER", str(made)))
    return made


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[tuple[str, str], Said]:
    """What `plan` and `config check` say of each file: one process for all of them."""
    names = [*(f"{number}.properties" for number in range(len(ROWS))), "locked.properties", "closed/x.properties"]
    commands = {(word, name): [*word.split(), "--config", name] for word in ("plan", "config check") for name in names}
    return dict(zip(commands, without_rights(folder, list(commands.values())), strict=True))


@pytest.mark.parametrize(("number", "row"), list(enumerate(ROWS)), ids=[row.lines.split("\n")[-1] for row in ROWS])
def test_an_unreadable_file_is_named_with_the_line_that_names_it(
    number: int, row: Row, folder: Path, said: dict[tuple[str, str], Said], golden: Golden
) -> None:
    name = f"{number}.properties"
    code, out, err = said["plan", name]
    assert (code, out, err.count("\n")) == (2, "", 1)
    start = f"ferry: {name}:{row.line}: {row.key}: "
    assert err.startswith(start)
    sentence = err.removeprefix(start)
    code, out, err = said["config check", name]
    assert (code, err) == (row.checked, "")
    severity = "error" if row.checked else "warning"
    # What is wrong is said first and, after the tables, again.
    sentences = {line for line in out.splitlines() if line.startswith(("error: ", "warning: "))}
    sentences = {line for line in sentences if "sync.group.offsets.enabled" not in line}  # no row sets that
    assert sentences == {f"{severity}: {name}:{row.line}: {row.key}: {sentence.rstrip()}"}
    golden(sentence.replace(str(folder), "FOLDER"))
    assert "geheim" not in out


@pytest.mark.parametrize("word", ["plan", "config check"])
@pytest.mark.parametrize("name", ["locked.properties", "closed/x.properties"])
def test_an_unreadable_configuration_is_one_sentence(
    word: str, name: str, said: dict[tuple[str, str], Said], golden: Golden
) -> None:
    code, out, err = said[word, name]
    assert (code, out, err.count("\n")) == (2, "", 1)
    start = f"ferry: {name}: "
    assert err.startswith(start)
    golden(err.removeprefix(start))
