"""Run `ferry` as a user does, and check its JSON against the documented schemas."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests import warm
from tests.tiers import PATIENCE

PROGRAM = Path(sys.executable).with_name("ferry")
SCHEMAS = Path(__file__).resolve().parents[1] / "docs" / "schemas"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a finished command said."""

    code: int
    out: str
    err: str

    def json(self, schema: str) -> Any:
        """Standard output as JSON that satisfies `docs/schemas/{schema}.json` and has no key beside it."""
        body = json.loads(self.out)
        document = json.loads((SCHEMAS / f"{schema}.json").read_text())
        Draft202012Validator.check_schema(document)
        Draft202012Validator(closed(document)).validate(body)
        return body


def ferry(*arguments: str | Path, config: Path | None = None, seconds: float = 300) -> Answer:
    """Run the installed program, in a new interpreter."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds * PATIENCE,
        env=environment(config),
        check=False,
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def warm_ferry(
    *arguments: str | Path, config: Path | None = None, seconds: float = 300, program: str = "ferry.program"
) -> Answer:
    """Run a command to its end, in a process of its own that need not import Ferry first (tests/warm.py).

    `program` is the module whose `main` is called.
    """
    requests, began_in = _warm()
    wanted = environment(config)
    if _lasting(wanted) != began_in:  # what is imported may have read another environment
        assert program == "ferry.program", "the environment has changed"
        return ferry(*arguments, config=config, seconds=seconds)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        ours = _asked(requests, arguments, wanted, program, (out.fileno(), err.fileno()))
        ours.settimeout(seconds * PATIENCE)
        with ours, ours.makefile() as answers:
            process = int(answers.readline())
            try:
                code = int(answers.readline())
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise
        for file in (out, err):
            file.seek(0)
        return Answer(code=code, out=out.read(), err=err.read())


class Begun:
    """A command that runs: what is needed of `subprocess.Popen`."""

    def __init__(self, answers: socket.socket) -> None:
        self._answers = answers
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self.returncode is None and select.select([self._answers], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        if self.returncode is None:
            self.returncode = self._number()
            self._answers.close()
        return self.returncode

    def _number(self) -> int:
        line = b""
        while not line.endswith(b"\n"):
            line += self._answers.recv(1)
        return int(line)


def warm_start(
    *arguments: str | Path, out: Path, err: Path, variables: Mapping[str, str], program: str = "ferry.program"
) -> Begun:
    """Begin a command as `warm_ferry` does, in a session of its own, with `main` of another module if one is named."""
    with out.open("wb") as answers, err.open("wb") as complaints:
        files = answers.fileno(), complaints.fileno()
        return Begun(_asked(_warm()[0], arguments, variables, program, files))


def _asked(
    requests: socket.socket,
    arguments: Sequence[str | Path],
    variables: Mapping[str, str],
    program: str,
    files: Sequence[int],
) -> socket.socket:
    """Ask the warm process for a command; the socket gets its number, and then its exit code."""
    request = {
        "arguments": [str(one) for one in arguments],
        "environment": dict(variables),
        "folder": str(Path.cwd()),
        "program": program,
    }
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(requests, [json.dumps(request).encode()], [*files, theirs.fileno()])
    return ours


@functools.cache
def _warm() -> tuple[socket.socket, dict[str, str]]:
    """The socket of a warm process, which ends with this one, and the environment that it began in."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", warm.__file__, str(theirs.fileno())],  # else tests/airflow is found as airflow
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=environment(),
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours, _lasting(environment())


def _lasting(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment without what differs from test to test anyway, and is read when a command begins."""
    return {name: value for name, value in variables.items() if not name.startswith(("AIRFLOW", "FERRY_", "PYTEST_"))}


def start(*arguments: str | Path, config: Path, program: Sequence[str | Path] = (PROGRAM,)) -> subprocess.Popen[str]:
    """Begin a command, in a process group of its own."""
    return subprocess.Popen(
        [*program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(config),
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str], seconds: float = 60) -> Answer:
    """Wait for a begun command."""
    out, err = process.communicate(timeout=seconds * PATIENCE)
    return Answer(code=process.returncode, out=out, err=err)


def environment(config: Path | None = None) -> dict[str, str]:
    """The environment of now, with no setting of Ferry's but the file."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("FERRY_")}
    return others if config is None else {**others, "FERRY_CONFIG": str(config)}


def closed(schema: Any) -> Any:
    """The same schema, but documented keys are all that there may be."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {key: closed(value) for key, value in schema.items()}
    if whole.get("type") == "object" and "properties" in whole:
        whole.setdefault("additionalProperties", False)
    return whole
