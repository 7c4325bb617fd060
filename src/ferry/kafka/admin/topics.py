"""Topics on a cluster: create, grow, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTransactionsRequest,
)

from ferry.errors import FerryError, Refused, Retryable, Unreachable
from ferry.kafka.admin.portions import OverQuota, settle
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import TRANSACTION, Cluster

_REQUEST_PARTITIONS = 1_000
_TIMEOUT_MS = 20_000
"""How long a controller may try. The client's `request.timeout.ms` is longer, so that the answer names the topic."""
_LATE = frozenset({codes.REQUEST_TIMED_OUT, codes.NOT_ENOUGH_REPLICAS})


class NotPermitted(Refused):
    """The cluster's ACLs forbid it: an ALLOW must be added."""


class TooFewBrokers(Refused):
    """The cluster has fewer brokers than the replicas that were asked for."""


class PolicyViolated(Refused):
    """A policy of the cluster (`create.topic.policy.class.name`, `alter.config.policy.class.name`) forbids it."""


class NotYet(Retryable):
    """The controller answers for one topic that it has not changed it so far."""


class QuotaExceeded(Refused):
    """This login's quota on changes (`controller_mutation_rate`, KIP-599) was used up for the whole time."""


_KINDS: Mapping[int, type[FerryError]] = {
    codes.INVALID_REPLICATION_FACTOR: TooFewBrokers,
    codes.POLICY_VIOLATION: PolicyViolated,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create; a replication factor of -1 is the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


async def create_topic(cluster: Cluster, topic: NewTopic) -> None:
    """Create a topic; one that exists already is not an error.

    Raises NotPermitted, TooFewBrokers, PolicyViolated and QuotaExceeded, Refused with the broker's reason otherwise,
    and Unreachable.
    """
    for error in (await create_topics(cluster, [topic])).values():
        raise error


async def create_topics(cluster: Cluster, topics: Iterable[NewTopic]) -> dict[str, FerryError]:
    """Create topics, many in a request; return by name the error of each topic that was not created.

    The errors are those that `create_topic` raises: Unreachable for a topic that the controller did not create in time.
    Raises Unreachable when no controller answers.
    """
    kind = CreateTopicsRequest.CreatableTopic
    entries = {
        topic.name: kind(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            assignments=[],
            configs=[
                kind.CreatableTopicConfig(name=name, value=value) for name, value in sorted(topic.configs.items())
            ],
        )
        for topic in topics
    }

    async def ask(part: list[Any]) -> list[tuple[str, Any]]:
        request = CreateTopicsRequest(topics=part, timeout_ms=_TIMEOUT_MS, validate_only=False)
        return [(outcome.name, outcome) for outcome in (await cluster.ask(request)).topics]

    def judge(name: str, outcome: Any) -> None:
        if outcome.error_code not in (codes.NONE, codes.TOPIC_ALREADY_EXISTS):
            raise_for(f"topic {name} on cluster {cluster.alias} was not created", outcome, "CREATE")

    return await _in_portions(cluster, entries, lambda entry: max(1, entry.num_partitions), ask, judge)


async def grow_topics(cluster: Cluster, counts: Mapping[str, int]) -> dict[str, FerryError]:
    """Raise topics to a number of partitions, many in a request; return by name the errors of those that were not.

    Errors are as those of `create_topics`.
    """
    kind = CreatePartitionsRequest.CreatePartitionsTopic
    entries = {name: kind(name=name, count=count, assignments=None) for name, count in counts.items()}
    grown: set[str] = set()
    """Topics that have so many: an earlier try grew them, or another client."""

    async def ask(part: list[Any]) -> list[tuple[str, Any]]:
        request = CreatePartitionsRequest(topics=part, timeout_ms=_TIMEOUT_MS, validate_only=False)
        outcomes = (await cluster.ask(request)).results
        failed = [outcome.name for outcome in outcomes if outcome.error_code]
        there = await cluster.refresh(failed) if failed else {}
        grown.update(name for name, info in there.items() if len(info.partitions) >= counts[name])
        return [(outcome.name, outcome) for outcome in outcomes]

    def judge(name: str, outcome: Any) -> None:
        if outcome.error_code and name not in grown:
            what = f"topic {name} on cluster {cluster.alias} was not grown to {counts[name]} partitions"
            raise_for(what, outcome, "ALTER")

    return await _in_portions(cluster, entries, lambda entry: entry.count, ask, judge)


async def _in_portions(
    cluster: Cluster,
    entries: Mapping[str, Any],
    partitions: Callable[[Any], int],
    ask: Callable[[list[Any]], Awaitable[list[tuple[str, Any]]]],
    judge: Callable[[str, Any], None],
) -> dict[str, FerryError]:
    """Ask for entries by name, some partitions at a time: a controller refuses a request for too many.

    A topic that is not changed in time fails alone. Raises Unreachable when topics got no answer of their own.
    """
    refused: dict[str, Refused] = {}
    failed: dict[str, FerryError] = {}
    answers: dict[str, Retryable] = {}
    left = list(entries)
    while left:
        sums = accumulate(partitions(entries[name]) for name in left)
        portion = [name for name, size in zip(left, sums, strict=True) if size <= _REQUEST_PARTITIONS] or left[:1]
        left = left[len(portion) :]
        waiting = {name: entries[name] for name in portion}
        try:
            await settle(cluster, waiting, refused, ask, judge, answers)
        except Unreachable:
            if not all(isinstance(answers.get(name), (NotYet, OverQuota)) for name in waiting):
                raise
            late = {name: error for name in waiting if isinstance(error := answers[name], NotYet)}
            failed |= {name: cluster.given_up(error) for name, error in late.items()}
            over = [name for name in waiting if name not in late]
            if over:
                # What is left would wait as long without effect, and everything else would wait for it.
                cluster.drop_throttled()
                failed |= {name: _over_quota(cluster, name) for name in (*over, *left)}
                break
    return {**refused, **failed}


def _over_quota(cluster: Cluster, topic: str) -> QuotaExceeded:
    return QuotaExceeded(
        f"topic {topic} on cluster {cluster.alias} was not changed, because this login has used up its quota for that "
        "(controller_mutation_rate): raise the quota; the next run continues"
    )


async def delete_topics(cluster: Cluster, topics: Mapping[str, Any]) -> dict[str, FerryError]:
    """Delete topics by their ids; return by name the error of each topic that is left, as `create_topics` does.

    A topic that was created again under its name has another id, so it stays. One that is gone already is not an error.
    `topics` holds the ids (UUID) by name.
    """
    kind = DeleteTopicsRequest.DeleteTopicState
    entries = {name: kind(name=None, topic_id=topic_id) for name, topic_id in topics.items()}
    names = {topic_id: name for name, topic_id in topics.items()}

    async def ask(part: list[Any]) -> list[tuple[str, Any]]:
        request = DeleteTopicsRequest(topics=part, topic_names=[], timeout_ms=_TIMEOUT_MS, min_version=6)
        outcomes = (await cluster.ask(request)).responses
        return [(names[outcome.topic_id], outcome) for outcome in outcomes if outcome.topic_id in names]

    def judge(name: str, outcome: Any) -> None:
        if outcome.error_code not in (codes.NONE, codes.UNKNOWN_TOPIC_ID, codes.UNKNOWN_TOPIC_OR_PARTITION):
            raise_for(f"topic {name} on cluster {cluster.alias} was not deleted", outcome, "DELETE")

    return await _in_portions(cluster, entries, lambda _: 1, ask, judge)


def raise_for(what: str, outcome: Any, operation: str) -> None:
    """Raise the error of a controller's answer, by the caller's next move.

    `operation` is what the login needs for it.
    """
    code, said = outcome.error_code, (outcome.error_message or "").rstrip(" .")
    if code in codes.UNAUTHORIZED:
        raise NotPermitted(f"{what}, {codes.describe(code)}: grant {operation} on it")
    if code == codes.THROTTLING_QUOTA_EXCEEDED:
        raise OverQuota(what)
    kind: type[FerryError] = Retryable if code == codes.NOT_CONTROLLER else NotYet if code in _LATE else Refused
    raise _KINDS.get(code, kind)(f"{what}: {codes.advised(code, said)}")


async def transaction_state(cluster: Cluster, transactional_id: str) -> str:
    """Return the state and the partitions of a transactional id, for an error message.

    It names what could not be learned.
    """
    try:
        node = await cluster.coordinator(TRANSACTION, transactional_id)
        answer = await cluster.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]), node)
        state = answer.transaction_states[0]
    except FerryError as error:
        return f"state unknown ({error})"
    if state.error_code:
        return f"state unknown ({codes.describe(state.error_code)})"
    places = [f"{topic.topic}-{part}" for topic in state.topics for part in topic.partitions]
    return f"state {state.transaction_state}, partitions {', '.join(places) or 'none'}"
