"""A replication policy of the user: a Python class named by its import path."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import redirect_stdout
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
_REMEDY = "correct the class, `ferry config policy` shows all of its answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPolicy:
    """A user's policy with a check of every answer.

    BadInput names class, topic and remedy for an answer of another type. Two of them are equal when class and
    properties are equal.
    """

    path: str
    properties: Mapping[str, str] = field(repr=False)
    policy: ReplicationPolicy = field(repr=False, compare=False)
    secrets: Collection[str] = field(default=(), repr=False, compare=False)
    """Values among `properties` that no message may show."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """Return the target's name of the source's `topic`.

        The answer is checked to be text; the plan checks whether Kafka accepts it as a name.
        """
        return self._asked(
            "format_remote_topic", topic, str, lambda: self.policy.format_remote_topic(source_alias, topic)
        )

    def topic_source(self, topic: str) -> str | None:
        """Return the alias of the cluster that `topic` was copied from, one hop back.

        None for a topic that is not a copy.
        """
        return self._asked("topic_source", topic, (str, type(None)), lambda: self.policy.topic_source(topic))

    def upstream_topic(self, topic: str) -> str | None:
        """Return the name of `topic` one hop back; None for a topic that is not a copy.

        Raises BadInput when the hops back from `topic` do not end.
        """
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
        """Return the first name of `topic`, all hops back."""
        return self._asked("original_topic", topic, str, lambda: self.policy.original_topic(topic))

    def is_internal_topic(self, topic: str) -> bool:
        """Return whether `topic` serves Kafka or MirrorMaker 2 itself and is never copied."""
        return self._asked("is_internal_topic", topic, bool, lambda: self.policy.is_internal_topic(topic))

    def heartbeats_topic(self) -> str:
        """Return the topic of heartbeats; ReplicationPolicy's where the class has no such method.

        Raises BadInput for a name that Kafka does not accept.
        """
        return self._internal("heartbeats_topic")

    def checkpoints_topic(self, source_alias: str) -> str:
        """Return the topic of checkpoints; ReplicationPolicy's where the class has no such method.

        Raises BadInput for a name that Kafka does not accept.
        """
        return self._internal("checkpoints_topic", source_alias)

    def offset_syncs_topic(self, other_alias: str) -> str:
        """Return the topic of offset syncs; ReplicationPolicy's where the class has no such method.

        Raises BadInput for a name that Kafka does not accept.
        """
        return self._internal("offset_syncs_topic", other_alias)

    def _internal(self, method: str, *aliases: str) -> str:
        """Return the name of one of MirrorMaker 2's topics. A class need not have these methods."""
        given = getattr(self.policy, method, None)
        if not callable(given):
            return str(getattr(ReplicationPolicy, method)(self, *aliases))
        name: str = self._asked(method, ", ".join(aliases), str, lambda: given(*aliases))
        if (why := illegal_name(name)) is not None:
            raise BadInput(f"policy {self.path} answers {method} with {name!r}, which {why}: {_REMEDY}")
        return name

    def _asked(self, method: str, topic: str, kind: type | tuple[type, ...], ask: Callable[[], T]) -> T:
        try:
            answer = _called(ask)
        except _Raised as raised:
            said = raised.said(self.secrets)
            raise BadInput(
                f"policy {self.path} raises {raised.name} in {method} for topic {topic!r} ({said}): {_REMEDY}"
            ) from raised.cause(self.secrets)
        if not isinstance(answer, kind):
            given = f"a {type(answer).__name__} that holds a secret" if _shows(answer, self.secrets) else repr(answer)
            raise BadInput(
                f"policy {self.path} answers {method} for topic {topic!r} with {given}, which is not of type "
                f"{_named(kind)}: {_REMEDY}"
            )
        return answer


