"""Changes to topics, as commands and task logs tell them."""

from dataclasses import replace

from ferry.model import ChangeKind, TopicChange
from ferry.plan.rules.change_sentences import deeds, differences, proposals, summary
from tests.golden import Golden

CREATE = TopicChange(
    kind=ChangeKind.CREATE,
    topic="a.orders",
    source_topic="orders",
    partitions=2,
    replication_factor=1,
    configs=(("retention.ms", "5"),),
)
DEFAULT = TopicChange(
    kind=ChangeKind.CREATE, topic="a.users", source_topic="users", partitions=1, replication_factor=-1
)
GROW = TopicChange(kind=ChangeKind.GROW, topic="a.orders", source_topic="orders", partitions=3, replication_factor=0)
CONFIGURE = TopicChange(
    kind=ChangeKind.CONFIGURE,
    topic="a.orders",
    source_topic="orders",
    partitions=3,
    replication_factor=0,
    configs=(("retention.ms", "6"), ("segment.ms", None)),
    was=(("segment.ms", "9"),),
)
DELETE = TopicChange(kind=ChangeKind.DELETE, topic="a.old", source_topic="old", partitions=1, replication_factor=0)
ALL = (CREATE, DEFAULT, GROW, CONFIGURE, DELETE)


def test_what_a_run_would_do_has_a_line_for_each_topic_and_setting(golden: Golden) -> None:
    golden("\n".join(proposals(ALL)))


def test_what_a_run_did_is_said_likewise(golden: Golden) -> None:
    golden("\n".join(deeds(ALL)))
    assert summary(ALL) == deeds(ALL)
    assert summary(()) == []


def test_many_deeds_are_a_line_of_names_for_each_kind(golden: Golden) -> None:
    created = [replace(CREATE, topic=f"a.t{number:02}") for number in range(30)]
    found = summary([*created, GROW])
    assert [(one.count("a."), "25 more" in one) for one in found] == [(5, True), (1, False)]
    golden("\n".join(found))


def test_drift_names_both_values(golden: Golden) -> None:
    golden("\n".join(differences([CONFIGURE])))
