"""Check a replication policy of your own, in your own tests; needs nothing but Ferry.

```python
class TestRenaming(PolicyContract):
    def policy(self, source_alias: str) -> ReplicationPolicy:
        return Renaming({"source.cluster.alias": source_alias})
```
"""

from __future__ import annotations

from collections.abc import Sequence

from ferry.policy import ReplicationPolicy, illegal_name
from ferry.policy.conformance import SAMPLE_TOPICS, findings

__all__ = ["PolicyContract", "assert_policy", "findings"]


def assert_policy(policy: ReplicationPolicy, *, source_alias: str = "a", topics: Sequence[str] = SAMPLE_TOPICS) -> None:
    """Raise AssertionError with every rule that `policy`, configured for `source_alias`, does not keep."""
    found = findings(policy, source_alias=source_alias, topics=topics)
    assert not found, "\n".join(found)


class PolicyContract:
    """Derive a pytest class (`Test...`) from this one, and define how a policy is made; `topics` may name your own."""

    topics: Sequence[str] = SAMPLE_TOPICS

    def policy(self, source_alias: str) -> ReplicationPolicy:
        """Return the policy of the flow whose source is `source_alias`."""
        raise NotImplementedError

    def test_it_keeps_the_contract(self) -> None:
        """Check that names are legal, distinct and repeatable, and lead back to where they came from."""
        for alias in ("a", "eu-west", "dc_1"):
            assert_policy(self.policy(alias), source_alias=alias, topics=self.topics)

    def test_two_policies_made_alike_answer_alike(self) -> None:
        """Check that equal policies answer equally: a plan and its tasks each make one of their own."""
        one, other = self.policy("a"), self.policy("a")
        for topic in self.topics:
            assert one.format_remote_topic("a", topic) == other.format_remote_topic("a", topic), topic

    def test_names_stay_legal_after_three_hops(self) -> None:
        """Check names in chains of clusters, which copy what was copied."""
        name = "orders"
        for alias in ("a", "b", "c"):
            name = self.policy(alias).format_remote_topic(alias, name)
            assert illegal_name(name) is None, f"{name!r} {illegal_name(name)}"
