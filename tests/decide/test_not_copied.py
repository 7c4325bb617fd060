"""What a plan lists as left to the operator."""

from ferry.decide.plan.not_copied import Counted, not_copied
from tests.decide.values import FLOW

NONE = Counted(count=0)


def test_what_there_is_none_of_is_not_listed() -> None:
    assert not_copied(FLOW, NONE, NONE, ["orders"]) == ()


def test_schemas_are_said_to_be_there_only_where_a_registry_shows() -> None:
    assert not_copied(FLOW, NONE, NONE, ["orders", "schemas"]) == ()
    (some,) = not_copied(FLOW, NONE, NONE, ["orders", "_schemas"])
    assert "with topic _schemas on a are not copied" in some.message
    assert "the registry for b must know them under the same ids" in some.message


def test_quotas_users_and_streams_are_counted() -> None:
    topics = ["orders", "app-KSTREAM-AGGREGATE-0003-changelog", "app-by-user-repartition"]
    found = {left.what: left for left in not_copied(FLOW, Counted(count=2), Counted(count=1), topics)}
    assert {what: left.count for what, left in found.items()} == {
        "client-quotas": 2,
        "scram-users": 1,
        "streams-state": 2,
    }
    assert found["client-quotas"].message == "2 client quotas are not copied: set them on b with kafka-configs.sh"
    assert found["scram-users"].message.startswith("1 SCRAM user is not copied")
    assert "app-KSTREAM-AGGREGATE-0003-changelog" in found["streams-state"].message or (
        "app-by-user-repartition" in found["streams-state"].message
    )


def test_what_may_not_be_counted_is_listed_with_the_remedy() -> None:
    hidden = Counted(count=None, why="grant DESCRIBE on the cluster")
    (users,) = not_copied(FLOW, NONE, hidden, [])
    assert (users.what, users.count) == ("scram-users", None)
    assert "SCRAM users of a (how many it does not tell: grant DESCRIBE on the cluster) are not copied" in users.message
