"""Dead letters: what happens to a record that a transform cannot be applied to, and what its headers and messages say.

A letter is the record unchanged, with more headers after its own that say where it comes from and why it is here. The
headers have the names of Kafka Connect where it has one (KIP-298, `DeadLetterQueueReporter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.flow import transforms
from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.model import Flow

CONNECT = "__connect.errors."
FERRY = "ferry.errors."
"""The headers' names begin with one of the two: a tool that replays letters removes these headers."""

_MOST_REASON = 1_000
"""So many characters of a reason are kept: SQL may make it of a whole value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRule:
    """What one transform does with a record that it cannot be applied to."""

    transform: str
    poison: Poison
    letters: DeadLetters
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The `target` of the records before the transform, and that after it, by target topic. If
    a topic is not in it, both are the topic's own name. In a lane both are other names than the topic's."""
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Target topics of which each record names one, by source topic. If a topic is not in it, all records go to one
    topic. A record that the transform cannot be applied to goes to the first."""


def letter_headers(
    rule: PoisonRule, flow: Flow, topic: str, partition: int, offset: int, timestamp: int, why: str
) -> list[tuple[bytes, bytes]]:
    """Make the headers that a letter has after the record's own; none if the file wants none. `timestamp` in ms."""
    if not rule.letters.context:
        return []
    headers = {
        f"{CONNECT}topic": topic,
        f"{CONNECT}partition": str(partition),
        f"{CONNECT}offset": str(offset),
        f"{CONNECT}connector.name": str(flow),
        f"{CONNECT}stage": "TRANSFORMATION",
        f"{CONNECT}class.name": f"ferry.transform.{rule.transform}",
        f"{CONNECT}exception.message": shortened(why),
        f"{FERRY}cluster": flow.source,
        f"{FERRY}timestamp": str(timestamp),
    }
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def letter_partition(source_partition: int, partitions: int) -> int:
    """Return the partition of a letter. Letters of one source partition are in one partition, in its order."""
    return source_partition % partitions


def poison_sentence(rule: PoisonRule, topic: str, partition: int, offset: int, why: str) -> str:
    """Say why a partition is not copied from a record on, with what to do."""
    key, leave_out, skip = _words(rule)
    return (
        f"{key} cannot be applied to the record at offset {offset} of {topic}-{partition}: {shortened(why)}; leave it "
        f"out by {leave_out}, write {skip} to have it among the dead letters, or pass it with ferry skip"
    )


def unknown_target(rule: PoisonRule, topic: str, partition: int, offset: int, name: str | None) -> str:
    """Say why a source partition is not copied from a record on: the record goes to a topic that is not listed."""
    key, leave_out, _ = _words(rule)
    what = "no topic" if name is None else f"topic {shortened(name)}"
    return (
        f"{key} sends the record at offset {offset} of {topic}-{partition} to {what}, which {_key(rule)}.targets does "
        "not list: add it there, and the next runs continue from that record; or leave such records out by "
        f"{leave_out}"
    )


def _key(rule: PoisonRule) -> str:
    return f"ferry.transform.{rule.transform}"


def _words(rule: PoisonRule) -> tuple[str, str, str]:
    """Return the transform's key, what leaves records out, and the line that makes dead letters of them."""
    if rule.transform == transforms.CONNECT:
        return transforms.CONNECT, "Connect's Filter with a predicate", "errors.tolerance = all"
    return _key(rule), f"{_key(rule)}.where", f"{_key(rule)}.poison = skip"


def shortened(why: str) -> str:
    """Shorten a reason to a part of one line."""
    line = " ".join(why.split())
    return line if len(line) <= _MOST_REASON else f"{line[:_MOST_REASON]}..."
