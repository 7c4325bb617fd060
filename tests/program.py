"""Run `ferry` as a user does, and check its JSON against the documented schemas."""

from __future__ import annotations

import atexit
import functools
import json
import os
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


def warm_ferry(*arguments: str | Path, config: Path | None = None, seconds: float = 300) -> Answer:
    """Run a command to its end, in a process of its own that need not import Ferry first (tests/warm.py)."""
    requests, began_in = _warm()
    wanted = environment(config)
    if _lasting(wanted) != began_in:  # what is imported may have read another environment
        return ferry(*arguments, config=config, seconds=seconds)
    request = {"arguments": [str(one) for one in arguments], "environment": wanted, "folder": str(Path.cwd())}
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with theirs:
            files = [out.fileno(), err.fileno(), theirs.fileno()]
            socket.send_fds(requests, [json.dumps(request).encode()], files)
        ours.settimeout(seconds * PATIENCE)
        with ours.makefile() as answers:
            process = int(answers.readline())
            try:
                code = int(answers.readline())
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise
        for file in (out, err):
            file.seek(0)
        return Answer(code=code, out=out.read(), err=err.read())


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
