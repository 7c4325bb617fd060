"""The topics of an adoption or a hand-back."""

from __future__ import annotations

from ferry.errors import BadInput
from ferry.plan.rules.facts import SourceFacts
from ferry.plan.rules.planning_rules import Rules


def refuse_unknown_topics(rules: Rules, source: SourceFacts) -> None:
    """Raise BadInput for a topic that was named and that the flow does not copy."""
    if rules.only is not None and (unknown := sorted(rules.only - source.topics.keys())):
        raise BadInput(
            f"flow {rules.flow} does not copy topic {unknown[0]}: cluster {rules.flow.source} has no such topic, or "
            "the filters leave it out"
        )
