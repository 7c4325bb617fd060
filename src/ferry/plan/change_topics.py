"""Change topics on the target as a plan proposes: create, grow, configure, delete."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ferry.errors import FerryError, Unreachable
from ferry.kafka.admin.topic_settings import alter_settings
from ferry.kafka.admin.topics import (
    NewTopic,
    NotPermitted,
    PolicyViolated,
    QuotaExceeded,
    create_topics,
    delete_topics,
    grow_topics,
)
from ferry.kafka.connect.cluster import Cluster, TopicInfo
from ferry.messages.catalogue import caused
from ferry.messages.refusals import refused, refused_as
from ferry.model import ChangeKind, Refusal, RefusalKind, Sentence, TopicChange

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0

_KINDS: Mapping[type[FerryError], RefusalKind] = {
    NotPermitted: RefusalKind.NOT_AUTHORIZED,
    PolicyViolated: RefusalKind.POLICY,
    QuotaExceeded: RefusalKind.QUOTA,
    Unreachable: RefusalKind.NO_LEADER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The outcome of topic changes. Refusals are keyed by source topic."""

    done: tuple[TopicChange, ...] = ()
    failed: Mapping[str, Refusal] = field(default_factory=dict)
    """Source topics whose target topic could not be created or grown, or is not complete: they are not copied."""
    unset: Mapping[str, Refusal] = field(default_factory=dict)
    """Topics whose settings or deletion were refused: they stay as they are, are still copied, and are reported."""
    notes: tuple[str, ...] = ()


LastLook = Callable[[], Awaitable[None]]
"""Raises Superseded when a newer run has opened the lane. It is called right before topics are changed."""


async def change_topics(target: Cluster, changes: Collection[TopicChange], last_look: LastLook) -> Changed:
    """Carry out the changes, and wait until every partition of created and grown topics has a leader.

    A topic that fails does not stop the others. Raises what `last_look` raises: then nothing more is changed. Raises
    Unreachable when no controller answers.
    """
    larger = [*_of(changes, ChangeKind.CREATE), *_of(changes, ChangeKind.GROW)]
    if larger:
        await last_look()
    creating = [
        NewTopic(
            name=change.topic,
            partitions=change.partitions,
            replication_factor=change.replication_factor,
            configs={name: value for name, value in change.configs if value is not None},
        )
        for change in _of(changes, ChangeKind.CREATE)
    ]
    growing = {change.topic: change.partitions for change in _of(changes, ChangeKind.GROW)}
    errors = await create_topics(target, creating) | await grow_topics(target, growing)
    failed = {
        change.source_topic: _refusal(change, errors[change.topic]) for change in larger if change.topic in errors
    }
    made = {change.topic: change for change in larger if change.source_topic not in failed}
    for change in await _incomplete(target, made):
        code = "target.hidden" if change.topic in target.denied else "target.not-complete"
        failed[change.source_topic] = refused(code, change.source_topic, target=change.topic, cluster=target.alias)
    unset, notes = await _rest(target, changes, last_look)
    later = ChangeKind.CONFIGURE, ChangeKind.DELETE
    return Changed(
        done=tuple(
            change
            for change in changes
            if change.source_topic not in failed
            and not (change.kind in later and (change.source_topic in unset or change.topic in notes))
        ),
        failed=failed,
        unset=unset,
        notes=tuple(notes.values()),
    )


async def _rest(
    target: Cluster, changes: Collection[TopicChange], last_look: LastLook
) -> tuple[dict[str, Refusal], dict[str, Sentence]]:
    """Configure and delete topics. Each begins with `last_look`, because a newer run may have begun meanwhile.

    Return the refusals by source topic, and notes by topic where this login lacks ALTER_CONFIGS.
    """
    configuring = {change.topic: change for change in _of(changes, ChangeKind.CONFIGURE)}
    deleting = {change.topic: change for change in _of(changes, ChangeKind.DELETE)}
    if configuring:
        await last_look()
    errors: dict[str, FerryError] = {
        **await alter_settings(target, {name: change.configs for name, change in configuring.items()})
    }
    if deleting:
        await last_look()
    ids = {name: target.topics[name].topic_id for name in deleting if name in target.topics}
    errors |= await delete_topics(target, ids)
    unset, notes = {}, {}
    for name, error in errors.items():
        change = configuring.get(name) or deleting[name]
        if isinstance(error, NotPermitted) and name in configuring:
            notes[name] = caused("topic.settings-refused", error)
        else:
            unset[change.source_topic] = _refusal(change, error)
    return unset, notes


def _of(changes: Iterable[TopicChange], kind: ChangeKind) -> list[TopicChange]:
    return [change for change in changes if change.kind is kind]


async def _incomplete(target: Cluster, made: Mapping[str, TopicChange]) -> list[TopicChange]:
    """Wait until all partitions have a leader.

    Return the changes that are still incomplete when no topic has become complete for `patience_s` of the cluster.
    Topics that this login may not see are not waited for.
    """
    missing, pause = dict(made), FIRST_PAUSE_S
    hidden: list[TopicChange] = []
    until = time.monotonic() + target.patience_s
    while missing:
        infos = await target.refresh(missing)
        complete = [name for name, change in missing.items() if _is_complete(infos.get(name), change.partitions)]
        if complete:
            until = time.monotonic() + target.patience_s
        elif time.monotonic() > until:
            break
        hidden += [change for name, change in missing.items() if name in target.denied]
        for name in {*complete, *(missing.keys() & target.denied)}:
            del missing[name]
        if missing:
            await target.loop.sleep(pause)
            pause = min(LONGEST_PAUSE_S, pause * 2)
    return [*hidden, *missing.values()]


def _is_complete(info: TopicInfo | None, partitions: int) -> bool:
    return (
        info is not None
        and len(info.partitions) >= partitions
        and all(part.leader >= 0 for part in info.partitions.values())
    )


def _refusal(change: TopicChange, error: FerryError) -> Refusal:
    kind = _KINDS.get(type(error), RefusalKind.INVALID_CONFIG)
    return refused_as(error, change.source_topic, kind=kind)
