"""A replication policy of the user's own: a Python class named by its import path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TypeVar

from ferry.errors import BadInput
from ferry.policy.names import ReplicationPolicy, illegal_name

T = TypeVar("T")

JAVA_PACKAGE = "org.apache.kafka.connect.mirror."
METHODS = ("format_remote_topic", "topic_source", "upstream_topic", "original_topic", "is_internal_topic")

_PROBES = ("orders", "heartbeats", "a.orders", "mm2-offset-syncs.b.internal", "__consumer_offsets")
_MOST_HOPS = 50
_REMEDY = "correct the class, `ferry policy check` shows all of its answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPolicy:
    """A user's policy whose every answer is looked at: BadInput names class, topic and remedy when one is no answer.

    Two of them are equal when class and properties are.
    """

    path: str
    properties: Mapping[str, str]
    policy: ReplicationPolicy = field(repr=False, compare=False)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """As ReplicationPolicy; the answer is text, whether Kafka takes it for a name is judged by the plan."""
        return self._asked(
            "format_remote_topic", topic, str, lambda: self.policy.format_remote_topic(source_alias, topic)
        )

    def topic_source(self, topic: str) -> str | None:
        """As ReplicationPolicy."""
        return self._asked("topic_source", topic, (str, type(None)), lambda: self.policy.topic_source(topic))

    def upstream_topic(self, topic: str) -> str | None:
        """As ReplicationPolicy; BadInput when the hops back from `topic` do not end."""
        at: str | None = topic
        for _ in range(_MOST_HOPS):
            before, at = at, self._one_hop_back(at or "")
            if at is None or at == before:
                return self._one_hop_back(topic)
        raise BadInput(
            f"policy {self.path} finds no end in upstream_topic from topic {topic!r} on (more than {_MOST_HOPS} hops): "
            f"{_REMEDY}"
        )

    def _one_hop_back(self, topic: str) -> str | None:
        return self._asked("upstream_topic", topic, (str, type(None)), lambda: self.policy.upstream_topic(topic))

    def original_topic(self, topic: str) -> str:
        """As ReplicationPolicy."""
        return self._asked("original_topic", topic, str, lambda: self.policy.original_topic(topic))

    def is_internal_topic(self, topic: str) -> bool:
        """As ReplicationPolicy."""
        return self._asked("is_internal_topic", topic, bool, lambda: self.policy.is_internal_topic(topic))

    def _asked(self, method: str, topic: str, kind: type | tuple[type, ...], ask: Callable[[], T]) -> T:
        try:
            answer = ask()
        # Whatever a user's class raises is his to see, as one sentence.
        except Exception as error:
            said = " ".join(str(error).split()) or "no message"
            raise BadInput(
                f"policy {self.path} raises {type(error).__name__} in {method} for topic {topic!r} ({said}): {_REMEDY}"
            ) from error
        if not isinstance(answer, kind):
            raise BadInput(
                f"policy {self.path} answers {method} for topic {topic!r} with {answer!r}, which is no "
                f"{_named(kind)}: {_REMEDY}"
            )
        return answer


def load_policy(path: str, properties: Mapping[str, str]) -> OwnPolicy:
    """The policy of the Python class `path`, made with `properties`; every method is tried once.

    `properties` are the flow's `replication.policy.*`, `source.cluster.alias` and `target.cluster.alias`. Raises
    BadInput for a class that is not there, cannot be made, or gives an answer that is none.
    """
    module, _, name = path.rpartition(".")
    remedy = (
        f"write {JAVA_PACKAGE}DefaultReplicationPolicy, {JAVA_PACKAGE}IdentityReplicationPolicy, or the import path of "
        "a Python class (a Java class cannot be loaded: docs/policies.md shows how to write it in Python)"
    )
    if not module or not all(part.isidentifier() for part in path.split(".")):
        raise BadInput(f"policy {path!r} is not known; {remedy}")
    try:
        made = getattr(import_module(module), name)(dict(properties))
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise BadInput(f"policy {path!r} is not known: there is no module {error.name}; {remedy}") from error
        raise BadInput(
            f"policy {path!r} cannot be imported: it needs module {error.name}; install it beside Ferry"
        ) from error
    except Exception as error:
        if isinstance(error, AttributeError) and error.name == name:
            raise BadInput(f"policy {path!r} is not known: module {module} has no {name}; correct the name") from error
        said = " ".join(str(error).split()) or "no message"
        raise BadInput(f"policy {path!r} cannot be made: {type(error).__name__}: {said}; correct the class") from error
    for method in METHODS:
        if not callable(getattr(made, method, None)):
            raise BadInput(f"policy {path!r} has no method {method}; derive it from ferry.policy.ReplicationPolicy")
    policy = OwnPolicy(path=path, properties=dict(properties), policy=made)
    _try(policy, properties.get("source.cluster.alias", "a"))
    return policy


def _try(policy: OwnPolicy, alias: str) -> None:
    """Ask every method for some names: a policy that raises shall show where it is configured, not in a run."""
    for topic in _PROBES:
        remote = policy.format_remote_topic(alias, topic)
        why = illegal_name(remote)
        if why is not None:
            raise BadInput(
                f"policy {policy.path} names topic {topic!r} {remote!r} on the target, which {why}: {_REMEDY}"
            )
        for name in (topic, remote):
            policy.topic_source(name)
            policy.upstream_topic(name)
            policy.original_topic(name)
            policy.is_internal_topic(name)


def _named(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join("None" if one is type(None) else one.__name__ for one in kinds)
