"""Run the installed `ferry` as a user does, and check its JSON against the documented schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

PROGRAM = Path(sys.executable).with_name("ferry")
SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"


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


def ferry(*arguments: str | Path, config: Path | None = None, seconds: float = 120) -> Answer:
    """Run a command to its end."""
    done = subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=seconds, env=environment(config), check=False
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def start(*arguments: str | Path, config: Path) -> subprocess.Popen[str]:
    """Begin a command, in a process group of its own."""
    return subprocess.Popen(
        [PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(config),
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str], seconds: float = 60) -> Answer:
    """Wait for a begun command."""
    out, err = process.communicate(timeout=seconds)
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
