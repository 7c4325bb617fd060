"""Each clause of the writer by itself, with the last look switched off where that would hide that the clause is gone.

What a clause costs is asserted, too: a chunk that had to be written again is a retry.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from unittest.mock import patch

import pytest

from ferry.copy import kafka_slot
from ferry.copy.produce_queue import IN_FLIGHT
from ferry.errors import Fenced, OutcomeUnknown, Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.model import Record, RefusalKind
from ferry.protocol import slot
from ferry.protocol.names import DRIVER, ledger_topic, transactional_id
from ferry.protocol.slot import MAX_FAILURES, SlotProgress
from ferry.wire.records import ProducerIdentity, build_batch
from tests.golden import Golden
from tests.pure.protocol.broker import LAST_EPOCH, Busy
from tests.pure.protocol.world import FLOW, LANE, TOPIC
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import TIMEOUT_MS, Lane, at_work, place
from tests.pure.scripted.wire import scripted
from tests.said import data_of

LEDGER = ledger_topic(FLOW.source)
SLOT = transactional_id(FLOW, LANE, 0)
ZOMBIE = "ferry.earlier-name.live.0"
ABORT_CHECK_S = 10
"""How often a coordinator looks for transactions that took too long, unless set otherwise."""
both_versions = pytest.mark.parametrize("version", [1, 2])


@contextmanager
def no_look() -> Iterator[None]:
    """The last look of step 6 finds nothing."""
    with (
        patch.object(slot, "foreign_record", lambda *_, **__: None),
    ):
        yield


def writer(brokers: Brokers, cluster: Cluster) -> Writer:
    """A writer of the cluster with a transaction of its own, and a record in it."""
    found = Writer(cluster, "somebody", TIMEOUT_MS)
    cluster.loop.run(found.initialise)
    return found


@both_versions
@pytest.mark.parametrize("code", [codes.COORDINATOR_NOT_AVAILABLE, codes.NOT_COORDINATOR, codes.REQUEST_TIMED_OUT])
def test_a_commit_that_is_answered_with_an_error_is_not_taken_for_one(version: int, code: int) -> None:
    lane = Lane([[3, 2]], version=version)
    with at_work(lane), no_look():
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="EndTxn", key=SLOT, code=code))
        result = lane.copy(attempt)
        assert (result.retries, lane.is_whole()) == (1, True)
        assert sum(one.records for one in result.receipts) == 5


@both_versions
@pytest.mark.parametrize("cause", ["timed out", "a newer writer dies", "a newer writer takes over"])
def test_a_commit_after_the_broker_has_aborted_fences(version: int, cause: str, golden: Golden) -> None:
    """The commit is called invalid (version 2) or fenced (version 1), and what was aborted is copied again."""
    lane = Lane([[3], [2]], version=version)
    with scripted(lane.source, lane.target) as (clock, clusters):
        lane.connect(clusters)
        attempt = lane.begin(lane.open("r"))

        def initialise() -> None:
            """What a newer writer sends. It is not answered while the markers of our transaction are written."""
            with suppress(Busy):
                lane.target.target.init_producer(SLOT)
            lane.target.deliver_markers()

        def abort() -> None:
            if cause == "timed out":
                assert clock.now() - begun >= TIMEOUT_MS / 1000
                lane.target.target.expire(SLOT)
                lane.target.deliver_markers()
            else:
                initialise()

        def receipts_are_written() -> None:
            """Abort after the last look, before the commit."""
            lane.target.faults.append(Fault(api="Fetch", topic=LEDGER, then=abort))

        late_s = 25.0 if cause == "timed out" else 0.0
        lane.target.faults += [
            Fault(api="Produce", topic=TOPIC, late_s=late_s),
            Fault(api="TxnOffsetCommit", late_s=late_s),
            Fault(api="Produce", topic=LEDGER, late_s=late_s, then=receipts_are_written),
            Fault(api="EndTxn", key=SLOT, then=initialise if cause == "a newer writer takes over" else None),
        ]
        begun, before = clock.now(), lane.target.count("InitProducerId")
        with pytest.raises(Retryable) as caught:
            lane.copy(attempt)
        golden(caught.value)
        said, facts = data_of(caught.value)
        assert (said, facts["slot"], facts["run"]) == ("slot.fenced", 0, "r")
        assert lane.target.count("InitProducerId") == before + 1, "a writer that was fenced does not fence another one"
        assert (lane.copied(0), lane.copied(1)) == ([], [])
        result = lane.copy(attempt)
        assert (result.retries, sum(one.records for one in result.receipts), lane.is_whole()) == (0, 5, True)


@pytest.mark.parametrize(
    "code", [codes.INVALID_PRODUCER_EPOCH, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_ID_MAPPING]
)
@pytest.mark.parametrize(
    ("api", "topic", "version"),
    [
        *(("Produce", topic, version) for topic in (TOPIC, LEDGER) for version in (1, 2)),
        *((api, None, version) for api in ("TxnOffsetCommit", "EndTxn") for version in (1, 2)),
        ("AddPartitionsToTxn", None, 1),
        ("AddOffsetsToTxn", None, 1),
    ],
)
def test_a_writer_that_was_fenced_writes_nothing_again(api: str, topic: str | None, version: int, code: int) -> None:
    lane = Lane([[3]], version=version)
    with at_work(lane), no_look():
        attempt = lane.begin(lane.open("r"))
        fault = Fault(api=api, topic=topic, code=code, times=9)
        lane.target.faults.append(fault)
        before = lane.target.count("InitProducerId")
        with pytest.raises(Retryable) as caught:
            lane.copy(attempt)
        said, facts = data_of(caught.value)
        assert (said, facts["slot"], facts["run"]) == ("slot.fenced", 0, "r")
        assert (fault.happened, lane.target.count("InitProducerId")) == (1, before + 1)
        assert lane.copied(0) == []


@both_versions
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_receipt_of_another_writer_that_is_undecided_is_waited_for(version: int, end: str) -> None:
    """A zombie of this run under another name has written receipts, and is silent until the broker may abort it.

    Then its commit arrives late, or the broker aborts its transaction.
    """
    lane = Lane([[3, 2]], version=version)
    with scripted(lane.source, lane.target, lane.target) as (clock, (source, target, elsewhere)), no_look():
        lane.connect([source, target])
        attempt = lane.begin(lane.open("r"))
        held = Fault(api="EndTxn", key=ZOMBIE, held=True)
        silent = Fault(api="InitProducerId", key=ZOMBIE, skip=1, held=True, times=1000)
        lane.target.faults += [held, silent]
        target.loop.run(elsewhere.refresh, None)
        with patch.object(kafka_slot, "transactional_id", lambda *_: ZOMBIE):
            lane.start(attempt, target=elsewhere)
        lane.run_until(lambda: held.happened > 0)
        decided_at = clock.now() + TIMEOUT_MS / 1000 + ABORT_CHECK_S

        def decide() -> None:
            if clock.now() >= decided_at and end == "commit":
                lane.target.release()
            elif clock.now() >= decided_at:
                lane.target.target.expire(ZOMBIE)
                lane.target.deliver_markers()

        lane.target.faults.append(Fault(api="Fetch", topic=LEDGER, times=1000, then=decide))
        result = lane.copy(attempt)
        assert clock.now() > decided_at, "it did not wait"
        assert result.retries > 0
        assert sum(one.records for one in result.receipts) == (0 if end == "commit" else 5)
        assert lane.is_whole()


@both_versions
def test_a_slot_that_is_stopped_after_a_failure_ends_its_transaction(version: int) -> None:
    """Its data is written and its receipts are refused when it is asked to stop."""
    lane = Lane([[3, 2]], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        failed = Fault(api="Produce", topic=LEDGER, code=codes.REQUEST_TIMED_OUT)
        lane.target.faults.append(failed)
        result = lane.copy(attempt, stop=lambda: failed.happened > 0)
        assert (result.stopped, result.receipts) == (True, [])
        assert lane.target.log(TOPIC).end > 0, "nothing was written in its transaction"
        assert lane.target.target.open_transactions() == []
        assert lane.target.log(TOPIC).writers_of_open_records() == frozenset()
        assert lane.copied(0) == []


@both_versions
def test_an_attempt_after_one_that_died_behind_its_commit_copies_nothing_twice(version: int) -> None:
    class Killed(Exception):
        pass

    def die(_: object) -> None:
        raise Killed

    lane = Lane([[3], [2, 2]], version=version)
    with at_work(lane):
        plan = lane.open("r", 2)
        for slot_number in plan.used_slots:
            with pytest.raises(Killed):
                lane.copy(lane.begin(plan), slot_number, committed=die)
        assert lane.is_whole()
        attempt = lane.begin(plan)
        for slot_number in plan.used_slots:
            result = lane.copy(attempt, slot_number)
            assert (result.receipts, result.refusals, result.retries) == ([], {}, 0)
        assert lane.is_whole()


@both_versions
def test_a_neighbours_open_transaction_does_not_hide_our_receipts(version: int) -> None:
    """The neighbour's receipts are written and not decided: the ledger's last stable offset stays before ours."""
    lane = Lane([[3], [2]], version=version)
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)), no_look():
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        plan = lane.open("r", 2)
        held = Fault(api="EndTxn", key=SLOT, held=True)
        lane.target.faults.append(held)
        lane.start(lane.begin(plan), 0, target=elsewhere)
        lane.run_until(lambda: held.happened > 0)
        undecided = lane.target.log(LEDGER).stable_end()
        done = lane.copy(lane.begin(plan), 1)
        again = lane.copy(lane.begin(plan), 1)
        assert lane.target.log(LEDGER).stable_end() == undecided, "it was decided too early"
        assert [one.records for one in done.receipts] == [2]
        assert (again.receipts, again.refusals, again.retries) == ([], {}, 0)
        assert lane.copy(lane.begin(plan), 0).refusals == {}
        assert lane.is_whole()


def test_the_ledger_is_read_past_an_open_transaction() -> None:
    lane = Lane([[1]])
    with at_work(lane):
        cluster = lane.clusters[1]
        ledger = LedgerTopic(cluster, FLOW.source)
        other = writer(lane.target, cluster)
        cluster.loop.run(ledger.append_in, other, [Record(key=b'["run","x","y"]', value=b"{}")])
        last = cluster.loop.run(ledger.append, [Record(key=b'["later"]', value=b"{}")])
        records, end = cluster.loop.run(ledger.read)
        assert (end, records[-1].offset) == (last + 1, last)
        assert lane.target.log(LEDGER).stable_end() < end


@both_versions
def test_further_chunks_cost_no_retry_and_no_new_epoch(version: int) -> None:
    lane = Lane([[3, 2, 4, 1], [2, 2]], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.asked.clear()
        result = lane.copy(attempt, chunk_bytes=1)
        chunks = lane.target.count("EndTxn")
        assert chunks > 2
        assert (result.retries, lane.is_whole()) == (0, True)
        assert lane.target.counts["InitProducerId"] == 1
        assert lane.target.counts["TxnOffsetCommit"] == chunks
        assert lane.target.counts["AddOffsetsToTxn"] == (chunks if version == 1 else 0)


def test_a_writer_whose_epochs_are_used_up_goes_on_with_the_producer_id_of_an_answer() -> None:
    lane = Lane([[3, 2, 4, 1], [2, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        coordinated = lane.target.target.txns[SLOT]
        coordinated.epoch, worn = LAST_EPOCH - 2, coordinated.producer
        lane.target.asked.clear()
        result = lane.copy(attempt, chunk_bytes=1)
        assert (result.retries, lane.is_whole()) == (0, True)
        assert lane.target.counts["InitProducerId"] == 1
        assert coordinated.producer != worn
        assert 0 < coordinated.epoch < LAST_EPOCH


def test_what_is_not_stable_at_the_source_is_waited_for() -> None:
    """A leader whose last stable offset is below the plan's end: the records come later, they are not missing."""
    lane = Lane([[3]])
    lane.source.target.init_producer("producer")
    txn = lane.source.target.txns["producer"]
    batch = build_batch(
        [Record(key=b"0", value=b"%d" % at) for at in (3, 4)],
        0,
        ProducerIdentity(producer_id=txn.producer, producer_epoch=txn.epoch, sequence=0, transactional=True),
    )
    lane.source.write_in("producer", place(), batch)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))

        def commit() -> None:
            lane.source.target.end_txn("producer", txn.epoch, committed=True)
            lane.source.deliver_markers()

        lane.source.faults.append(Fault(api="Fetch", skip=3, then=commit))
        result = lane.copy(attempt)
        assert (result.refusals, lane.copied(0)) == ({}, [0, 1, 2, 3, 4])


