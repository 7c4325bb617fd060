"""The files of docker/ as the tests read them: Compose's own reading of compose.yaml, and the Dockerfile's lines."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.commands import installed

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
EXAMPLE = DOCKER / ".env.example"
PROPERTY = re.compile(r"^([^#\s=][^\s=]*)\s*=\s*(.*)$")

Service = Mapping[str, Any]


@cache
def compose_command() -> tuple[str, ...]:
    """How Compose is called here: the plugin of `docker`, else Debian's `docker-compose`."""
    if shutil.which("docker"):
        found = subprocess.run(["docker", "compose", "version"], check=False, capture_output=True)
        if not found.returncode:
            return "docker", "compose"
    installed("docker-compose", "docker-compose")
    return ("docker-compose",)


def compose_config(*arguments: str, env: Path = EXAMPLE, project: Path = DOCKER) -> subprocess.CompletedProcess[str]:
    """What `docker compose config` says of the compose file of the folder `project`."""
    command = [*compose_command(), "--file", str(project / "compose.yaml"), "--env-file", str(env), "config"]
    return subprocess.run([*command, *arguments], check=False, capture_output=True, text=True, cwd=project)


@cache
def compose() -> Mapping[str, Any]:
    """The whole of compose.yaml, anchors and variables resolved by Compose."""
    answer = compose_config()
    assert answer.returncode == 0, answer.stderr
    read: Mapping[str, Any] = yaml.safe_load(answer.stdout)
    return read


def services() -> Mapping[str, Service]:
    """The services of compose.yaml by name."""
    found: Mapping[str, Service] = compose()["services"]
    return found


def words(service: Service) -> list[str]:
    """All of a service's command and health check, and the values of its environment."""
    return [
        *(str(word) for word in service.get("command") or ()),
        *(str(word) for word in service.get("healthcheck", {}).get("test") or ()),
        *(str(value) for value in (service.get("environment") or {}).values()),
    ]


def secrets_of(service: Service) -> dict[str, str]:
    """The secrets that a service has: name to the place in the container."""
    granted = {}
    for one in service.get("secrets") or ():
        name = one if isinstance(one, str) else one["source"]
        target = name if isinstance(one, str) else one.get("target") or name
        granted[name] = target if target.startswith("/") else f"/run/secrets/{target}"
    return granted


def mounts_of(service: Service) -> dict[str, str]:
    """A service's volumes: place in the container to a named volume or a path of this machine."""
    found = {}
    for one in service.get("volumes") or ():
        source, target = one.split(":")[:2] if isinstance(one, str) else (one["source"], one["target"])
        found[target] = source
    return found


def stages() -> dict[str, list[str]]:
    """The Dockerfile's instructions, each one line, by the stage that they belong to, before the first by ''."""
    text = (DOCKER / "Dockerfile").read_text()
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found: dict[str, list[str]] = {"": []}
    stage = ""
    for line in text.replace("\\\n", " ").splitlines():
        instruction = " ".join(line.split())
        if begun := re.fullmatch(r"FROM \S+ AS (\S+)", instruction):
            stage = begun[1]
            found[stage] = []
        if instruction:
            found[stage].append(instruction)
    return found


def lineage(stage: str) -> list[str]:
    """The instructions of a stage behind those of the stages that it is made from."""
    own = stages()[stage]
    base = own[0].split()[1]
    return [*(lineage(base) if base in stages() else ()), *own]


def image_environment(stage: str) -> dict[str, str]:
    """What ENV of the image says."""
    pairs = (line.split()[1:] for line in lineage(stage) if line.startswith("ENV "))
    return dict(pair.split("=", 1) for line in pairs for pair in line)


def properties(text: str) -> dict[str, str]:
    """A properties file without escapes: what the files of docker/ are."""
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return {found[1]: found[2].strip() for line in lines if (found := PROPERTY.match(line))}
