"""What belongs to a source and is not copied: reported before a failover, not discovered during one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferry.model import Flow, Unsupported
from ferry.model.observed import Counted
from ferry.words import agreeing, several

_REGISTRIES = re.compile(r"_schemas.*|kafkasql-(journal|topic)")
"""Topics in which schema registries keep schemas: `_schemas` (Confluent, Karapace), `kafkasql-journal` (Apicurio)."""
_STREAMS = re.compile(r".+-(changelog|repartition)")
"""Internal topics of a Kafka Streams application (`ProcessorStateManager.storeChangelogTopic`, `-repartition`)."""


def not_copied(flow: Flow, quotas: Counted, users: Counted, topics: Iterable[str]) -> tuple[Unsupported, ...]:
    """Return what a plan of the flow leaves out and what to do about it; only kinds that the source has."""
    names = sorted(topics)
    streams = [name for name in names if _STREAMS.fullmatch(name)]
    registry = next((name for name in names if _REGISTRIES.fullmatch(name)), None)
    found = []
    if quotas.count != 0:
        found.append(
            Unsupported(
                what="client-quotas",
                count=quotas.count,
                message=f"{_number_of(quotas, 'client quota', flow)} not copied: set them on {flow.target} with "
                "kafka-configs.sh",
            )
        )
    if users.count != 0:
        found.append(
            Unsupported(
                what="scram-users",
                count=users.count,
                message=f"{_number_of(users, 'SCRAM user', flow)} not copied, because brokers do not return passwords: "
                f"create them on {flow.target}",
            )
        )
    if streams:
        of = f"of Kafka Streams applications ({several(streams)})"
        one, many = f"topic {of} is copied as a plain topic", f"topics {of} are copied as plain topics"
        found.append(
            Unsupported(
                what="streams-state",
                count=len(streams),
                message=f"{agreeing(len(streams), one, many)} if at all, and the state of the applications "
                f"is not: let them build it again on {flow.target}",
            )
        )
    if registry is not None:
        found.append(
            Unsupported(
                what="schema-ids",
                count=None,
                message=f"schemas of the registry with topic {registry} on {flow.source} are not copied, and ids in "
                f"records stay as they are: the registry for {flow.target} must know them under the same ids",
            )
        )
    return tuple(found)


def _number_of(counted: Counted, noun: str, flow: Flow) -> str:
    if counted.count is None:
        return f"{noun}s of {flow.source} (their number is not known: {counted.why}) are"
    return f"{counted.count} {noun}{'s are' if counted.count != 1 else ' is'}"
