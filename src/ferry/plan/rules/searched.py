"""How far the copies were searched for records of other producers, as a plan records it.

A later search begins there, so no later run finds a foreign record that is before it. Such a record is before it only
if a gap of the plan accepts the record.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferry.model import Plan, RefusalKind, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning_rules import Rules


def searched(rules: Rules, facts: Facts, plan: Plan, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return up to which offset target partitions count as searched for records of other producers.

    Where one was found and no gap of the plan accepts it, the search stays where it ended `before`, by target
    partition. The topic may be refused, paused, or left out of the run.
    """
    accepted = {gap.source for gap in plan.gaps if gap.why is RefusalKind.FOREIGN_WRITER}
    copies = {copy: name for name in facts.source.topics for copy in rules.copies_of(name)}

    def is_open(place: TopicPartition) -> bool:
        """Return whether a later run has to find the foreign record of a partition again."""
        source = TopicPartition(topic=copies.get(place.topic, ""), partition=place.partition)
        return place in facts.others.foreign and source not in accepted

    return {
        place: before[place] if is_open(place) else offset
        for place, offset in facts.others.accounted.items()
        if place in before or not is_open(place)
    }
