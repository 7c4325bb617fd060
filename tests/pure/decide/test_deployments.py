"""Who may open a lane after whose run."""

from dataclasses import replace

import pytest

from ferry.errors import Refused
from ferry.ledger.deployments import admitted, conflict
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.run_codec import run_record
from ferry.model import RunRecord
from tests.golden import Golden
from tests.pure.decide.values import lying, run_of

NOON_MS = 1_795_262_400_000
OWN = replace(run_of("mine"), deployment="blue", config_digest="b" * 64, started_ms=NOON_MS)


def ran(run: str, deployment: str, digest: str, *, lane: str = OWN.lane, at_ms: int = NOON_MS) -> RunRecord:
    return replace(
        run_of(run, lane=lane), deployment=deployment, config_digest=digest * (64 // len(digest)), started_ms=at_ms
    )


def ledger(*runs: RunRecord) -> LedgerView:
    return fold(lying(*map(run_record, runs)), len(runs))


@pytest.mark.parametrize(
    "before",
    [
        [],
        [ran("r1", "blue", "b")],
        [ran("r1", "blue", "a")],  # its file was changed
        [ran("r1", "green", "b")],  # the same file in two places
        [ran("r1", "green", "a"), ran("r2", "blue", "b")],  # was handed over to it
        [ran("r1", "green", "a"), ran("r2", "red", "b")],  # the newest counts
        [ran("r1", "green", "a", lane="backfill")],
        [ran("r1", "", "a")],  # a Ferry wrote it that knew no deployments
    ],
)
@pytest.mark.parametrize("take_over", [False, True])
def test_the_lane_is_free(before: list[RunRecord], take_over: bool) -> None:
    view = ledger(*before)
    assert admitted(view, OWN, take_over=take_over) == OWN
    assert conflict(view, OWN) is None


@pytest.mark.parametrize(
    "before",
    [
        [ran("r1", "green", "a")],
        [ran("r1", "blue", "b"), ran("r1", "green", "a")],  # taken from it; it may not take it back in silence
        [ran("r1", "blue", "b"), ran("r2", "green", "b"), ran("r3", "green", "a")],
    ],
)
def test_the_lane_is_anothers(before: list[RunRecord]) -> None:
    view = ledger(*before)
    with pytest.raises(Refused) as caught:
        admitted(view, OWN, take_over=False)
    assert str(caught.value) == conflict(view, OWN)
    assert admitted(view, OWN, take_over=True) == replace(OWN, took_over="green")


def test_a_run_that_is_opened_again_still_says_whom_it_took_the_lane_from() -> None:
    taken = replace(OWN, took_over="green")
    assert admitted(ledger(ran("r1", "green", "a"), taken), OWN, take_over=True) == taken


def test_the_sentence_names_both_and_the_remedies(golden: Golden) -> None:
    view = ledger(ran("r1", "blue", "c", at_ms=NOON_MS - 60_000), ran("r2", "green", "a"))
    golden(conflict(view, OWN), "both ran")
    said = conflict(ledger(ran("r2", "green", "a")), OWN)
    assert said is not None
    golden(said, "one has not run yet")


def test_who_names_no_deployment_is_not_kept_out() -> None:
    nobody = replace(OWN, deployment="")
    assert admitted(ledger(ran("r1", "green", "a")), nobody, take_over=False) == nobody
