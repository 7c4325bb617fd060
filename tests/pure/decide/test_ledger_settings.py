"""A ledger that could lose receipts is refused, for each setting by name, value and remedy."""

import pytest

from ferry.ledger.settings import created_with, settings_refusal, wanted_in_sync, wanted_replicas
from ferry.model import Fact, Sentence
from tests.golden import Golden
from tests.said import facts_in

LEDGER = "ferry-ledger.a.internal"


def refusal(
    *, partitions: int = 1, replicas: int = 3, wanted: int = 3, without: str = "", **changed: str
) -> Sentence | None:
    configs = {**created_with(3), **{name.replace("_", "."): value for name, value in changed.items()}}
    configs.pop(without, None)
    return settings_refusal(LEDGER, "b", partitions=partitions, replicas=replicas, wanted=wanted, configs=configs)


@pytest.mark.parametrize(("configured", "brokers", "replicas", "in_sync"), [
    (3, 1, 1, 1), (3, 2, 2, 1), (3, 3, 3, 2), (3, 5, 3, 2), (5, 5, 5, 2), (1, 3, 1, 1),
])  # fmt: skip
def test_the_replicas_fit_the_cluster_and_what_ferry_creates_it_accepts(
    configured: int, brokers: int, replicas: int, in_sync: int
) -> None:
    assert (wanted_replicas(configured, brokers), wanted_in_sync(replicas)) == (replicas, in_sync)
    created = created_with(replicas)
    assert created["min.insync.replicas"] == str(in_sync)
    assert settings_refusal(LEDGER, "b", partitions=1, replicas=replicas, wanted=replicas, configs=created) is None


POLICY, UNCLEAN, IN_SYNC = "cleanup.policy", "unclean.leader.election.enable", "min.insync.replicas"


def lossy(setting: str, found: str, needed: str) -> tuple[str, dict[str, Fact]]:
    """The code and the facts of a setting that can lose receipts."""
    return "ledger.may-lose", {"setting": setting, "found": found, "needed": needed}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(found, expected, id=name)
        for name, found, expected in [
            ("partitions=2", refusal(partitions=2), ("ledger.partitions", {"partitions": 2})),
            ("replicas=2", refusal(replicas=2), ("ledger.replicas", {"replicas": 2, "wanted": 3})),
            ("cleanup_policy=delete", refusal(cleanup_policy="delete"), lossy(POLICY, "delete", "compact")),
            (
                "cleanup_policy=compact,delete",
                refusal(cleanup_policy="compact,delete"),
                lossy(POLICY, "compact,delete", "compact"),
            ),
            ("without=cleanup.policy", refusal(without=POLICY), lossy(POLICY, "None", "compact")),
            (
                "unclean_leader_election_enable=true",
                refusal(unclean_leader_election_enable="true"),
                lossy(UNCLEAN, "true", "false"),
            ),
            (
                "without=unclean.leader.election.enable",
                refusal(without=UNCLEAN),
                lossy(UNCLEAN, "None", "false"),
            ),
            ("min_insync_replicas=1", refusal(min_insync_replicas="1"), lossy(IN_SYNC, "1", "2")),
            ("without=min.insync.replicas", refusal(without=IN_SYNC), lossy(IN_SYNC, "None", "2")),
            # A broker is down, for now.
            ("min_insync_replicas=1, wanted=2", refusal(min_insync_replicas="1", wanted=2), lossy(IN_SYNC, "1", "2")),
            ("min_insync_replicas=two", refusal(min_insync_replicas="two"), lossy(IN_SYNC, "two", "2")),
        ]
    ],
)
def test_each_setting_that_could_lose_receipts_is_refused(
    found: Sentence | None, expected: tuple[str, dict[str, Fact]], golden: Golden
) -> None:
    assert found is not None
    code, facts = expected
    assert (found.code, facts_in(found)) == (code, {"ledger": LEDGER, "cluster": "b", **facts})
    golden(found)


@pytest.mark.parametrize(
    "found",
    [
        refusal(replicas=4),
        refusal(min_insync_replicas="3"),
        refusal(replicas=1, wanted=1, min_insync_replicas="1"),
        refusal(replicas=3, wanted=2),  # a broker is down
    ],
)
def test_what_keeps_receipts_is_accepted(found: Sentence | None) -> None:
    assert found is None


def test_nothing_shown_is_nothing_met() -> None:
    assert settings_refusal(LEDGER, "b", partitions=1, replicas=1, wanted=1, configs={}) is not None
