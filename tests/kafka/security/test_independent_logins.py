"""librdkafka reaches secured clusters with the flow's own properties, or names the property that it does not have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferry.errors import Refused
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.ledger.report import RunState
from tests.harness import Lab
from tests.kafka.security.clusters import Secured
from tests.kafka.security.conftest import Pair
from tests.kafka.security.test_logins import (
    RECORDS,
    Way,
    client_credentials,
    fill,
    flow,
    jks,
    keytab,
    p12,
    pem,
    permit,
    plain,
    scram256,
    scram512,
    token_file,
)

Make = Callable[[Secured], Way]


def verified(lab: Lab) -> tuple[bool, int]:
    with Verifier(lab.flow, Wanted(), independent=True, patience_s=20) as verifier:
        found = verifier.survey()
        result = verifier.sum_up(found, verifier.compare(found))
    return result.is_equal, result.records


@pytest.mark.parametrize(
    ("source", "target"), [(pem, jks), (p12, scram256), (plain, scram512)], ids=lambda way: way.__name__
)
def test_both_sides_are_read_with_the_rights_of_a_flow(secured: Pair, topic: str, source: Make, target: Make) -> None:
    fill(secured, topic)
    ways = source(secured.source), target(secured.target)
    lab = flow(secured, *ways, topic)
    permit(secured, lab, *ways)
    assert lab.micro_run().state is RunState.SUCCESS
    assert verified(lab) == (True, RECORDS)


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        (plain, keytab, "GSSAPI"),
        (plain, token_file, "token.endpoint.url"),
        (client_credentials, plain, "token.endpoint.url"),
    ],
    ids=["kerberos", "token file", "trust of an endpoint"],
)
def test_a_login_that_librdkafka_does_not_have_is_refused_before_anything_is_read(
    secured: Pair, topic: str, source: Make, target: Make, named: str
) -> None:
    lab = flow(secured, source(secured.source), target(secured.target), topic)
    with pytest.raises(Refused) as refused:
        Verifier(lab.flow, Wanted(), independent=True)
    assert named in str(refused.value)
    assert "librdkafka" in str(refused.value)
