"""Which broker to ask for a source partition: its leader, or the near replica that the leader named (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from ferry.kafka.connect.cluster import Cluster
from ferry.messages.catalogue import sentence
from ferry.model import RefusalKind, Sentence, TopicPartition
from ferry.model.topic_id import topic_id_of

NO_LEADER = -1


class Routes:
    """The broker of each partition, by the metadata that the cluster remembers and by what leaders answered since."""

    def __init__(self, cluster: Cluster, topic_ids: Mapping[str, str]) -> None:
        """`topic_ids` must be the plan's; it may be empty."""
        self._cluster = cluster
        self._topic_ids = {topic: text for topic, text in topic_ids.items() if text}
        self._gone: set[str] = set()
        self._nearer: dict[TopicPartition, int] = {}
        self._leader_only: set[TopicPartition] = set()  # those whose nearer replica has failed

    def begin(self, places: Iterable[TopicPartition]) -> None:
        """Take the ids of the metadata for topics of which the plan has no id."""
        for topic in {place.topic for place in places} - self._topic_ids.keys():
            info = self._cluster.topics.get(topic)
            if info is not None and info.id_text:
                self._topic_ids[topic] = info.id_text

    def ids(self, places: Iterable[TopicPartition]) -> dict[str, UUID | None]:
        """Return the ids of the topics to fetch, by name; never those of later topics of the same name.

        None where the brokers have no topic ids.
        """
        texts = {place.topic: self._topic_ids.get(place.topic, "") for place in places}
        return {topic: topic_id_of(text) if text else None for topic, text in texts.items()}

    def lost(self, place: TopicPartition) -> tuple[RefusalKind, Sentence] | None:
        """Return why a partition is not the plan's any more; None when it is.

        A topic without an id that was seen to be gone stays gone: a later topic of its name is another one.
        """
        info = self._cluster.topics.get(place.topic)
        where = {"topic": place.topic, "cluster": self._cluster.alias}
        planned = self._topic_ids.get(place.topic, "")
        if info is None and place.topic in self._cluster.denied:
            return RefusalKind.NOT_AUTHORIZED, sentence("source.hidden", **where)
        if info is None and not planned:
            self._gone.add(place.topic)
        if planned and info is not None and info.id_text and planned != info.id_text:
            return RefusalKind.TOPIC_RECREATED, sentence("source.recreated.since-plan", **where)
        if info is None or place.partition not in info.partitions or place.topic in self._gone:
            return RefusalKind.TOPIC_GONE, sentence("source.gone.since-plan", **where)
        return None

    def node(self, place: TopicPartition) -> int:
        """Return the broker to ask; NO_LEADER when there is none now, or no such partition."""
        info = self._cluster.topics.get(place.topic)
        partition = info.partitions.get(place.partition) if info is not None else None
        if partition is None or partition.leader == NO_LEADER:
            return NO_LEADER
        return self._nearer.get(place, partition.leader)

    def moved(self, place: TopicPartition, node: int) -> bool:
        """Return whether another broker than `node` must be asked now, or the partition is not the plan's any more."""
        return self.node(place) != node or self.lost(place) is not None

    def prefer(self, named: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Note the replicas that leaders named; return the partitions for which they are new."""
        news = {
            place: node
            for place, node in named.items()
            if place not in self._leader_only and self._nearer.get(place) != node
        }
        self._nearer |= news
        return list(news)

    def is_nearer(self, place: TopicPartition) -> bool:
        """Return whether a replica that the leader named is asked."""
        return place in self._nearer

    def back_to_leader(self, places: Iterable[TopicPartition]) -> None:
        """Ask the leaders of these partitions from now on, because their nearer replicas have failed."""
        self._leader_only |= {place for place in places if self._nearer.pop(place, None) is not None}

    def need_leader(self, places: Iterable[TopicPartition]) -> bool:
        """Return whether the leader has to answer itself for one of these, instead of naming a replica again."""
        return not self._leader_only.isdisjoint(places)
