"""A view of the ledger that is read on comes to the same as one that is read whole, wherever the readings were cut."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.codec import encode
from ferry.ledger.ledger import fold, fold_on, resume_at
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.run_codec import run_record
from ferry.model import Fate, LedgerRecord, Record
from tests.pure.decide.values import RECEIPT, lying, run_of

Entry = tuple[str, str | None, int] | tuple[int, bool]
"""A record of a transaction (0: of none), or the marker that ends one: committed or not."""

keys = st.sampled_from(["a", "b", "run", "run2"])
histories = st.lists(
    st.tuples(keys, st.none() | st.sampled_from("xyz"), st.integers(0, 2))
    | st.tuples(st.integers(1, 2), st.booleans()),
    max_size=25,
)


def reading(history: list[Entry], start: int, end: int) -> list[LedgerRecord]:
    """What a reader of `[start, end)` sees: the fates that the markers in it decide (see ferry.wire.resolve)."""
    found: list[tuple[LedgerRecord, int]] = []
    waiting: dict[int, list[int]] = {}
    for offset in range(start, end):
        entry = history[offset]
        if len(entry) == 2:
            for index in waiting.pop(entry[0], []):
                fate = Fate.COMMITTED if entry[1] else Fate.ABORTED
                found[index] = replace(found[index][0], fate=fate), index
            continue
        name, value, transaction = entry
        record = run_record(run_of(name))
        if not name.startswith("run"):
            record = Record(key=encode([name]), value=encode({"is": value}))
        if value is None:
            record = replace(record, value=None)
        if transaction:
            waiting.setdefault(transaction, []).append(len(found))
        fate = Fate.OPEN if transaction else Fate.COMMITTED
        found.append((lying((record, fate), first=offset)[0], len(found)))
    return [record for record, _ in found]


@given(histories, st.lists(st.integers(0, 25), max_size=4))
def test_reading_on_from_a_view_comes_to_the_same_as_reading_everything(history: list[Entry], cuts: list[int]) -> None:
    view = fold((), 0)
    for cut in sorted({min(cut, len(history)) for cut in [*cuts, len(history)]}):
        view = fold_on(view, reading(history, resume_at(view), cut), cut)
        whole = fold(reading(history, 0, cut), cut)
        assert view == whole
        assert list(view.by_key) == list(whole.by_key)


def test_a_record_that_was_undecided_counts_once_its_marker_is_read() -> None:
    history: list[Entry] = [("a", "x", 0), ("a", "y", 1), ("run", "z", 0), (1, True)]
    first = fold(reading(history, 0, 3), 3)
    assert (resume_at(first), [record.offset for record in first.open]) == (1, [1])
    then = fold_on(first, reading(history, 1, 4), 4)
    assert (resume_at(then), then.open, len(then.runs)) == (4, (), 1)
    assert [record.offset for record in then.by_key.values()] == [1, 2]


def test_a_last_receipt_is_parsed_once_for_all_views_that_go_on() -> None:
    first, second = receipt_records(RECEIPT), receipt_records(replace(RECEIPT, start=100, end=140))
    view = fold(lying(*((record, Fate.COMMITTED) for record in first)), 2)
    (key,) = view.keys("last")
    assert view.last(key) == RECEIPT
    onward = fold_on(view, (), 3)
    assert onward.last(key) is view.last(key)
    later = fold_on(onward, lying(*((record, Fate.COMMITTED) for record in second), first=3), 5)
    assert (later.last(key).end, onward.last(key).end) == (140, RECEIPT.end)
    assert fold((), 0).parsed == {}, "the view of nothing keeps nothing"
