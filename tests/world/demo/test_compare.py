"""The demo's comparison sees what a broken copy would leave: missing, doubled, reordered and changed records."""

from __future__ import annotations

import re

import pytest

from ferry.dev import RunningCluster
from ferry.plan.lag import measure_lag
from ferry_airflow.demo.compare import Digests, compare, differences, digest
from tests.golden import Golden
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.tiers import ANSWER_S

COPIES = {"orders": "a.orders"}
TIME = (1, 1_700_000_000_000)


def rows(*numbers: int) -> list[bytes]:
    """Digests of numbered records."""
    return [digest(b"key", b"%d" % number, [("number", b"%d" % number)], TIME) for number in numbers]


def sides(copied: Digests) -> tuple[str, ...]:
    """What is found wrong with a copy of two partitions of three records."""
    wanted = {("orders", 0): rows(0, 1, 2), ("orders", 1): rows(3, 4, 5)}
    (found,) = differences(wanted, copied, COPIES)
    assert (found.topic, found.partitions, found.records) == ("orders", 2, 6)
    return found.differences


def test_equal_sides_have_no_difference() -> None:
    assert sides({("a.orders", 0): rows(0, 1, 2), ("a.orders", 1): rows(3, 4, 5)}) == ()


@pytest.mark.parametrize(
    "numbers",
    [(0, 1), (), (0, 2), (0, 1, 2, 2), (0, 1, 2, 0, 1, 2), (0, 0, 1, 2), (0, 2, 1), (0, 1, 7)],
    ids=[
        "the last one lacks",
        "all of them lack",
        "the second one lacks",
        "one more",
        "all of them once more",
        "the first one twice",
        "another order",
        "another record",
    ],
)
def test_a_planted_difference_is_named(numbers: tuple[int, ...], golden: Golden) -> None:
    (said,) = sides({("a.orders", 0): rows(*numbers), ("a.orders", 1): rows(3, 4, 5)})
    assert said.startswith("orders-0: ")
    golden(said)


def test_a_partition_of_one_side_alone_is_named(golden: Golden) -> None:
    both = {("a.orders", 0): rows(0, 1, 2), ("a.orders", 1): rows(3, 4, 5)}
    more = both | {("a.orders", 2): rows(9)}
    golden("\n".join(sides(more)), "of the target")
    del both["a.orders", 1]
    golden("\n".join(sides(both)), "of the source")
    assert len(sides({})) == 2


def test_a_topic_that_is_not_there_is_no_equal_topic(golden: Golden) -> None:
    (found,) = differences({}, {}, COPIES)
    golden("\n".join(found.differences))


@pytest.mark.parametrize(
    "changed",
    [
        digest(None, b"value", [("name", b"x")], TIME),
        digest(b"", b"value", [("name", b"x")], TIME),
        digest(b"key", None, [("name", b"x")], TIME),
        digest(b"key", b"other", [("name", b"x")], TIME),
        digest(b"keyv", b"alue", [("name", b"x")], TIME),
        digest(b"key", b"value", [("name", b"y")], TIME),
        digest(b"key", b"value", [("name", None)], TIME),
        digest(b"key", b"value", [("other", b"x")], TIME),
        digest(b"key", b"value", [("name", b"x"), ("name", b"x")], TIME),
        digest(b"key", b"value", [], TIME),
        digest(b"key", b"value", None, TIME),
        digest(b"key", b"value", [("name", b"x")], (2, TIME[1])),
        digest(b"key", b"value", [("name", b"x")], (1, TIME[1] + 1)),
    ],
)
def test_every_part_of_a_record_counts(changed: bytes) -> None:
    assert changed != digest(b"key", b"value", [("name", b"x")], TIME)


def test_both_sides_are_read_to_their_ends(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster), topic, numbered(200, partitions=2))
    aborted = producer(source_cluster, transactional_id=topic)
    aborted.init_transactions(ANSWER_S)
    aborted.begin_transaction()
    send(aborted, topic, numbered(10, partitions=2, start=900))
    aborted.abort_transaction(ANSWER_S)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    copy = lab.target_topic(topic)

    def found() -> tuple[int, list[tuple[str, ...]]]:
        """How many records were compared, and each difference: the partition and the numbers in its sentence."""
        (compared,) = compare(source_cluster.bootstrap, target_cluster.bootstrap, {topic: copy})
        told = [said.partition(": ") for said in compared.differences]
        return compared.records, [(place, *re.findall(r"\d+", why)) for place, _, why in told]

    assert found() == (200, [(f"{topic}-0", "100"), (f"{topic}-1", "100")])
    lab.micro_run()
    assert found() == (200, [])
    assert [part.records for part in measure_lag(lab.flow)] == [0, 0], "nothing is left, though an aborted tail is"

    # What no receipt knows of is seen all the same: at the end of the target, and of the source.
    send(producer(target_cluster), copy, numbered(1))
    assert found() == (200, [(f"{topic}-0", "1", "100")])
    send(producer(source_cluster), topic, numbered(2, partitions=2)[1:])
    assert found() == (201, [(f"{topic}-0", "1", "100"), (f"{topic}-1", "1", "101")])
