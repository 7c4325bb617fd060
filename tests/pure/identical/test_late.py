"""What may arrive after a switch: which late batches the broker compares, and until when the others may come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from ferry.errors import BadInput, Unreachable
from ferry.features.identical.acts.late import look_late
from ferry.features.identical.rules import late
from ferry.features.identical.rules.late import Sender, lateness_of, reaching, senders, until_ms
from ferry.features.identical.rules.planned import LEASE_MS, MARGIN_MS
from ferry.features.switch.acts.opposite import Opposite
from ferry.features.switch.rules.partition_state import PartitionState, short_copies, with_records
from ferry.kafka.connect import codes
from ferry.ledger.codec import encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.rebuilt import Rebuild, rebuild_record
from ferry.ledger.runs import busy_runs
from ferry.model import Fate, Flow, LedgerRecord, Record, TopicPartition
from ferry.model.switch import Switch, Verb
from ferry.protocol.names import ledger_topic
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.identical import world
from tests.pure.identical.marking import Marking
from tests.pure.identical.offset_writer import OffsetWriter
from tests.pure.identical.test_damage import foreign
from tests.pure.identical.test_slot import BROKER, Identical
from tests.pure.identical.world import LATENESS, LEASE, Task, World
from tests.pure.identical.writer import LANE as PRODUCER
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import at_work, place
from tests.pure.scripted.wire import scripted

BATCH = 3
"""Records of a batch of the model."""
IDLE_MS = 600_000


# What a late batch does after clients have written, in the model.


def late_batch(shape: str) -> World:
    """A run has died, and its first batch is late."""
    with patch.object(world, "Writer", OffsetWriter):
        it = World(shape)
        it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    return it


def taken_over(it: World) -> Task:
    """Another run copies all."""
    with patch.object(world, "Writer", OffsetWriter):
        task = it.start()
        it.finish(task)
    return task


def clients_then(it: World) -> int:
    """A client writes, then the late batch arrives; how many records of the lane are after the client's."""
    foreign(it)
    clients = it.target.end
    it.deliver_late(0)
    return sum(entry.producer == PRODUCER for entry in it.target.entries[clients:])


def test_a_late_batch_at_the_end_lands_after_the_records_of_clients() -> None:
    """Also if a run after it has ended well that copied nothing: what counts is up to where any run planned."""
    it = late_batch("r" * 2 * BATCH)
    assert clients_then(it) == BATCH
    assert reaching([Sender(after=None, ends={place(): 2 * BATCH}), Sender(after=None, ends={place(): 0})], place(), 0)


def test_a_late_batch_before_the_end_is_refused_after_the_records_of_clients() -> None:
    it = late_batch("r" * 2 * BATCH)
    taken_over(it)
    assert clients_then(it) == 0
    assert not reaching([Sender(after=None, ends={place(): 2 * BATCH})], place(), 2 * BATCH)


def test_a_late_batch_lands_if_the_records_of_clients_have_pushed_those_of_the_lane_out() -> None:
    it = late_batch("r" * 2 * BATCH)
    taken_over(it)
    foreign(it)
    it.target.log_start = it.target.end - 1
    it.fail_over(0)
    assert clients_then(it) == BATCH
    assert reaching([Sender(after=None, ends={place(): 2 * BATCH})], place(), -1)


def test_after_the_time_nothing_arrives() -> None:
    it = late_batch("r" * 2 * BATCH)
    it.sleep(LEASE + LATENESS + 1)
    assert clients_then(it) == 0


# Which runs count, and until when.


def test_a_run_that_planned_past_the_end_counts_until_its_successors_lease_and_the_lateness_are_over() -> None:
    runs = [Sender(after=10, ends={place(): 5}), Sender(after=20, ends={place(1): 9}), Sender(after=30, ends=None)]
    assert reaching(runs, place(), 5) == [runs[2]]
    assert reaching(runs, place(), 4) == [runs[0], runs[2]]
    stamps = {10: 1_000, 20: 2_000, 30: 3_000}
    assert until_ms(runs, stamps, 9_000, 500) == 3_000 + LEASE_MS + 500
    assert until_ms(runs[:1], stamps, 9_000, 500) == 1_000 + LEASE_MS + 500
    assert until_ms(runs[:1], {}, 9_000, 500) == 9_000 + LEASE_MS + 500, "its successor's time is not known"
    assert until_ms([replace(runs[0], after=None)], stamps, 9_000, 500) == 9_000 + LEASE_MS + 500
    assert until_ms(runs, stamps, 9_000, None) is None


