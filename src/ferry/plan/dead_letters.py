"""Check or create the topic of dead letters before anything is copied that may need it."""

from __future__ import annotations

from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.kafka.connect.cluster import Cluster
from ferry.messages.catalogue import sentence
from ferry.model import Plan
from ferry.plan.change_topics import LastLook, change_topics
from ferry.plan.rules.dead_letters import clashing, letters_topic, skipping, without_letters
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning_rules import Rules


async def letters_shown(flow: FlowConfig, target: Cluster, plan: Plan) -> Plan:
    """Return a plan that is only shown, with what a run would do about the topic of dead letters. Creates nothing.

    If the topic is missing, the plan has a note. Topics whose dead letters have no place to go to are refused.
    """
    topics = skipping(flow, plan)
    if not topics:
        return plan
    refused = clashing(flow, plan, topics)
    name = flow.records.dead_letters.topic
    if not refused and name not in await target.refresh([name]):
        return replace(plan, notes=(*plan.notes, sentence("letters.topic-wanted", topic=name)))
    return plan.without(refused) if refused else plan


async def with_letters(
    flow: FlowConfig, rules: Rules, facts: Facts, target: Cluster, plan: Plan, last_look: LastLook
) -> Plan:
    """Create the topic of dead letters if the plan needs it and it is missing, and return the plan with a note of it.

    If the topic cannot be created, the source topics that need it are refused and left out of the plan. Raises what
    `last_look` raises, before the topic is created.
    """
    topics = skipping(flow, plan)
    if not topics:
        return plan
    refused = clashing(flow, plan, topics)
    name = flow.records.dead_letters.topic
    if not refused and name not in await target.refresh([name]):
        change = letters_topic(flow, facts, rules.replication_factor, topics)
        failed = (await change_topics(target, [change], last_look)).failed.get(name)
        if failed is None:
            return replace(plan, notes=(*plan.notes, sentence("letters.topic-created", topic=name)))
        refused = without_letters(topics, name, failed.kind, failed.message)
    return plan.without(refused) if refused else plan
