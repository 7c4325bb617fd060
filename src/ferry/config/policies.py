"""`replication.policy.class`: MirrorMaker 2's two policies, or a Python class of the user's own by its import path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module

from ferry.config.problem import BadValue
from ferry.model import Flow
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy

PACKAGE = "org.apache.kafka.connect.mirror."
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PROBES = ("orders", "heartbeats", "mm2-offset-syncs.b.internal", "__consumer_offsets")


def make_policy(
    text: str, flow: Flow, *, separator: str, internal_separator_enabled: bool, properties: Mapping[str, str]
) -> tuple[str, ReplicationPolicy]:
    """The policy and its short name. `properties` are the flow's `replication.policy.*`, for a class of the user's own.

    Such a class is called with one mapping: these properties, `source.cluster.alias` and `target.cluster.alias`.
    Raises BadValue for a class that is not known, cannot be imported, or does not keep the Protocol.
    """
    name = text.strip().removeprefix(PACKAGE)
    if name == "DefaultReplicationPolicy":
        return name, DefaultReplicationPolicy(
            separator=separator, internal_separator_enabled=internal_separator_enabled
        )
    if name == "IdentityReplicationPolicy":
        return name, IdentityReplicationPolicy(
            source_alias=flow.source, separator=separator, internal_separator_enabled=internal_separator_enabled
        )
    given = {**properties, "source.cluster.alias": flow.source, "target.cluster.alias": flow.target}
    policy = _own(name, given)
    _probe(name, policy, flow)
    return name, policy


def _own(path: str, properties: Mapping[str, str]) -> ReplicationPolicy:
    module, _, attribute = path.rpartition(".")
    javas = f"{PACKAGE}DefaultReplicationPolicy, {PACKAGE}IdentityReplicationPolicy"
    remedy = f"write {javas}, or package.module.Class of Python"
    if not all(part.isidentifier() for part in path.split(".")) or not module:
        raise BadValue(f"policy {path!r} is not known; {remedy}")
    try:
        made: ReplicationPolicy = getattr(import_module(module), attribute)(properties)
    except ImportError as error:
        raise BadValue(f"policy {path!r} is not known: {error}; {remedy}") from None
    except AttributeError as error:
        raise BadValue(f"policy {path!r} is not known: {error}; {remedy}") from None
    # Whatever a user's class raises is his to see, as one sentence.
    except Exception as error:
        raise BadValue(_raised(path, "its constructor", error)) from None
    missing = [name for name in _METHODS if not callable(getattr(made, name, None))]
    if missing:
        raise BadValue(f"policy {path!r} has no method {missing[0]}; add it as ferry.policy.ReplicationPolicy has it")
    return made


_METHODS = ("format_remote_topic", "topic_source", "upstream_topic", "original_topic", "is_internal_topic")


def _probe(path: str, policy: ReplicationPolicy, flow: Flow) -> None:
    """Ask every method once for some names: a policy that raises must show here, not in the middle of a run."""
    for topic in _PROBES:
        asked = f"format_remote_topic({flow.source!r}, {topic!r})"
        try:
            remote = policy.format_remote_topic(flow.source, topic)
            if not _TOPIC.fullmatch(str(remote)):
                raise BadValue(f"policy {path!r} answers {asked} with {remote!r}, which is no topic name; correct it")
            for name in (topic, remote):
                asked = f"topic_source({name!r})"
                _expect(path, asked, policy.topic_source(name), str | None)
                asked = f"upstream_topic({name!r})"
                _expect(path, asked, policy.upstream_topic(name), str | None)
                asked = f"original_topic({name!r})"
                _expect(path, asked, policy.original_topic(name), str)
                asked = f"is_internal_topic({name!r})"
                _expect(path, asked, policy.is_internal_topic(name), bool)
        except BadValue:
            raise
        except Exception as error:
            raise BadValue(_raised(path, asked, error)) from None


def _expect(path: str, asked: str, answer: object, kind: type | object) -> None:
    if not isinstance(answer, kind):  # type: ignore[arg-type]
        raise BadValue(
            f"policy {path!r} answers {asked} with {answer!r}; answer as ferry.policy.ReplicationPolicy says"
        )


def _raised(path: str, asked: str, error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"policy {path!r} raises {type(error).__name__} in {asked}: {said or 'no message'}; correct the class"