def test_five_requests_are_under_way_to_a_broker_at_most() -> None:
    lane = Lane([[1] * 40])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(Fault(api="Produce", topic=TOPIC, late_s=0.05, times=100))
        result = lane.copy(attempt, request_bytes=1)
        assert (result.retries, lane.is_whole()) == (0, True)
        assert lane.target.most_under_way == IN_FLIGHT == 5


@both_versions
def test_a_chunk_is_reported_when_it_is_committed_and_not_before(version: int) -> None:
    lane = Lane([[2, 2, 2]], version=version)
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        begun = lane.target.count("EndTxn")
        seen: list[tuple[int, int]] = []
        lane.target.faults.append(Fault(api="EndTxn", key=SLOT, code=codes.NOT_COORDINATOR, skip=1))
        lane.copy(
            attempt,
            chunk_bytes=1,
            committed=lambda receipts: seen.append((receipts[0].end, lane.target.count("EndTxn") - begun)),
        )
        assert [end for end, _ in seen] == [2, 4, 6]
        assert [commits for _, commits in seen] == [1, 3, 4], "the second commit did not happen"


def test_a_stranger_before_the_first_batch_refuses_the_partition() -> None:
    lane = Lane([[3], [2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        stranger = build_batch([Record(key=b"0", value=b"77")], 0, ProducerIdentity())
        lane.target.faults.append(Fault(api="DescribeConfigs", then=lambda: lane.target.append(TOPIC, stranger)))
        result = lane.copy(attempt)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.FOREIGN_WRITER}
        assert (lane.copied(0), lane.copied(1)) == ([77], [0, 1])


def test_a_target_topic_that_was_created_again_is_not_written() -> None:
    lane = Lane([[3]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.ids[TOPIC] = uuid.uuid4()
        result = lane.copy(attempt)
        assert {one: refusal.kind for one, refusal in result.refusals.items()} == {place(): RefusalKind.TARGET_CHANGED}
        assert lane.target.log(TOPIC).end == 0


def test_a_run_fences_every_slot_that_a_run_of_the_lane_had() -> None:
    lane = Lane([[1], [1], [1]])
    with at_work(lane):
        lane.open("wide", 3)
        lane.target.asked.clear()
        lane.open("narrow", 1)
        fenced = {one.request.transactional_id for one in lane.target.asked if one.api == "InitProducerId"}
        wanted = {transactional_id(FLOW, LANE, name) for name in (0, 1, 2, DRIVER)}
        assert fenced - {None} == wanted


@both_versions
def test_a_commit_of_a_moved_coordinator_is_looked_for_where_it_is_now(version: int) -> None:
    lane = Lane([[2, 2]], version=version, nodes=(1, 2))
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))

        def move() -> None:
            lane.target.coordinators[SLOT] = 2

        lane.target.faults.append(Fault(api="Produce", topic=LEDGER, then=move))
        result = lane.copy(attempt)
        assert (result.retries, lane.is_whole()) == (1, True)
        assert [one.node for one in lane.target.asked if one.api == "EndTxn" and SLOT in one.keys] == [1, 2]


@both_versions
def test_a_leader_that_moves_costs_one_retry(version: int) -> None:
    lane = Lane([[2, 2, 2]], version=version, nodes=(1, 2))
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        lane.target.faults.append(
            Fault(api="Produce", topic=TOPIC, skip=1, then=lambda: lane.target.move_leader(place(), 2))
        )
        result = lane.copy(attempt, chunk_bytes=1)
        assert (result.retries, lane.is_whole()) == (1, True)


def test_a_writer_says_what_it_knows_of_a_commit() -> None:
    """Without the slot around it: success, fenced and unknown are three things."""
    lane = Lane([[1]])
    with at_work(lane):
        cluster = lane.clusters[1]
        ledger = LedgerTopic(cluster, FLOW.source)

        def outcome(fault: Fault | None) -> Callable[[], None]:
            one = writer(lane.target, cluster)
            cluster.loop.run(ledger.append_in, one, [Record(key=b'["x"]', value=b"{}")])
            lane.target.faults[:] = [] if fault is None else [fault]
            return lambda: cluster.loop.run(one.commit)

        outcome(None)()
        for fault in (Fault(api="EndTxn", lost=True, applied=True), Fault(api="EndTxn", lost=True)):
            with pytest.raises(OutcomeUnknown):
                outcome(fault)()
        with pytest.raises(Fenced):
            outcome(Fault(api="EndTxn", code=codes.PRODUCER_FENCED))()


def test_results_of_a_slot_that_raises_are_what_was_committed(golden: Golden) -> None:
    lane = Lane([[2, 2, 2]])
    with at_work(lane):
        attempt = lane.begin(lane.open("r"))
        result = SlotProgress()
        lane.target.faults.append(
            Fault(api="EndTxn", key=SLOT, skip=1, code=codes.COORDINATOR_NOT_AVAILABLE, times=1000)
        )
        with pytest.raises(Retryable) as caught:
            lane.copy(attempt, chunk_bytes=1, result=result)
        golden(caught.value)
        code, facts = data_of(caught.value)
        assert (code, facts["slot"], facts["run"], facts["failures"]) == ("slot.stopped", 0, "r", MAX_FAILURES + 1)
        assert [one.end for one in result.receipts] == [2]
        assert lane.copied(0) == [0, 1]
