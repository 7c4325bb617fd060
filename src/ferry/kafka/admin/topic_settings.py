"""Settings of topics: describe and alter, many topics in a request."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from ferry.errors import Refused, Retryable, Unreachable
from ferry.kafka.admin.portions import settle
from ferry.kafka.admin.topics import NotPermitted, raise_for
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.model.topic_settings import Inherited, SettingOrigin, TopicSettings

_TOPIC = 2
"""The number of Kafka's `ConfigResource.Type.TOPIC`."""
_OF_TOPIC = 1
"""The number of Kafka's `DescribeConfigsResponse.ConfigSource.TOPIC_CONFIG`."""
_ORIGINS = {2: SettingOrigin.BROKERS, 3: SettingOrigin.BROKERS, 4: SettingOrigin.FILE, 5: SettingOrigin.DEFAULT}
"""The other sources of `DescribeConfigsResponse.ConfigSource`."""
_SET, _DELETE = 0, 1
"""The numbers of two of Kafka's `AlterConfigOp.OpType`."""
_REQUEST_TOPICS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSettings:
    """Settings by topic, and the topics whose settings this login may not see. Topics that are gone are in neither.

    `failed` are topics for which the cluster keeps answering with an error, each with that error.
    """

    found: dict[str, TopicSettings]
    denied: frozenset[str]
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """Settings that thousands of topics have in common, kept once."""

    settings: dict[tuple[str, int], Inherited] = field(default_factory=dict)
    groups: dict[tuple[tuple[str, str, int], ...], Mapping[str, Inherited]] = field(default_factory=dict)

    def inherited(self, entries: Sequence[tuple[str, str, int]]) -> Mapping[str, Inherited]:
        key = tuple(entries)
        found = self.groups.get(key)
        if found is None:
            found = self.groups[key] = {name: self._setting(value, source) for name, value, source in key}
        return found

    def _setting(self, value: str, source: int) -> Inherited:
        return self.settings.setdefault((value, source), Inherited(value=value, origin=_ORIGINS[source]))


async def topic_settings(
    cluster: Cluster, topics: Sequence[str], *, names: Sequence[str] | None = None
) -> ListedSettings:
    """Return the settings of each topic: all of them, or those of `names`.

    Raises TooOld, and Unreachable when the cluster keeps answering with errors, also for one topic alone.
    """
    listed = await topic_settings_each(cluster, topics, names=names)
    for topic, why in listed.failed.items():
        raise cluster.given_up(_Incomplete(_unsettled(cluster, topic, why)))
    return listed


async def topic_settings_each(
    cluster: Cluster, topics: Sequence[str], *, names: Sequence[str] | None = None
) -> ListedSettings:
    """Return the settings of each topic as `topic_settings` does, with the topics for which errors stay in `failed`.

    Raises TooOld, and Unreachable when the cluster does not answer.
    """
    question = _Question(cluster, topics, names)
    try:
        await cluster.retrying(question.ask)
    except Unreachable as error:
        if not isinstance(error.__cause__, _Incomplete):
            raise
    return ListedSettings(found=question.found, denied=frozenset(question.denied), failed=question.failed)


class _Incomplete(Retryable):
    """Some topics were answered with an error."""


class _Question:
    """The topics that are not answered yet, asked for round by round."""

    def __init__(self, cluster: Cluster, topics: Iterable[str], names: Sequence[str] | None) -> None:
        self.found: dict[str, TopicSettings] = {}
        self.denied: set[str] = set()
        self.failed: dict[str, str] = {}
        self._cluster = cluster
        self._left = dict.fromkeys(topics)
        self._names = names
        self._shared = _Shared()

    async def ask(self) -> None:
        """Ask one round; raise _Incomplete when another round may bring more."""
        self.failed.clear()
        topics = list(self._left)
        for at in range(0, len(topics), _REQUEST_TOPICS):
            portion = topics[at : at + _REQUEST_TOPICS]
            request = _request(portion, synonyms=False, names=self._names)
            for result in (await self._cluster.ask(request)).results:
                self._take_in(result)
            for topic in portion:
                if topic not in self.failed:
                    self._left.pop(topic)
        for topic, why in self.failed.items():
            raise _Incomplete(_unsettled(self._cluster, topic, why))

    def _take_in(self, result: Any) -> None:
        if result.error_code in codes.UNAUTHORIZED:
            self.denied.add(str(result.resource_name))
        elif result.error_code in (codes.UNKNOWN_TOPIC_OR_PARTITION, codes.INVALID_TOPIC):
            return
        elif result.error_code:
            # Without its settings a topic would be created with the target's, and its old records deleted.
            self.failed[str(result.resource_name)] = codes.describe(result.error_code)
        else:
            self.found[result.resource_name] = _settings(result, self._shared)


