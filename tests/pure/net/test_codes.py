"""What only an operator can end says how."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ferry.errors import Fenced, Refused, Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.produce.writer import StillCompleting, Writer
from tests.golden import Golden, brief


@pytest.fixture
def transaction() -> Iterator[Writer]:
    """A transaction of a cluster that is never asked."""
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": ["127.0.0.1:1"]})
    yield Writer(cluster, "ferry.a->b.live.0", 60_000)
    cluster.close()
    loop.close()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (3, Retryable),
        (19, Retryable),
        (20, Retryable),
        (56, Retryable),
        (29, Refused),
        (53, Refused),
        (51, StillCompleting),
        (6, Retryable),
    ],
    ids=brief,
)
def test_a_write_that_fails_names_what_and_where_and_the_remedy(
    transaction: Writer, code: int, error: type[Exception], golden: Golden
) -> None:
    with pytest.raises(error) as caught:
        transaction.raise_for(code, "writing to a.orders-0")
    golden(caught.value)


def test_success_and_fencing_are_no_faults_of_the_cluster(transaction: Writer, golden: Golden) -> None:
    transaction.raise_for(codes.NONE, "writing to a.orders-0")
    with pytest.raises(Fenced) as caught:
        transaction.raise_for(codes.PRODUCER_FENCED, "writing to a.orders-0")
    golden(caught.value)


def test_what_the_broker_says_itself_goes_before_the_remedy(golden: Golden) -> None:
    said = "Invalid value -5 for configuration retention.ms"
    assert codes.advised(codes.INVALID_CONFIG, said).startswith(f"{said}: ")
    golden(codes.advised(codes.INVALID_CONFIG, said), "what the broker says")
    golden(codes.advised(codes.INVALID_CONFIG, ""), "it says nothing")
    assert codes.advised(codes.NOT_CONTROLLER) == codes.describe(codes.NOT_CONTROLLER)
