"""Cases of requests that change and describe topics, settings, records, ACLs, groups, transactions and disks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

from kafka.protocol import admin, consumer

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.messages import ConsumerGroupDescribeRequest
from tests.harness import awaited
from tests.kafka.raw import LOADING, Raw

NO_TOPIC = UUID(int=2**127 + 5)
TOPIC, BROKER = 2, 4
"""Kafka's numbers of what has settings."""
ANY, LITERAL, PREFIXED, READ, ALLOW = 1, 3, 4, 3, 3
"""Kafka's numbers in ACLs."""
SET, DELETE = 0, 1
SETTINGS = "cleanup.policy", "retention.ms", "max.message.bytes"
TIMEOUT_MS = 30_000
Members = Callable[[str, str, str], AbstractContextManager[object]]


class AdminTalk:
    """Requests of one client, about things whose names begin with `topic`, and all that was answered."""

    def __init__(self, cluster: Cluster, topic: str, members: Members) -> None:
        """`members` puts a member into a group, given a topic and `classic` or `consumer`, until it ends."""
        self.cluster = cluster
        self.topic = topic
        self.members = members
        self.said: list[Any] = []

    async def say(self, request: Any, read: Callable[[Any], Any], until: Callable[[Any], bool] | None = None) -> Any:
        """Ask, again until the answer is one that is waited for, and keep what is read of it."""
        found: list[Any] = []

        async def answered() -> bool:
            found[:] = [read(await self.cluster.ask(request, 1))]
            return until is None or until(found[0])

        await awaited(self.cluster.loop, answered, f"an answer to {type(request).__name__}")
        self.said.append((type(request).__name__, found[0]))
        return found[0]

    def mine(self, name: str) -> bool:
        """Whether a name is of this talk."""
        return name.startswith(self.topic)

    async def there(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, and wait until its partitions are led and their leaders answer.

        A broker names a leader in its metadata a moment before that leader serves the partition.
        """
        await self.cluster.ask(creation(new(topic, partitions)))

        async def led() -> bool:
            found = (await self.cluster.refresh([topic])).get(topic)
            return found is not None and sum(part.leader >= 0 for part in found.partitions.values()) == partitions

        async def served() -> bool:
            answers = [offsets(await self.cluster.ask(listed(topic, -1, number), 1)) for number in range(partitions)]
            return all(code == 0 for answer in answers for code, _ in answer)

        await awaited(self.cluster.loop, led, f"leaders of {topic}")
        await awaited(self.cluster.loop, served, f"answers of the leaders of {topic}")

    async def written(self, topic: str, records: int) -> None:
        """Append records to partition 0, outside transactions."""
        raw = await Raw(self.cluster, topic).open()
        code, _ = await raw.produce(await raw.init(), 0, records)
        assert code == 0, code


AdminCase = Callable[[AdminTalk], Awaitable[None]]
CASES: dict[str, AdminCase] = {}
"""Cases by name."""


def case(one: AdminCase) -> AdminCase:
    """Add a case."""
    CASES[one.__name__] = one
    return one


def new(name: str, partitions: int = 1, replicas: int = 1, **settings: str) -> Any:
    """A topic to create."""
    kind = admin.CreateTopicsRequest.CreatableTopic
    configs = [kind.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    return kind(name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=configs)


def creation(*topics: Any) -> Any:
    """The request that creates topics."""
    return admin.CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, validate_only=False)


def topic_codes(answer: Any) -> Any:
    """The code of each topic."""
    return sorted((one.name, one.error_code) for one in answer.topics)


@case
async def topics_are_created(talk: AdminTalk) -> None:
    name = talk.topic
    await talk.say(creation(new(name, 2, retention_ms="1000")), topic_codes)
    await talk.say(creation(new(name), new(f"{name}-2")), topic_codes)
    await talk.say(creation(new(f"{name}/"), new("."), new(f"{name}-0", 0)), topic_codes)
    await talk.say(creation(new(f"{name}-many", 1, 3)), topic_codes)
    await talk.say(creation(new(f"{name}-odd", no_such="1"), new(f"{name}-bad", retention_ms="many")), topic_codes)
    await talk.say(creation(new(f"{name}-dot.ted")), topic_codes)
    await talk.say(creation(new(f"{name}-dot_ted")), topic_codes)


@case
async def topics_grow(talk: AdminTalk) -> None:
    kind = admin.CreatePartitionsRequest.CreatePartitionsTopic
    await talk.there(talk.topic, 2)
    for name, count in ((talk.topic, 3), (talk.topic, 3), (talk.topic, 1), (f"{talk.topic}-none", 2)):
        request = admin.CreatePartitionsRequest(
            topics=[kind(name=name, count=count, assignments=None)], timeout_ms=TIMEOUT_MS, validate_only=False
        )
        await talk.say(request, lambda answer: [(one.name, one.error_code) for one in answer.results])


@case
async def topics_are_deleted(talk: AdminTalk) -> None:
    kind = admin.DeleteTopicsRequest.DeleteTopicState
    await talk.there(talk.topic)
    topic_id = talk.cluster.topics[talk.topic].topic_id
    for one in (topic_id, topic_id, NO_TOPIC):
        request = admin.DeleteTopicsRequest(
            topics=[kind(name=None, topic_id=one)], topic_names=[], timeout_ms=TIMEOUT_MS, min_version=6
        )
        await talk.say(request, lambda answer: [(one.name, one.error_code) for one in answer.responses])


def alteration(topic: str, *settings: tuple[str, int, str | None]) -> Any:
    """The request that sets and resets settings of a topic."""
    kind = admin.IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        kind.AlterableConfig(name=name, config_operation=operation, value=value) for name, operation, value in settings
    ]
    return admin.IncrementalAlterConfigsRequest(
        resources=[kind(resource_type=TOPIC, resource_name=topic, configs=configs)], validate_only=False
    )


def altered(answer: Any) -> Any:
    """The code of each topic."""
    return [(one.resource_name, one.error_code) for one in answer.responses]


def description(topic: str, *, keys: Sequence[str] | None = SETTINGS, synonyms: bool = False) -> Any:
    """The request that describes settings of a topic."""
    kind = admin.DescribeConfigsRequest.DescribeConfigsResource
    return admin.DescribeConfigsRequest(
        resources=[kind(resource_type=TOPIC, resource_name=topic, configuration_keys=keys)],
        include_synonyms=synonyms,
        include_documentation=False,
        min_version=1,
    )


def described(answer: Any) -> Any:
    """What each topic has, of the settings that are compared."""
    return [
        (
            one.resource_name,
            one.error_code,
            sorted(
                (each.name, each.value, each.config_source, [(word.name, word.source) for word in each.synonyms])
                for each in one.configs
                if each.name in SETTINGS
            ),
        )
        for one in answer.results
    ]


@case
async def settings_of_topics(talk: AdminTalk) -> None:
    name = talk.topic
    await talk.there(name)
    await talk.say(description(name), described)
    await talk.say(alteration(name, ("retention.ms", SET, "5000"), ("cleanup.policy", SET, "compact")), altered)

    def compacted(found: Any) -> bool:
        return "compact" in str(found)

    await talk.say(description(name), described, compacted)
    await talk.say(description(name, keys=None), described)
    await talk.say(description(name, keys=["retention.ms", "no.such"]), described)
    await talk.say(alteration(name, ("retention.ms", SET, "6000"), ("cleanup.policy", SET, "odd")), altered)
    await talk.say(alteration(name, ("retention.ms", SET, "6000"), ("no.such", SET, "1")), altered)
    await talk.say(description(name), described)
    await talk.say(alteration(name, ("cleanup.policy", DELETE, None), ("max.message.bytes", DELETE, None)), altered)
    await talk.say(description(name), described, lambda found: not compacted(found))


@case
async def settings_with_synonyms(talk: AdminTalk) -> None:
    await talk.there(talk.topic)
    await talk.say(description(talk.topic, keys=["retention.ms"], synonyms=True), described)


@case
async def settings_of_topics_that_are_not_there(talk: AdminTalk) -> None:
    name = f"{talk.topic}-none"
    await talk.say(alteration(name, ("retention.ms", SET, "5000")), altered)
    await talk.say(description(name), described)
    await talk.say(description(f"{name}/"), described)


@case
async def records_are_deleted(talk: AdminTalk) -> None:
    kind = admin.DeleteRecordsRequest.DeleteRecordsTopic
    await talk.there(talk.topic)
    await talk.written(talk.topic, 5)
    for name, partition, offset in (
        (talk.topic, 0, 2),
        (talk.topic, 0, 2),
        (talk.topic, 0, 1),
        (talk.topic, 0, 9),
        (talk.topic, 0, -1),
        (talk.topic, 1, 0),
        (f"{talk.topic}-none", 0, 0),
    ):
        part = kind.DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = admin.DeleteRecordsRequest(topics=[kind(name=name, partitions=[part])], timeout_ms=TIMEOUT_MS)
        await talk.say(
            request,
            lambda answer: [
                (one.name, part.partition_index, part.error_code, part.low_watermark)
                for one in answer.topics
                for part in one.partitions
            ],
        )
    await talk.say(listed(talk.topic, -2), offsets)


def listed(topic: str, timestamp: int, partition: int = 0) -> Any:
    """The request for an offset of a partition."""
    kind = consumer.ListOffsetsRequest.ListOffsetsTopic
    part = kind.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
    return consumer.ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[kind(name=topic, partitions=[part])], timeout_ms=TIMEOUT_MS
    )


def offsets(answer: Any) -> Any:
    """The code and the offset of each partition."""
    return [(part.error_code, part.offset) for one in answer.topics for part in one.partitions]


@case
async def offsets_by_time(talk: AdminTalk) -> None:
    await talk.there(talk.topic)
    for timestamp in (-1, -2, -3, 0, 2**50):
        await talk.say(listed(talk.topic, timestamp), offsets)
    await talk.written(talk.topic, 3)
    for timestamp in (-1, -2, -3, 0, 2**50):
        await talk.say(listed(talk.topic, timestamp), offsets)
    await talk.say(listed(talk.topic, -1, 1), offsets)


@case
async def disks(talk: AdminTalk) -> None:
    await talk.there(talk.topic, 2)
    await talk.written(talk.topic, 3)

    def sizes(answer: Any) -> Any:
        return answer.error_code, [
            (
                one.error_code,
                0 <= one.usable_bytes <= one.total_bytes,
                sorted(
                    (part.partition_index, part.partition_size, part.offset_lag, part.is_future_key)
                    for topic in one.topics
                    if talk.mine(topic.name)
                    for part in topic.partitions
                ),
            )
            for one in answer.results
        ]

    await talk.say(admin.DescribeLogDirsRequest(topics=None, min_version=4), sizes)
    await talk.say(admin.DescribeLogDirsRequest(topics=[], min_version=4), sizes)


# ---- ACLs


def acl(name: str, principal: str = "User:ann", pattern: int = LITERAL) -> dict[str, Any]:
    """An ACL that allows to read a topic."""
    return {
        "resource_type": TOPIC,
        "resource_name": name,
        "pattern_type": pattern,
        "principal": principal,
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }


def granting(*acls: dict[str, Any]) -> Any:
    """The request that creates ACLs."""
    kind = admin.CreateAclsRequest.AclCreation
    fields = [{("resource_" * (name == "pattern_type") + name): one[name] for name in one} for one in acls]
    return admin.CreateAclsRequest(creations=[kind(**one) for one in fields])


def _filter(one: dict[str, Any]) -> dict[str, Any]:
    plain = {"operation", "permission_type"}
    return {name if name in plain else f"{name}_filter": value for name, value in one.items()}


def taking(*acls: dict[str, Any]) -> Any:
    """The request that deletes ACLs."""
    return admin.DeleteAclsRequest(filters=[admin.DeleteAclsRequest.DeleteAclsFilter(**_filter(one)) for one in acls])


def all_acls() -> Any:
    """The request for all ACLs."""
    numbers = ("resource_type", "pattern_type", "operation", "permission_type")
    return admin.DescribeAclsRequest(
        **_filter(dict.fromkeys(numbers, ANY) | dict.fromkeys(("resource_name", "principal", "host")))
    )


def taken(answer: Any) -> Any:
    """The code of each filter, and what it matched."""
    return [
        (one.error_code, sorted((each.error_code, each.resource_name, each.principal) for each in one.matching_acls))
        for one in answer.filter_results
    ]


def granted(answer: Any) -> Any:
    """The code of each ACL."""
    return [one.error_code for one in answer.results]


@case
async def acls(talk: AdminTalk) -> None:
    ann, bob, begun = acl(talk.topic), acl(talk.topic, "User:bob"), acl(talk.topic, pattern=PREFIXED)

    def found(answer: Any) -> Any:
        return answer.error_code, sorted(
            (one.resource_type, one.resource_name, one.pattern_type, each.principal, each.host, each.operation)
            for one in answer.resources
            if talk.mine(one.resource_name)
            for each in one.acls
        )

    await talk.say(granting(ann, bob, begun), granted)
    await talk.say(all_acls(), found, lambda said: len(said[1]) == 3)
    await talk.say(granting(ann), granted)
    await talk.say(granting(acl(""), acl(talk.topic, "ann"), bob), granted)
    await talk.say(all_acls(), found)
    await talk.say(taking(ann, acl(f"{talk.topic}-none")), taken)
    await talk.say(all_acls(), found, lambda said: len(said[1]) == 2)
    await talk.say(taking(ann), taken)
    await talk.say(taking(bob, begun), taken)
    await talk.say(all_acls(), found, lambda said: not said[1])


async def acls_without_an_authorizer(talk: AdminTalk) -> None:
    """No ACL can be described, created or deleted."""
    await talk.say(all_acls(), lambda answer: (answer.error_code, answer.resources))
    await talk.say(granting(acl(talk.topic)), granted)
    await talk.say(taking(acl(talk.topic)), taken)


@case
async def permissions_on_the_cluster(talk: AdminTalk) -> None:
    for asked in (True, False):
        await talk.say(
            admin.DescribeClusterRequest(include_cluster_authorized_operations=asked),
            lambda answer: (answer.error_code, answer.authorized_operations),
        )


@case
async def quotas_and_users(talk: AdminTalk) -> None:
    await talk.say(
        admin.DescribeClientQuotasRequest(components=[], strict=False),
        lambda answer: (answer.error_code, answer.entries),
    )
    await talk.say(
        admin.DescribeUserScramCredentialsRequest(users=[]), lambda answer: (answer.error_code, answer.results)
    )


# ---- groups


def committing(group: str, topic: str, offset: int, partition: int = 0) -> Any:
    """The request that commits an offset of a group from outside."""
    kind = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
    part = kind.OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="m"
    )
    return consumer.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[kind(name=topic, partitions=[part])],
        max_version=9,
    )


def committed(answer: Any) -> Any:
    """The code of each partition."""
    return [part.error_code for one in answer.topics for part in one.partitions]


def fetching(group: str, topic: str | None) -> Any:
    """The request for offsets of a group: of partition 0 of a topic, or of all."""
    kind = consumer.OffsetFetchRequest.OffsetFetchRequestGroup
    topics = None if topic is None else [kind.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    return consumer.OffsetFetchRequest(
        groups=[kind(group_id=group, topics=topics)], require_stable=True, min_version=8, max_version=9
    )


def fetched(answer: Any) -> Any:
    """What each group has committed."""
    return [
        (
            group.error_code,
            [
                (part.error_code, part.committed_offset, part.metadata)
                for one in group.topics
                for part in one.partitions
            ],
        )
        for group in answer.groups
    ]


def is_ready(said: Any) -> bool:
    """Whether the coordinator has loaded its groups."""
    return all(one[0] not in LOADING for one in said)


async def _describe(talk: AdminTalk, group: str) -> None:
    def mine(answer: Any) -> Any:
        return [(one.protocol_type, one.group_state, one.group_type) for one in answer.groups if one.group_id == group]

    def members(answer: Any) -> Any:
        return [(one.error_code, one.group_state, len(one.members)) for one in answer.groups]

    await talk.say(admin.ListGroupsRequest(states_filter=[], types_filter=[]), mine)
    await talk.say(admin.DescribeGroupsRequest(groups=[group], include_authorized_operations=False), members)
    await talk.say(ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False), members)


async def _delete(talk: AdminTalk, group: str) -> None:
    await talk.say(
        admin.DeleteGroupsRequest(groups_names=[group]), lambda answer: [one.error_code for one in answer.results]
    )


@case
async def groups_without_members(talk: AdminTalk) -> None:
    group = f"{talk.topic}-group"
    await talk.there(talk.topic)
    await talk.say(fetching(group, talk.topic), fetched, is_ready)
    await _describe(talk, group)
    await _delete(talk, group)
    await talk.say(committing(group, talk.topic, 4), committed)
    await talk.say(committing(group, talk.topic, 5, partition=3), committed)
    await talk.say(committing(group, f"{talk.topic}-none", 5), committed)
    for topic in (talk.topic, f"{talk.topic}-none", None):
        await talk.say(fetching(group, topic), fetched)
    await _describe(talk, group)
    await _delete(talk, group)
    await talk.say(fetching(group, None), fetched)
    await _describe(talk, group)
    await _delete(talk, group)


async def _with_a_member(talk: AdminTalk, protocol: str) -> None:
    group = f"{talk.topic}-group"
    await talk.there(talk.topic)
    with talk.members(group, talk.topic, protocol):
        await _describe(talk, group)
        await talk.say(committing(group, talk.topic, 4), committed)
        await _delete(talk, group)


@case
async def groups_with_a_member(talk: AdminTalk) -> None:
    await _with_a_member(talk, "classic")


@case
async def groups_with_a_newer_member(talk: AdminTalk) -> None:
    await _with_a_member(talk, "consumer")


# ---- transactions


@case
async def transactions(talk: AdminTalk) -> None:
    await talk.there(talk.topic)
    raw = await Raw(talk.cluster, talk.topic).open()
    name = f"{talk.topic}-writer"
    who = await raw.init(name)

    def states(answer: Any) -> Any:
        return [
            (one.transactional_id, one.producer_id == who.id, one.transaction_state)
            for one in answer.transaction_states
            if talk.mine(one.transactional_id)
        ]

    def producers(answer: Any) -> Any:
        return [
            (
                part.error_code,
                [
                    (one.producer_id == who.id, one.producer_epoch == who.epoch, one.current_txn_start_offset)
                    for one in part.active_producers
                ],
            )
            for topic in answer.topics
            for part in topic.partitions
        ]

    async def look() -> None:
        kind = admin.DescribeProducersRequest.TopicRequest
        for filters in ([], [who.id], [who.id + 77_777]):
            await talk.say(admin.ListTransactionsRequest(state_filters=[], producer_id_filters=filters), states)
        for topic, partition in ((talk.topic, 0), (talk.topic, 7), (f"{talk.topic}-none", 0)):
            request = admin.DescribeProducersRequest(topics=[kind(name=topic, partition_indexes=[partition])])
            await talk.say(request, producers)

    await look()
    await raw.produce(who, 0, 2, transactional_id=name, version=2)
    await look()
    who = await raw.abort(name, who, 2)
    await raw.settled(name)
    await look()
