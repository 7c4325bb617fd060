"""A flow whose groups are written to the target, and clients of both sides that join, commit and look."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from ferry.dev import RunningCluster
from ferry.features.groups.acts.checkpoint import Looked
from ferry.features.groups.acts.of_run import checkpoint, sync_groups, sync_groups_unattended
from ferry.model import GroupOutcome, Why
from ferry.plan.options import RunOptions
from ferry.run.micro_run import local_origin
from tests.harness import Lab, create_topic, delete_topic, read_topic, wait_until
from tests.tiers import ANSWER_S


@dataclass(frozen=True)
class Groups:
    """A flow of two partitions with twenty records each, all copied; groups have names of their own."""

    lab: Lab
    topic: str
    mark: str

    @property
    def copy(self) -> str:
        return self.lab.target_topic(self.topic)

    def name(self, group: str) -> str:
        return f"{group}-{self.mark}"

    def commit(self, side: RunningCluster, group: str, offsets: Mapping[int, int], *, metadata: str = "") -> None:
        """From outside, as an operator's tool does it."""
        topic = self.topic if side is self.lab.source else self.copy
        with consumer(side, self.name(group)) as client:
            places = [Place(topic, number, offset, metadata=metadata) for number, offset in offsets.items()]
            client.commit(offsets=places, asynchronous=False)

    def at(self, group: str, side: RunningCluster | None = None) -> dict[int, int]:
        """The offsets of a group, on the target unless a side is given, as kafka-python's admin client reads it."""
        return {number: offset for number, (offset, _) in self.read(group, side).items()}

    def read(self, group: str, side: RunningCluster | None = None) -> dict[int, tuple[int, str]]:
        side = side or self.lab.target
        topic = self.topic if side is self.lab.source else self.copy
        with closing(KafkaAdminClient(bootstrap_servers=side.bootstrap)) as admin:
            name = self.name(group)
            found = admin.list_group_offsets({name: None})[name]
        return {place.partition: (at.offset, at.metadata) for place, at in found.items() if place.topic == topic}

    def sync(self, **options: bool) -> tuple[Looked, GroupOutcome | None]:
        with self.lab.runs() as runs:
            return sync_groups(runs, f"groups-{secrets.token_hex(4)}", only=None, **options)

    def synced(self, **options: bool) -> GroupOutcome:
        done = self.sync(**options)[1]
        assert done is not None
        return done

    def between(self) -> GroupOutcome:
        """What the DAG of groups does between runs."""
        with self.lab.runs() as runs:
            done = sync_groups_unattended(runs, f"groups@dag@sync@{secrets.token_hex(4)}")[1]
        assert done is not None
        return done

    def ran(self, **settings: str) -> GroupOutcome:
        """A run of the flow, with its checkpoint step."""
        lab = replace(self.lab, settings={**self.lab.settings, **settings})
        with lab.runs() as runs:
            plan = runs.open_run(f"run-{secrets.token_hex(4)}", local_origin(), RunOptions())
            lab.copy(runs, plan)
            done = checkpoint(runs, plan.run)
        assert done is not None
        return done

    def recreate(self, side: RunningCluster, topic: str) -> None:
        """By hand."""
        delete_topic(side, topic)
        admin = AdminClient({"bootstrap.servers": side.bootstrap})
        wait_until(lambda: topic not in admin.list_topics(timeout=ANSWER_S).topics, "the end of the deleted topic")
        create_topic(side, topic, 2)

    def next_record(self, side: RunningCluster, topic: str, group: str) -> dict[int, bytes | None]:
        """What a reader of the group gets next on each partition."""
        rows = read_topic(side.bootstrap, topic)
        at = self.at(group, side)
        return {number: next(row[2] for row in rows[number] if row[0] >= offset) for number, offset in at.items()}

    def why(self, done: GroupOutcome | Looked) -> dict[str, set[Why]]:
        found: dict[str, set[Why]] = {}
        for one in done.left:
            found.setdefault(one.group.removesuffix(f"-{self.mark}"), set()).add(one.why)
        return found


@contextmanager
def consumer(side: RunningCluster, group: str, **settings: str) -> Iterator[Consumer]:
    base = {"bootstrap.servers": side.bootstrap, "group.id": group, "enable.auto.commit": "false"}
    client = Consumer({**base, "auto.offset.reset": "error", **settings})
    try:
        yield client
    finally:
        client.close()


@contextmanager
def member(side: RunningCluster, group: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """A group with a member that has its partitions."""
    settings = {"auto.offset.reset": "earliest", "group.protocol": protocol}
    with consumer(side, group, **settings) as client:
        client.subscribe([topic])

        def has_partitions() -> bool:
            client.poll(0.1)
            return bool(client.assignment())

        wait_until(has_partitions, "partitions for the member")
        yield client


def end(side: RunningCluster, topic: str, partition: int) -> int:
    """Where a read_committed reader ends now."""
    with consumer(side, "nobody") as client:
        return int(client.get_watermark_offsets(Place(topic, partition), timeout=ANSWER_S)[1])
