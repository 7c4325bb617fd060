"""Records of aborted transactions stay behind, exactly those that a read_committed consumer leaves out."""

from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import batches
from tests.pure.wire.captured import captured
from tests.pure.wire.logs import PLAIN, Log, Step, cleaned_marker, histories, log_of


def hidden_by(log: Log, begin: int, cuts: list[int], slack: list[int]) -> dict[int, bool]:
    """Read a log up to its last stable offset in fetches cut at will; per data batch (by index) whether it is hidden.

    Each answer lists the aborted transactions that touch its range or, as brokers do, lie a little (`slack`) behind.
    """
    aborted, found, at = AbortedTransactions(), {}, begin
    while at < log.last_stable:
        until = min(log.last_stable, at + (cuts.pop() if cuts else log.last_stable))
        position, upper = log.batches[at].base_offset, log.batches[until - 1].next_offset
        upper += slack.pop() if slack else 0
        aborted.learn((pid, first) for pid, first, last in log.aborted if last >= position and first < upper)
        for index in range(at, until):
            hidden = aborted.hides(log.batches[index])
            if log.steps[index].is_marker:
                assert not hidden
            else:
                found[index] = hidden
        at = until
    return found


@given(
    histories.map(log_of),
    st.integers(0, 30),
    st.lists(st.integers(1, 6), max_size=30),
    st.lists(st.integers(0, 9), max_size=30),
)
def test_a_batch_is_hidden_when_its_producers_next_marker_is_an_abort(
    log: Log, begin: int, cuts: list[int], slack: list[int]
) -> None:
    for index, hidden in hidden_by(log, begin, cuts, slack).items():
        assert hidden is (log.is_committed(index) is False)


@given(histories.map(log_of), st.integers(2, 5))
def test_hearing_of_the_same_transactions_again_changes_nothing(log: Log, times: int) -> None:
    once, often = AbortedTransactions(), AbortedTransactions()
    told = [(pid, first) for pid, first, _ in log.aborted]
    once.learn(told)
    for batch in log.batches[: log.last_stable]:
        for _ in range(times):
            often.learn(reversed(told))
        assert once.hides(batch) is often.hides(batch)


def test_a_producers_transactions_are_told_apart() -> None:
    aborted, committed = Step(producer=1, records=1), Step(producer=1, records=1)
    end, keep = Step(producer=1, records=0, commits=False), Step(producer=1, records=0)
    log = log_of([aborted, end, committed, keep, aborted, Step(producer=PLAIN, records=2), end, committed, keep])
    assert hidden_by(log, 0, [], []) == {0: True, 2: False, 4: True, 5: False, 7: False}


def test_one_aborted_transaction_may_follow_right_behind_another() -> None:
    wrote, end = Step(producer=1, records=1), Step(producer=1, records=0, commits=False)
    for cuts in ([], [1] * 6, [2] * 3, [3] * 2):
        assert hidden_by(log_of([wrote, end, wrote, end, wrote, end]), 0, cuts, [3] * 6) == {0: True, 2: True, 4: True}


def test_what_stays_of_a_golden_log_is_what_librdkafka_reads_committed() -> None:
    golden, aborted, found = captured("transactions"), AbortedTransactions(), []
    for answer in golden.answers:
        aborted.learn(answer.aborted)
        for batch in batches(answer.buffer):
            if not aborted.hides(batch) and not batch.is_control:
                found += [(record.offset, record.key, record.value) for record in DefaultRecordBatch(bytes(batch.data))]
    assert found == [(offset, key, value) for offset, _, key, value, _ in golden.committed]
    assert len(golden.answers) > 1, "a transaction should cross two answers"


def test_a_marker_that_the_cleaner_emptied_ends_no_transaction() -> None:
    aborted = AbortedTransactions()
    aborted.learn([(2, 0)])
    log = log_of([Step(producer=2, records=1)])
    assert aborted.hides(log.batches[0])
    assert aborted.leaves_out(cleaned_marker(1, 2))
    assert aborted.hides(log.batches[0])
