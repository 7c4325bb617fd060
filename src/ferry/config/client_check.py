"""Check the clients of every enabled flow without a network: values, stores, logins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ferry.config.flow.clients import fetch_options, kafka_python_options, produce_options
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.origins import named_in, origin_of, said_of
from ferry.config.keys.key import CONNECTION
from ferry.config.keys.layers import CLIENTS, Role, Side
from ferry.config.login.unknown import unknown_here
from ferry.config.login.weak import weaknesses
from ferry.config.reading.examine import Examined
from ferry.config.reading.typos import without_comment
from ferry.config.text.problem import Problem, Severity, in_file_order
from ferry.errors import BadInput, Refused
from ferry.model import code_of, sentence_of

_SERVERS = "bootstrap.servers"
_PARTS = ("ssl.truststore.", "ssl.key", "sasl.")
"""Properties that are read together, by the beginning of their names."""


_NOT_HERE = ("login.file.unreadable", "login.jaas.unreadable")
"""Codes of errors that do not occur on a machine that has the file."""


def check_clients(examined: Examined) -> tuple[Problem, ...]:
    """Return what is wrong with the clients. What is missing on this machine is a warning: another machine may have it.

    A line that has an error already is not reported again.
    """
    with_error = {problem.line for problem in examined.problems if problem.severity is Severity.ERROR and problem.line}
    problems: dict[Problem, None] = {}
    for config in examined.flows:
        for side, role in CLIENTS:
            found = _tried(examined, config, side, role)
            problems |= dict.fromkeys(problem for problem in found if problem.line not in with_error)
    return tuple(problems)


def all_problems(examined: Examined) -> tuple[Problem, ...]:
    """Return what is wrong with the text and with its clients, in file order."""
    of_clients = check_clients(examined)
    # A client's error holds more than the warning about the same mistake.
    same = {(problem.line, problem.correction) for problem in of_clients if problem.correction}
    of_text = (problem for problem in examined.problems if (problem.line, problem.correction) not in same)
    return in_file_order((*of_text, *of_clients))


def _tried(examined: Examined, config: FlowConfig, side: Side, role: Role) -> Iterator[Problem]:
    alias = config.flow.source if side == "source" else config.flow.target
    connection = examined.entries.by_key.get(f"{alias}.{CONNECTION.name}")
    if connection is not None and alias in config.clients.unknown:
        yield Problem(
            file=examined.entries.file,
            line=connection.line,
            key=connection.key,
            severity=Severity.WARNING,
            message=unknown_here(config.clients.connections[alias]),
        )
        return
    left: Mapping[str, str] = dict(config.clients.properties[side, role])
    if _SERVERS not in left:
        return  # reported where the cluster is checked
    for weakness in weaknesses(left):
        yield _problem(examined, config, side, role, weakness, Severity.WARNING)
    while True:
        message, severity = _first_error(config, side, role, left)
        if message is None:
            return
        name = named_in(message)
        yield _problem(examined, config, side, role, message, severity)
        rest = left if name is None else _without(left, name)
        if rest == left:
            return
        left = rest


def _first_error(
    config: FlowConfig, side: Side, role: Role, properties: Mapping[str, str]
) -> tuple[str | None, Severity]:
    try:
        resolved = config.clients.providers.resolve_all(properties)
    except BadInput as error:
        return sentence_of(error), Severity.WARNING
    readers: list[Callable[[Mapping[str, str]], object]] = [kafka_python_options]
    if (side, role) == ("source", "consumer"):
        readers.append(fetch_options)
    if (side, role) == ("target", "producer"):
        readers.append(produce_options)
    for read in readers:
        try:
            read(resolved)
        except (BadInput, Refused) as error:
            said = sentence_of(error)
            return resolved.redacted(said), Severity.WARNING if code_of(said) in _NOT_HERE else Severity.ERROR
    return None, Severity.ERROR


def _without(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the properties without those that an error about `name` affects, so that the rest can be checked."""
    if name == _SERVERS:
        # A client without brokers could not be checked at all.
        return {**properties, _SERVERS: "broker:9092"}
    part = next((part for part in _PARTS if name.startswith(part)), None)
    if part is None:
        return {key: value for key, value in properties.items() if key != name}
    rest = {key: value for key, value in properties.items() if not key.startswith(part)}
    if part == "sasl.":
        rest["security.protocol"] = "SSL" if rest.get("security.protocol", "").upper() == "SASL_SSL" else "PLAINTEXT"
    return rest


def _problem(
    examined: Examined, config: FlowConfig, side: Side, role: Role, message: str, severity: Severity
) -> Problem:
    """Return the finding at the line of the property that the message begins with."""
    alias = config.flow.source if side == "source" else config.flow.target
    name = named_in(message)
    origin = None if name is None else origin_of(name, config.clients.origins[side, role], alias)
    if name is None or origin is None:
        return Problem(
            file=examined.entries.file,
            line=None,
            key=alias if name is None else f"{alias}.{name}",
            severity=severity,
            message=message if name is None else said_of(name, message),
        )
    entry = examined.entries.by_key.get(origin.key)
    correction = None if entry is None or severity is Severity.WARNING else without_comment(entry)
    return Problem(
        file=origin.file,
        line=origin.line,
        key=origin.key,
        severity=severity,
        message=said_of(name, message),
        correction=correction,
    )