@pytest.mark.parametrize(
    ("idle", "lateness"), [([1, 7], 7 + MARGIN_MS), ([1, None], None), ([-1, 7], None), ([], None)]
)
def test_the_lateness_is_known_only_if_each_broker_has_a_bound(idle: list[int | None], lateness: int | None) -> None:
    assert lateness_of(idle) == lateness


def test_the_ledger_has_the_runs_with_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Identical([[3], [1]])
    with at_work(lane):
        assert senders(lane.view(), LANE) == []
        first = lane.open("first")
        lane.copy(lane.begin(first))
        lane.produce(0, 2)
        second = lane.open("second")
        lane.open("third")
        found = senders(lane.view(), LANE)
        third = found[-1]
        assert [(one.after, dict(one.ends or {})) for one in found[:2]] == [
            (second.generation, {place(0): 3, place(1): 1}),
            (third.after or max(run.generation for run in lane.view().runs), {place(0): 5}),
        ]
        assert found[0].sources == {place(0): place(0), place(1): place(1)}
        monkeypatch.setattr(late, "KEPT_RUNS", len(found))
        assert senders(lane.view(), LANE)[0] == Sender(after=first.generation, ends=None), "it may have let some go"


@pytest.mark.parametrize("error", [LookupError, BadInput], ids=["not in the view", "not readable"])
def test_a_run_whose_plan_is_not_known_may_have_sent_anything(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise error("no plan")

    lane = Identical([[3]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        monkeypatch.setattr(late, "sealed_plan", unknown)
        assert senders(lane.view(), LANE) == [Sender(after=None, ends=None)]


def test_runs_that_only_wrote_groups_fill_the_ledger_as_those_that_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger lets a run that copied go for one that had nothing to copy and wrote groups."""
    lane = Identical([[3]])
    with at_work(lane):
        first = lane.open("first")
        lane.copy(lane.begin(first))
        idle = lane.open("idle")
        groups = b'{"v":1,"kind":"checkpoint","offsets":2}'
        written = LedgerRecord(
            offset=lane.view().end,
            key=encode(["checkpoint", LANE, "idle"]),
            value=groups,
            fate=Fate.COMMITTED,
            producer_id=-1,
        )
        view = lane.view()
        plain = [run.generation for run in busy_runs(view, LANE)]
        view = replace(view, by_key={**view.by_key, written.key.decode(): written})
        assert (plain, [run.generation for run in busy_runs(view, LANE)]) == (
            [first.generation],
            [first.generation, idle.generation],
        )
        monkeypatch.setattr(late, "KEPT_RUNS", 2)
        assert Sender(after=first.generation, ends=None) in senders(view, LANE)


def test_what_a_ledger_had_before_it_was_rebuilt_is_not_known() -> None:
    lane = Identical([[3]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        view = lane.view()
        made = rebuild_record(
            Rebuild(upto=view.end, who="ann", at_ms=1, file="f", digest="d", exported_at_ms=1, records=1, replaced=0)
        )
        record = LedgerRecord(offset=view.end, key=made.key, value=made.value, fate=Fate.COMMITTED, producer_id=-1)
        rebuilt = replace(view, by_key={**view.by_key, record.key.decode(): record})
        assert [one for one in senders(view, LANE) if one.ends is None] == []
        assert [one for one in senders(rebuilt, LANE) if one.ends is None] == [Sender(after=None, ends=None)]
        first = replace(view, by_key={**view.by_key, record.key.decode(): replace(record, offset=-1)})
        (one,) = (one for one in senders(first, LANE) if one.ends is None)
        assert one.after == min(run.generation for run in view.runs), "the first run since then"


@pytest.mark.parametrize(
    ("copied", "source_end", "known", "end", "left"),
    [
        (10, 50, "plan", 30, 20),
        (10, 50, "plan", None, 40),
        (10, 20, "receipt", 30, 0),
        (10, 50, "source", 5, 40),
    ],
)
def test_the_loss_is_counted_from_the_targets_end_where_that_is_the_lanes(
    copied: int, source_end: int, known: str, end: int | None, left: int
) -> None:
    row = PartitionState(
        source=place(),
        target=place(),
        copied_end=copied,
        source_end=source_end,
        source_known=known,
        observed_ms=1,
        target_end=40,
        target_copied=copied,
    )
    (found,) = with_records([row], {} if end is None else {place(): end})
    assert found.source_end - found.copied_end == left
    assert found.target_copied == found.copied_end == max(copied, end or 0)


@pytest.mark.parametrize(
    ("end", "settled", "start"), [(4, None, 4), (4, 10, 10), (4, 6, 6), (10, None, 10), (None, None, 10)]
)
def test_a_copy_that_ends_before_the_position_lacks_what_is_from_its_end_on(
    end: int | None, settled: int | None, start: int
) -> None:
    row = PartitionState(
        source=place(),
        target=place(),
        copied_end=10,
        source_end=10,
        source_known="source",
        observed_ms=1,
        target_end=end,
        reached_ms=1,
        has_copy=False,
    )
    ends = {} if settled is None else {place(): settled}
    short = short_copies([row], lambda _: True, ends)
    (found,) = with_records([row], ends, short)
    assert (bool(short), found.copied_end, found.reached_ms) == (start < 10, start, 0 if start < 10 else 1)
    assert short_copies([row], lambda _: False, ends) == {}


@pytest.mark.parametrize(
    ("verb", "code"), [(Verb.FAILBACK, "identical.return.written"), (Verb.FAILOVER, "identical.back.written")]
)
def test_a_ledger_with_identical_offsets_refuses_what_would_lead_back(verb: Verb, code: str) -> None:
    flow = Flow(source="a", target="b")
    switch = Switch(id="s", verb=verb, named=flow, via=flow, who="ann", approved_by="bob", approved_ms=0, at_ms=0)
    found = Opposite(written=place()).check(switch)
    assert (found.ok, getattr(found.message, "code", None)) == (False, code)


# What the target shows.


class Known:
    """The ledger as it is now."""

    def __init__(self, lane: Identical, *earlier: LedgerView) -> None:
        self.lane = lane
        self.earlier = list(earlier)
        """What a broker returns first that does not lead the ledger any more."""

    async def view(self) -> LedgerView:
        """Read it."""
        return self.earlier.pop(0) if self.earlier else self.lane.view()

    async def view_with_newest(self, lane: str, newest: int) -> LedgerView:
        """Read it."""
        return await self.view()


def looked(lane: Identical, *earlier: LedgerView, fenced: int = -1, drained: bool = False) -> Any:
    """What may arrive now. `earlier` is what readings of the ledger return before."""
    target = lane.clusters[1]
    ledger = TopicPartition(ledger_topic(FLOW.source), 0)
    known: Any = Known(lane, *earlier)
    lane.target.settings |= {"retention.bytes": "-1", "cleanup.policy": "delete"} | lane.target.settings
    return target.loop.run(lambda: look_late(target, ledger, known, LANE, fenced=fenced, drained=drained))


def test_what_is_copied_to_the_end_of_all_plans_is_safe() -> None:
    lane = Identical([[3], [1]])
    with at_work(lane):
        assert looked(lane).until == {}
        lane.copy(lane.begin(lane.open("first")))
        found = looked(lane)
        assert (found.ends, found.until, found.why) == ({place(0): 3, place(1): 1}, {}, {})


def test_a_partition_with_markers_is_as_safe_as_others() -> None:
    lane = Marking("rcac", "r")
    with at_work(lane):
        lane.run("first")
        assert (lane.until(0), lane.until(1)) == (0, None)
        found = looked(lane)
        assert (found.ends, found.until, found.why) == ({place(0): lane.same_up_to(), place(1): 1}, {}, {})
        lane.target.settings |= {"retention.bytes": str(1 << 40)} | BROKER
        found = looked(lane, drained=True)
        assert (set(found.until), found.sized, found.only_waits) == ({place(0), place(1)}, {place(0), place(1)}, True)


@pytest.mark.slow
@pytest.mark.parametrize("applied", [True, False])
def test_a_marker_that_was_not_answered_waits_unless_it_is_there(applied: bool) -> None:
    """Each hole is passed once. So at the end of all plans each marker has arrived."""
    lane = Marking("rc")
    lane.target.settings |= BROKER
    with at_work(lane):
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="WriteTxnMarkers", lost=True, applied=applied))
        lane.copy(attempt)
        assert (lane.same_up_to(), bool(lane.until())) == (2 + applied, True)
        found = looked(lane)
        assert (found.ends, set(found.until)) == ({place(): 2 + applied}, set() if applied else {place()})
        assert looked(lane, drained=True).until == {}


@pytest.mark.slow
@pytest.mark.parametrize("fresh", [0, 1])
def test_a_ledger_without_the_run_that_fenced_is_read_again(fresh: int) -> None:
    """`fresh` readings return the whole ledger before one returns the ledger as it was before the last runs."""
    lane = Identical([[3]])
    with at_work(lane):
        at_first = lane.view()
        lane.copy(lane.begin(lane.open("first")))
        before = lane.view() if fresh else at_first
        lane.produce(0, 2)
        lane.open("second")
        fencing = lane.open("third")
        earlier = [lane.view()] * fresh + [before]
        assert set(looked(lane, *earlier, fenced=fencing.generation).until) == {place()}


def test_a_ledger_that_never_shows_the_run_that_fenced_is_no_answer() -> None:
    lane = Identical([[3]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        with pytest.raises(Unreachable):
            looked(lane, fenced=lane.view().end)


def test_records_without_a_receipt_are_the_lanes_and_what_was_planned_after_them_may_come() -> None:
    lane = Identical([[2, 2, 2]])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        attempt = lane.begin(lane.open("first"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, skip=2, held=True))
        lane.start(attempt, request_bytes=1, target=elsewhere)
        lane.run_until(lambda: lane.target.log(TOPIC).end == 4)
        found = looked(lane)
        assert (found.ends, set(found.until), lane.ends()) == ({place(): 4}, {place()}, {})
        assert looked(lane, drained=True).until == {}
        lane.target.release()


def test_records_of_another_producer_are_not_the_lanes_end() -> None:
    lane = Identical([[2], [1]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        lane.target.append(TOPIC, build_batch([Record(key=b"0", value=b"77")], lane.at_ms, ProducerIdentity()))
        found = looked(lane, drained=True)
        assert (found.ends, set(found.until), set(found.why)) == ({place(1): 1}, {place(0)}, {place(0)})
        assert not found.only_waits
        lane.target.settings |= {"retention.bytes": str(1 << 40)}
        found = looked(lane, drained=True)
        assert (found.only_waits, found.sized, set(found.why)) == (False, {place(1)}, {place(0), place(1)})
        assert dict(found.sentence("b").facts)["because"] == f" ({found.why[place(0)]})", "before the size limit"


def test_a_size_limit_lets_records_of_clients_push_the_lanes_out() -> None:
    lane = Identical([[2]])
    lane.target.settings |= {"retention.bytes": str(1 << 40)}
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        found = looked(lane, drained=True)
        assert (found.until, found.only_waits) == ({place(): None}, False), "brokers may keep idle connections"
        lane.target.settings |= BROKER
        found = looked(lane, drained=True)
        assert (set(found.until), found.only_waits) == ({place()}, True)
        assert found.why[place()].code == "identical.late.size"
        codes = [found.sentence("b", begun=begun).code for begun in (False, True)]
        assert codes == ["identical.late.before", "identical.late"]


def test_without_the_brokers_time_of_the_newest_run_no_time_is_known_and_the_sentence_has_the_setting() -> None:
    lane = Identical([[2]])
    lane.target.settings |= {"retention.bytes": str(1 << 40)} | BROKER
    lane.target.stamps = False
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        found = looked(lane, drained=True)
        assert (found.until, found.only_waits) == ({place(): None}, False)
        assert found.sentence("b", begun=True).code == "identical.late.unstamped"
        lane.target.stamps = True
        lane.open("second")
        assert looked(lane, drained=True).sentence("b", begun=True).code == "identical.late"


def test_a_record_of_a_run_that_is_not_returned_is_read_again() -> None:
    lane = Identical([[2]])
    lane.target.settings |= {"retention.bytes": str(1 << 40)} | BROKER
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        # Four sizes of a fetch are tried, with the broker's time and without it.
        fault = Fault(api="Fetch", topic=ledger_topic(FLOW.source), code=codes.REQUEST_TIMED_OUT, times=8)
        lane.target.faults.append(fault)
        found = looked(lane, drained=True)
        assert (set(found.until), found.only_waits, fault.happened) == ({place()}, True, 8)


def test_a_size_limit_is_not_the_only_reason_where_a_run_planned_past_the_end() -> None:
    lane = Identical([[2]])
    lane.target.settings |= {"retention.bytes": str(1 << 40)}
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        lane.produce(0, 2)
        lane.open("second")
        found = looked(lane)
        assert (set(found.until), found.only_waits, set(found.why)) == ({place()}, False, {place()})


def test_a_batch_may_come_to_a_topic_that_is_created_again() -> None:
    lane = Identical([[2]])
    with at_work(lane):
        lane.copy(lane.begin(lane.open("first")))
        assert looked(lane).until == {}
        del lane.target.ids[TOPIC]
        del lane.target.leaders[place()]
        assert (looked(lane).ends, set(looked(lane).until)) == ({}, {place()})