def _unsettled(cluster: Cluster, topic: str, why: str) -> str:
    return f"settings of topic {topic} on cluster {cluster.alias}: {why}"


def _settings(result: Any, shared: _Shared) -> TopicSettings:
    entries = [entry for entry in result.configs if entry.value is not None and not entry.is_sensitive]
    return TopicSettings(
        own={entry.name: entry.value for entry in entries if entry.config_source == _OF_TOPIC},
        inherited=shared.inherited(
            [(entry.name, entry.value, entry.config_source) for entry in entries if entry.config_source in _ORIGINS]
        ),
    )


def _request(topics: Iterable[str], *, synonyms: bool, names: Sequence[str] | None = None) -> Any:
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[resource(resource_type=_TOPIC, resource_name=name, configuration_keys=names) for name in topics],
        include_synonyms=synonyms,
        include_documentation=False,
        min_version=1,  # since Kafka 1.1; an older answer does not separate a topic's own settings from defaults
    )


async def batch_limits(cluster: Cluster, topics: Collection[str]) -> dict[str, int]:
    """Return `max.message.bytes` of the topics whose settings the cluster shows to this login."""
    name = "max.message.bytes"
    listed = await topic_settings_each(cluster, sorted(topics), names=[name])
    found = {
        topic: settings.own.get(name) or (settings.inherited[name].value if name in settings.inherited else None)
        for topic, settings in listed.found.items()
    }
    return {topic: int(value) for topic, value in found.items() if value is not None}


async def settings_in_force(cluster: Cluster, topic: str) -> dict[str, str]:
    """Return all settings of one topic in force.

    Raises NotPermitted, and Unreachable when the cluster does not show them.
    """

    async def action() -> dict[str, str]:
        listed = await topic_settings(cluster, [topic])
        if topic in listed.denied:
            raise NotPermitted(
                f"not allowed to read the settings of topic {topic} on cluster {cluster.alias}: grant DESCRIBE_CONFIGS "
                "on it"
            )
        if topic not in listed.found:
            raise Retryable(f"cluster {cluster.alias} does not show the settings of topic {topic}")
        found = listed.found[topic]
        return {name: setting.value for name, setting in found.inherited.items()} | dict(found.own)

    return await cluster.retrying(action)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSettings:
    """The settings of a new topic where nothing is set, and the names of all settings that the brokers know."""

    values: Mapping[str, str] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


async def default_settings(cluster: Cluster, topic: str) -> DefaultSettings:
    """Return what a new topic has where nothing is set, by the synonyms of an existing topic's settings.

    Empty when this login may not see them, or the topic is gone.
    """
    request = _request([topic], synonyms=True)

    async def action() -> DefaultSettings:
        found: dict[str, str] = {}
        names = set[str]()
        for result in (await cluster.ask(request)).results:
            for entry in result.configs:  # none where there is an error
                names.add(entry.name)
                # The first synonym that is not the topic's own counts.
                values = [word.value for word in entry.synonyms if word.source in _ORIGINS and word.value is not None]
                if values:
                    found[entry.name] = values[0]
                elif entry.config_source in _ORIGINS and entry.value is not None:
                    found[entry.name] = entry.value
        return DefaultSettings(values=found, names=frozenset(names))

    return await cluster.retrying(action)


async def alter_settings(
    cluster: Cluster, changes: Mapping[str, Collection[tuple[str, str | None]]]
) -> dict[str, Refused]:
    """Set and (None) reset settings of topics; return the refusal of each topic that was left unchanged.

    All changes of a topic are made, or none (KIP-339).
    """
    failed: dict[str, Refused] = {}

    async def ask(part: list[str]) -> list[tuple[str, Any]]:
        outcomes = (await cluster.ask(_alteration({name: changes[name] for name in part}))).responses
        return [(outcome.resource_name, outcome) for outcome in outcomes]

    def judge(name: str, outcome: Any) -> None:
        if outcome.error_code:
            what = f"settings of topic {name} on cluster {cluster.alias} were not changed"
            raise_for(what, outcome, "ALTER_CONFIGS")

    names = list(changes)
    for at in range(0, len(names), _REQUEST_TOPICS):
        portion = names[at : at + _REQUEST_TOPICS]
        await settle(cluster, dict(zip(portion, portion, strict=True)), failed, ask, judge)
    return failed


def _alteration(changes: Mapping[str, Collection[tuple[str, str | None]]]) -> Any:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=_TOPIC,
                resource_name=topic,
                configs=[
                    resource.AlterableConfig(
                        name=name, config_operation=_DELETE if value is None else _SET, value=value
                    )
                    for name, value in configs
                ],
            )
            for topic, configs in changes.items()
        ],
        validate_only=False,
    )
