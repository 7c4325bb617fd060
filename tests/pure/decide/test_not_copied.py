"""What a plan lists as left to the operator."""

from ferry.model.observed import Counted
from ferry.plan.rules.not_copied import not_copied
from tests.golden import Golden
from tests.pure.decide.values import FLOW

NONE = Counted(count=0)


def test_what_there_is_none_of_is_not_listed() -> None:
    assert not_copied(FLOW, NONE, NONE, ["orders"]) == ()


def test_schemas_are_said_to_be_there_only_where_a_registry_shows(golden: Golden) -> None:
    assert not_copied(FLOW, NONE, NONE, ["orders", "schemas"]) == ()
    (some,) = not_copied(FLOW, NONE, NONE, ["orders", "_schemas"])
    golden(some.message)


def test_quotas_users_and_streams_are_counted(golden: Golden) -> None:
    topics = ["orders", "app-KSTREAM-AGGREGATE-0003-changelog", "app-by-user-repartition"]
    found = {left.what: left for left in not_copied(FLOW, Counted(count=2), Counted(count=1), topics)}
    assert {what: left.count for what, left in found.items()} == {
        "client-quotas": 2,
        "scram-users": 1,
        "streams-state": 2,
    }
    golden(found["client-quotas"].message, "quotas")
    golden(found["scram-users"].message, "users")
    golden(found["streams-state"].message, "streams")


def test_what_may_not_be_counted_is_listed_with_the_remedy(golden: Golden) -> None:
    hidden = Counted(count=None, why="grant DESCRIBE on the cluster")
    (users,) = not_copied(FLOW, NONE, hidden, [])
    assert (users.what, users.count) == ("scram-users", None)
    golden(users.message)
