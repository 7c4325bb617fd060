"""librdkafka reaches secured clusters with the flow's own properties, or names the property that it does not have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferry.clock import wall_ms
from ferry.errors import Refused, Unreachable
from ferry.features.switch.acts.application import first_record_of, scratch_group, write_as_application
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.kafka.fetch.whole_topic import read_topic
from ferry.kafka.groups.listing import list_groups
from ferry.lane.connections import TargetConnection
from ferry.ledger.report import RunState
from ferry.model import TopicPartition
from ferry.plan.rules.permissions import Acl, Resource
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
from tests.tiers import ANSWER_S

Make = Callable[[Secured], Way]


def verified(lab: Lab) -> tuple[bool, int]:
    with Verifier(lab.flow, Wanted(), independent=True, patience_s=ANSWER_S) as verifier:
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


def test_a_first_record_that_may_not_be_read_is_not_known_and_nothing_is_committed(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    way = plain(secured.target)
    lab = flow(secured, plain(secured.source), way, topic)
    permit(secured, lab, plain(secured.source), way)
    assert lab.micro_run().state is RunState.SUCCESS
    place = TopicPartition(lab.target_topic(topic), 0)
    with TargetConnection.of(lab.flow, patience_s=ANSWER_S) as connection:
        denied = first_record_of(lab.flow, connection, "denied", {place: 0}, patience_s=ANSWER_S)
        assert denied.at_ms is None
        assert scratch_group("denied") in denied.why
        group = Resource(kind="group", name="ferry.smoke.", prefixed=True)
        topics = Resource(kind="topic", name=place.topic)
        needed = [(group, "Read"), (group, "Delete"), (topics, "Read"), (topics, "Describe")]
        secured.target.grant(
            way.principal,
            [Acl(side="target", resource=one, operation=operation, why="") for one, operation in needed],
        )
        began_ms = wall_ms()
        found = first_record_of(lab.flow, connection, "granted", {place: 0}, patience_s=ANSWER_S)
        assert (found.why, found.at_ms is not None and began_ms <= found.at_ms <= wall_ms()) == ("", True), found
        left = connection.run(lambda: list_groups(connection.target)).groups
        assert scratch_group("granted") not in left


def test_an_application_writes_where_it_may_and_what_is_not_acknowledged_is_reported(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    way = plain(secured.target)
    lab = flow(secured, plain(secured.source), way, topic)
    permit(secured, lab, plain(secured.source), way)
    assert lab.micro_run().state is RunState.SUCCESS
    records = [(b"key", b"%d" % number) for number in range(3)]
    place = TopicPartition(lab.target_topic(topic), 0)
    assert write_as_application(lab.flow, place, records, patience_s=ANSWER_S).startswith("librdkafka ")
    with TargetConnection.of(lab.flow, patience_s=ANSWER_S) as connection:
        found = connection.run(lambda: read_topic(connection.target, place.topic)) or ()
    assert [record.value for _, record in found if record.key == b"key"] == [value for _, value in records]
    with pytest.raises(Unreachable, match=r"^3 of 3 "):
        write_as_application(lab.flow, TopicPartition("of-others", 0), records, patience_s=2)
