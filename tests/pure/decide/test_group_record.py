"""A run's record of its groups: whom a failover has to know of is named, however many partitions others have."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ferry.features.switch.rules.moving import Moving, groups_not_known, moved_sentence
from ferry.ledger.checkpoint_codec import SHOWN, checkpoint_record, newest_outcome
from ferry.ledger.ledger import fold
from ferry.model import Fate, Flow, GroupOutcome, LedgerRecord, Left, Record, TopicPartition, Why
from tests.golden import Golden

FLOW = Flow.parse("primary->backup")
LANE = "live"


def outcome(left: Iterable[Left]) -> GroupOutcome:
    """What became of the groups, all of which were left."""
    return GroupOutcome(groups=0, offsets=0, unchanged=0, left=tuple(left), inexact={})


def moved(group: str, partitions: int, why: Why = Why.MOVED) -> list[Left]:
    """A group that somebody moved in so many partitions."""
    places = [TopicPartition("primary.orders", number) for number in range(partitions)]
    return [Left(group=group, place=place, why=why, message=f"{group} stands elsewhere") for place in places]


def kept(record: Record) -> GroupOutcome:
    """What the ledger knows by the record."""
    written = LedgerRecord(offset=0, key=record.key, value=record.value, fate=Fate.COMMITTED, producer_id=1)
    found = newest_outcome(fold([written], 1), LANE)
    assert found is not None
    return found


def test_each_group_is_named_before_more_partitions_of_another_one() -> None:
    left = [*moved("billing", 1_000), *moved("fraud", 1_000), *moved("lagger", 2), *moved("audit", 3, Why.FAILED)]
    found = kept(checkpoint_record(LANE, "r-1", outcome(left)))
    assert {one.group for one in found.left} == {"billing", "fraud", "lagger", "audit"}
    assert found.left[0].why is Why.FAILED
    assert len(found.left) + found.more == len(left)
    assert found.unnamed == 0
    assert groups_not_known(FLOW, found, unsynced="") is None


def test_groups_that_are_not_named_are_counted_and_known_to_be_missing(golden: Golden) -> None:
    left = [one for number in range(SHOWN + 7) for one in moved(f"g-{number:03}", 2)]
    found = kept(checkpoint_record(LANE, "r-1", outcome(left)))
    assert (len(found.left), found.unnamed) == (SHOWN, 7)
    said = groups_not_known(FLOW, found, unsynced="")
    assert said is not None
    golden(said)
    assert "--leave-unknown" in said


def test_what_needs_no_checkpoint_is_not_missing() -> None:
    left = [one for number in range(SHOWN + 7) for one in moved(f"g-{number:03}", 2, Why.NOT_COPIED)]
    found = kept(checkpoint_record(LANE, "r-1", outcome(left)))
    assert found.unnamed == 0
    assert groups_not_known(FLOW, found, unsynced="") is None


def test_of_a_record_by_an_earlier_version_all_that_it_counts_may_be_missing() -> None:
    record = checkpoint_record(LANE, "r-1", outcome(moved("billing", 1_000)))
    body = json.loads(record.value or b"")
    del body["unnamed"]
    found = kept(Record(key=record.key, value=json.dumps(body).encode()))
    assert found.unnamed == 1_000 - SHOWN


def test_a_ledger_in_which_no_run_told_its_groups_knows_none(golden: Golden) -> None:
    said = groups_not_known(FLOW, None, unsynced="")
    assert said is not None
    golden(said)


def test_a_flow_that_writes_no_offsets_of_groups_knows_none_even_if_it_did_before(golden: Golden) -> None:
    for last in (None, outcome([])):
        said = groups_not_known(FLOW, last, unsynced="sync.group.offsets.enabled is false")
        assert said is not None
        golden(said)
        assert "sync.group.offsets.enabled is false" in said
        assert "--leave-unknown" in said
        nothing = moved_sentence([], "primary", source_answers=False, unknown=said)
        assert said in nothing
        assert "0 groups moved" not in nothing
        some = moved_sentence([Moving(group="billing")], "primary", source_answers=False, unknown=said)
        assert said in some
        assert "1 group moved" in some
        golden(nothing, "nothing moved")
        golden(some, "one moved")


def test_brokers_that_did_not_list_their_groups_are_named(golden: Golden) -> None:
    silent = Left(group="", place=None, why=Why.FAILED, message="groups of broker 3 of primary are not known")
    said = groups_not_known(FLOW, kept(checkpoint_record(LANE, "r-1", outcome([silent]))), unsynced="")
    assert said is not None
    golden(said)


def test_a_failover_that_leaves_unknown_groups_names_no_remedy(golden: Golden) -> None:
    asked = groups_not_known(FLOW, None, unsynced="")
    taken = groups_not_known(FLOW, None, unsynced="", left=True)
    assert asked is not None
    assert taken is not None
    assert ("--leave-unknown" in asked, "--leave-unknown" in taken) == (True, False)
    golden(taken)