def load_policy(path: str, properties: Mapping[str, str], secrets: Collection[str] = ()) -> OwnPolicy:
    """Make the policy of the Python class `path` with `properties`; every method is tried once.

    `properties` are the flow's `replication.policy.*`, `source.cluster.alias` and `target.cluster.alias`; no message
    shows those of their values that are among `secrets`. Raises BadInput for a class that is not there, cannot be made,
    or gives an answer of another type.
    """
    module, _, name = path.rpartition(".")
    remedy = (
        f"write {JAVA_PACKAGE}DefaultReplicationPolicy, {JAVA_PACKAGE}IdentityReplicationPolicy, or the import path of "
        "a Python class (a Java class cannot be loaded: docs/policies.md shows how to write it in Python)"
    )
    if not module or not all(part.isidentifier() for part in path.split(".")):
        raise BadInput(f"policy {path!r} is not known; {remedy}")
    try:
        made = _called(lambda: getattr(import_module(module), name)(dict(properties)))
    except _Raised as raised:
        raise BadInput(_not_made(path, module, name, remedy, raised, secrets)) from raised.cause(secrets)
    for method in METHODS:
        if not callable(getattr(made, method, None)):
            raise BadInput(f"policy {path!r} has no method {method}; derive it from ferry.policy.ReplicationPolicy")
    policy = OwnPolicy(path=path, properties=dict(properties), policy=made, secrets=tuple(secrets))
    _try(policy, properties.get("source.cluster.alias", "a"))
    return policy


def _not_made(path: str, module: str, name: str, remedy: str, raised: _Raised, secrets: Collection[str]) -> str:
    """Return why there is no policy, as one sentence."""
    error = raised.error
    if isinstance(error, ModuleNotFoundError):
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            return f"policy {path!r} is not known: there is no module {error.name}; {remedy}"
        return f"policy {path!r} cannot be imported: it needs module {error.name}; install it next to Ferry"
    if isinstance(error, AttributeError) and error.name == name:
        return f"policy {path!r} is not known: module {module} has no {name}; correct the name"
    return f"policy {path!r} cannot be made: {raised.name}: {raised.said(secrets)}; correct the class"


class _Raised(Exception):
    """What a user's code raised, even an exit: it never ends Ferry, and the user sees it as one sentence."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error
        self.name = type(error).__name__

    def said(self, secrets: Collection[str]) -> str:
        """Return the message on one line, unless it shows a secret."""
        if _shows(self.error, secrets):
            return "its message shows a secret, so it is left out"
        return " ".join(str(self.error).split()) or "no message"

    def cause(self, secrets: Collection[str]) -> BaseException | None:
        """Return the error that the sentence is chained to.

        None with secrets, because a log prints all that is chained.
        """
        return None if secrets else self.error


def _called(action: Callable[[], T]) -> T:
    """Return the answer of a user's code. Raises _Raised for whatever it raises except the user's own Ctrl-C.

    Its prints go to standard error: standard output is the answer of a command, perhaps in JSON.
    """
    try:
        with redirect_stdout(sys.stderr):
            return action()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _Raised(error) from None


def _shows(thing: object, secrets: Collection[str]) -> bool:
    """Return whether the text of `thing`, unchanged or escaped, contains one of `secrets`."""
    text = f"{thing}{thing!r}"
    return any(secret in text or repr(secret)[1:-1] in text for secret in secrets if secret)


def _try(policy: OwnPolicy, alias: str) -> None:
    """Ask every method for some names, so that a policy that raises is found where it is configured, not in a run."""
    for topic in _PROBES:
        remote = policy.format_remote_topic(alias, topic)
        why = illegal_name(remote)
        if why is not None:
            raise BadInput(
                f"policy {policy.path} names topic {topic!r} {remote!r} on the target, but that {why}: {_REMEDY}"
            )
        for name in (topic, remote):
            policy.topic_source(name)
            policy.upstream_topic(name)
            policy.original_topic(name)
            policy.is_internal_topic(name)
    policy.heartbeats_topic()
    policy.checkpoints_topic(alias)
    policy.offset_syncs_topic(alias)


def _named(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join("None" if one is type(None) else one.__name__ for one in kinds)
