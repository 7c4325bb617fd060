"""The clients of every enabled flow tried out as far as that goes without a network: values, stores, logins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferry.config.clients import fetch_options, flow_client_options, produce_options
from ferry.config.connection import unknown_here
from ferry.config.examine import Examined
from ferry.config.flow import FlowConfig
from ferry.config.keys import CONNECTION
from ferry.config.layers import Role, Side
from ferry.config.problem import Problem, Severity
from ferry.config.properties import Property
from ferry.errors import BadInput, Refused

_CLIENTS: tuple[tuple[Side, Role], ...] = (
    ("source", "consumer"),
    ("source", "admin"),
    ("target", "producer"),
    ("target", "consumer"),
    ("target", "admin"),
)


def check_clients(examined: Examined) -> tuple[Problem, ...]:
    """What is wrong with the clients. What is not on this machine is a warning: it may be on another one."""
    problems: dict[Problem, None] = {}
    for config in examined.flows:
        for side, role in _CLIENTS:
            problems |= dict.fromkeys(_tried(examined, config, side, role))
    return tuple(problems)


def _tried(examined: Examined, config: FlowConfig, side: Side, role: Role) -> Iterator[Problem]:
    entries = examined.entries.of_flow_client(config.flow, side, role)
    alias = config.flow.source if side == "source" else config.flow.target
    connection = examined.entries.by_key.get(f"{alias}.{CONNECTION.name}")
    if connection is not None and alias in config.unknown:
        yield Problem(
            file=examined.entries.file,
            line=connection.line,
            key=connection.key,
            severity=Severity.WARNING,
            message=unknown_here(config.connections[alias]),
        )
        return
    try:
        properties = config.client(side, role)
    except BadInput as error:
        yield _problem(examined, entries, str(error), Severity.WARNING)
        return
    try:
        flow_client_options(config, side, role)
        if (side, role) == ("source", "consumer"):
            fetch_options(properties)
        if (side, role) == ("target", "producer"):
            produce_options({name: text for name, text in properties.items() if name != "compression.type"})
    except (BadInput, Refused) as error:
        message = str(error).removeprefix(f"cluster {alias}: ")
        missing = "cannot be read" in message
        yield _problem(examined, entries, message, Severity.WARNING if missing else Severity.ERROR)


def _problem(examined: Examined, entries: Mapping[str, Property], message: str, severity: Severity) -> Problem:
    """The finding, at the line of the longest key that the message begins with."""
    names = [name for name in entries if message.startswith((f"{name}:", f"{name}=", f"{name} "))]
    name = max(names, key=len, default=None)
    if name is None:
        key, _, rest = message.partition(": ")
        return Problem(file=examined.entries.file, line=None, key=key, severity=severity, message=rest or message)
    entry = entries[name]
    said = message.removeprefix(f"{name}: ") if message.startswith(f"{name}: ") else message
    return Problem(file=examined.entries.file, line=entry.line, key=entry.key, severity=severity, message=said)
