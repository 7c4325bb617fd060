"""What to read of a cluster, record by record, in the options of a Spark reader.

`config` and `cluster` name a cluster of a configuration file; `kafka.*` are a client's own properties, by Java's names.
Spark shows options in plans and logs, so an option may hold a secret only as a reference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from ferry.config.client_options import ConnectionOptions, FetchOptions
from ferry.config.flow.clients import fetch_options, kafka_python_options
from ferry.config.flow.start import Start, StartTime, parse_start
from ferry.config.keys import values
from ferry.config.keys.catalogue import find
from ferry.config.keys.key_support import Fate
from ferry.config.keys.layers import Role
from ferry.config.login.connection import JAAS, SERVERS
from ferry.config.login.environment import from_environment
from ferry.config.login.jaas import parse_jaas
from ferry.config.settings import load
from ferry.config.text.filters import PatternList
from ferry.config.text.lookups import look_up
from ferry.config.text.problem import BadValue
from ferry.config.text.secrets import ClientProperties, Providers, has_reference, is_secret
from ferry.errors import BadInput, Refused
from ferry.model import located

T = TypeVar("T")

CONFIG_VARIABLE = "FERRY_CONFIG"
TASK_RECORDS = 500_000
"""Offsets of one task by default."""

_KAFKA = "kafka."
_OPTIONS = ("config", "cluster", "topics", "path", "from", "to", "task.records")
_ISOLATION = "isolation.level"
_NO_FILE_ALIAS = "kafka"
"""The name in messages of a cluster that no file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSource:
    """A cluster, topics of it, and where to begin and to end."""

    alias: str
    connection: ConnectionOptions = field(repr=False)
    fetch: FetchOptions
    topics: PatternList
    begin: Start
    end: Start
    task_records: int


def record_source(options: Mapping[str, str]) -> RecordSource:
    """Read the options; their names are in lower case. Raises BadInput, or Refused for what is not supported."""
    check_names(options, _OPTIONS, "consumer")
    if "topics" in options and "path" in options:
        raise BadInput("topics are named by option topics and in load(...); omit one of the two")
    level = options.get(_KAFKA + _ISOLATION, "read_committed")
    if level != "read_committed":
        raise Refused(f"option {_KAFKA}{_ISOLATION}={level}: records are read as read_committed only; remove it")
    topics = read_option(options, "topics", options.get("path", ""), values.pattern_list)
    if not topics.items:
        raise BadInput("no topics are named: write option topics, or load('orders,payments.*')")
    alias, properties = cluster_of(options, "consumer")
    try:
        connection = kafka_python_options({"client.id": "ferry-records", **properties})
        fetch = fetch_options(properties)
    except (BadInput, Refused) as error:
        raise type(error)(located(f"cluster {alias}", properties.redacted(error))) from None
    return RecordSource(
        alias=alias,
        connection=connection,
        fetch=fetch,
        topics=topics,
        begin=_bound(options, "from", "earliest"),
        end=_bound(options, "to", "latest"),
        task_records=read_option(options, "task.records", str(TASK_RECORDS), values.integer(1, 2**31 - 1)),
    )


def read_option(options: Mapping[str, str], name: str, default: str, read: Callable[[str], T]) -> T:
    """Return the value of an option. Raises BadInput with its name ahead."""
    try:
        return read(options.get(name, default))
    except BadValue as error:
        raise BadInput(located(f"option {name}", error.message)) from None


def _bound(options: Mapping[str, str], name: str, default: str) -> Start:
    found = read_option(options, name, default, parse_start)
    if isinstance(found, StartTime) and found.timestamp_ms < 0:
        raise BadInput(f"option {name}: {options[name]!r} is before 1970, where brokers find no records by their time")
    return found


def check_names(options: Mapping[str, str], known_names: Sequence[str], role: Role) -> None:
    """Check the names of options, which are `known_names` or properties of such a client.

    Raises BadInput for a name that is neither, and Refused for one that is not supported.
    """
    for name in options:
        if name in known_names:
            continue
        key = name.removeprefix(_KAFKA)
        if key == name:
            close = get_close_matches(name, known_names, n=1)
            remedy = f"is {close[0]} meant?" if close else f"there are {', '.join(known_names)} and {_KAFKA}*"
            raise BadInput(f"option {name} is not known; {remedy}")
        known = find(key, role)
        if known is None:
            raise BadInput(f"option {name}: Kafka's {role}s have no property {key}; correct or remove it")
        if known.fate is Fate.REFUSED:
            raise Refused(f"option {name}: {known.text}; remove it")


def cluster_of(options: Mapping[str, str], role: Role) -> tuple[str, ClientProperties]:
    """Return the cluster's name in messages, and how such a client reaches it, secrets resolved. Raises BadInput."""
    given = {name.removeprefix(_KAFKA): value for name, value in options.items() if name.startswith(_KAFKA)}
    if given:
        for name in ("config", "cluster"):
            if name in options:
                raise BadInput(f"the cluster is named by option {name} and by {_KAFKA}*; omit one of the two")
        for key, value in given.items():
            _refuse_shown_secret(key, value)
        if SERVERS not in given:
            raise BadInput(f"option {_KAFKA}{SERVERS} is missing; write host:port, several with commas between")
        return _NO_FILE_ALIAS, Providers(look_up=look_up).resolve_all(ClientProperties(values_by_key=given))
    path = options.get("config") or os.environ.get(CONFIG_VARIABLE)
    if not path:
        raise BadInput(
            f"no cluster is named: write options config (a file; else {CONFIG_VARIABLE}) and cluster (an alias in it),"
            f" or {_KAFKA}{SERVERS}"
        )
    settings = load(Path(path), from_environment)
    if "cluster" not in options:
        raise BadInput(f"option cluster is missing; {path} has {', '.join(settings.clusters)}")
    found = settings.cluster(options["cluster"])
    return found.alias, found.client(role)


def _refuse_shown_secret(key: str, value: str) -> None:
    """Raise BadInput for a secret that is written in an option itself."""
    shown = is_secret(key) and not has_reference(value)
    if key == JAAS and not shown:
        try:
            login = parse_jaas(value)
        except BadValue as error:
            raise BadInput(located(f"option {_KAFKA}{key}", error.message)) from None
        shown = any(is_secret(name) and not has_reference(part) for name, part in login.options.items())
    if shown:
        raise BadInput(
            f"option {_KAFKA}{key} holds a secret, which Spark would show; write ${{env:NAME}} or ${{file:/path:name}}"
            " in its place, or name a file's cluster by config and cluster"
        )
