"""ACLs on the wire: the words for Kafka's numbers, and what an answer with an error means."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin import ACLOperation, ACLPermissionType, ACLResourcePatternType, ACLResourceType

from ferry.errors import Refused, Unreachable
from ferry.kafka.admin import acls
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.model import AclBinding
from tests.golden import Golden
from tests.pure.decide.acl_values import acl
from tests.said import data_of

Action = Callable[[Cluster], Awaitable[Any]]
Change = Callable[[Cluster, Sequence[AclBinding]], Awaitable[dict[AclBinding, Refused]]]


@pytest.mark.parametrize(
    ("known", "theirs"),
    [
        (acls.TYPES, ACLResourceType),
        (acls.PATTERNS, ACLResourcePatternType),
        (acls.OPERATIONS, ACLOperation),
        (acls.PERMISSIONS, ACLPermissionType),
    ],
)
def test_the_words_are_those_of_kafka(known: dict[int, str], theirs: type[Enum]) -> None:
    """kafka-python's numbers, but for UNKNOWN, ANY and MATCH, which no ACL has; and two that are younger than it."""
    numbers = {member.name: member.value for member in theirs if member.name not in ("UNKNOWN", "ANY", "MATCH")}
    words = {re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", word).upper(): code for code, word in known.items()}
    assert numbers.items() <= words.items()
    assert words.keys() - numbers.keys() <= {"USER", "TWO_PHASE_COMMIT"}


def test_a_word_that_ferry_does_not_know_is_its_number() -> None:
    assert acls.word_of(acls.OPERATIONS, 99) == "number-99"


ACL = acl("allow User:ann Read on topic orders")


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Action, int], Any]]:
    """Does something at a cluster of which each answer has an error code."""
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)

    def work(act: Action, code: int) -> Any:
        async def ask(_: Cluster, request: Any, node: int | None = None) -> Any:
            one = SimpleNamespace(error_code=code, error_message=None, matching_acls=[])
            one.results = one.filter_results = [one]
            return one

        monkeypatch.setattr(Cluster, "ask", ask)
        return loop.run(act, cluster)

    yield work
    cluster.close()
    loop.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "code"), [(acls.described_acls, "acls.unread"), (acls.may_alter_cluster, "acls.permissions-unread")]
)
def test_what_cannot_be_read_is_named_with_its_cluster(
    answered: Callable[[Action, int], Any], act: Action, code: str, golden: Golden
) -> None:
    with pytest.raises(NotPermitted) as refused:
        answered(act, codes.CLUSTER_AUTHORIZATION_FAILED)
    found, facts = data_of(refused.value)
    assert (found, facts["cluster"]) == (code, "backup")
    golden(refused.value, code)
    with pytest.raises(acls.NoAuthorizer) as none:
        answered(act, codes.SECURITY_DISABLED)
    assert data_of(none.value) == ("acls.no-authorizer", {"cluster": "backup"})
    with pytest.raises(Unreachable) as given_up:
        answered(act, codes.REQUEST_TIMED_OUT)
    found, facts = data_of(given_up.value)
    assert (found, facts["cluster"]) == (code, "backup")
    golden(none.value, "no authorizer")


@pytest.mark.parametrize(
    ("change", "done"), [(acls.create_acls, "created"), (acls.delete_acls, "deleted")], ids=["create", "delete"]
)
@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        pytest.param(codes.CLUSTER_AUTHORIZATION_FAILED, "acls.not-changed", NotPermitted, id="not permitted"),
        pytest.param(codes.POLICY_VIOLATION, "acls.not-changed", Refused, id="policy"),
        pytest.param(-1, "acls.in-doubt", acls.AclInDoubt, id="in doubt"),
    ],
)
def test_an_acl_that_is_not_changed_is_named(
    answered: Callable[[Action, int], Any],
    change: Change,
    done: str,
    error: int,
    code: str,
    kind: type[Refused],
    golden: Golden,
) -> None:
    failed = answered(lambda cluster: change(cluster, [ACL]), error)
    assert list(failed) == [ACL]
    assert type(failed[ACL]) is kind
    found, facts = data_of(failed[ACL])
    assert (found, facts["acl"], facts["done"], facts["cluster"]) == (code, str(ACL), done, "backup")
    golden(failed[ACL])
