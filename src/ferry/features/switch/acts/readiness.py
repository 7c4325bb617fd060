"""Gather the facts of `ferry readiness` from both clusters; writes nothing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.principal import principal_of
from ferry.errors import Refused, Unreachable
from ferry.features.groups.acts.checkpoint import GroupSync
from ferry.features.groups.acts.outside import groups_outside
from ferry.features.groups.rules.checkpoints import without_checkpoint
from ferry.features.switch.acts.partition_state import ends_of
from ferry.features.switch.acts.passed_over import passed_by
from ferry.features.switch.rules.partition_state import without_new_topics
from ferry.features.switch.rules.readiness import Looked, Readiness, Rpo, came_since, readiness_of
from ferry.features.switch.rules.transformed import Transformed, changed_topics, transformed_topics, transforms_check
from ferry.kafka.admin.acls import NoAuthorizer, described_acls
from ferry.kafka.groups.listing import ListedGroups
from ferry.lane.checks import readiness_checks
from ferry.lane.connections import FlowConnections, TargetConnection
from ferry.lane.open_lane import OpenLane
from ferry.ledger.history import PastRun, past_runs
from ferry.ledger.ledger import LedgerView, claims
from ferry.ledger.switch_codec import paused_by
from ferry.ledger.writers import LedgerWriters
from ferry.model import Left, Plan, TopicPartition, Why, sentence_of
from ferry.model.check import Check
from ferry.model.switch import Step, SwitchState
from ferry.plan.lag import first_timestamps, with_oldest
from ferry.plan.options import DEFAULT_RUN
from ferry.plan.preview import survey
from ferry.plan.rules.lag import lag_of
from ferry.plan.transforms import transform_digests


def check_readiness(
    flow: FlowConfig,
    rpo: Rpo,
    *,
    back: bool,
    wants_back: bool = True,
    leave: Collection[str] = (),
    leave_active: bool = False,
    planned: bool = False,
    patience_s: float = 60.0,
) -> Readiness:
    """Return whether the flow's target could take over now.

    `back`: whether the file enables the flow back. `wants_back`: whether it is to be started. `planned`: for a
    switch that reads the groups' offsets from the source, so that it needs no checkpoints. `leave` are groups that do
    not matter; with `leave_active` all groups that have members do not matter. Raises BadInput if the flow never ran.
    Raises Unreachable if one of the clusters does not answer. Raises Refused if nothing of the flow may be planned.
    """
    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        ends = (back, wants_back)
        looking = partial(_checked, flow, connections, rpo, ends, frozenset(leave), leave_active, planned)
        return connections.run(looking)


def look_since(back: FlowConfig, after: SwitchState, *, patience_s: float = 60.0) -> list[Check]:
    """Check what came to the cluster that clients left in the switch `after`, since it was drained; `back` leads there.

    There is no check after a failover. Raises Unreachable if that cluster does not answer.
    """
    topics = {row["topic"] for row in after.rows(Step.DRAIN)}

    async def work() -> tuple[dict[TopicPartition, int], frozenset[str]]:
        view = await connection.view_if_any()
        there = (await connection.target.refresh(topics)).values() if topics else ()
        ends, _ = await ends_of(connection.target, there)
        now = {info.name: info.id_text for info in there}
        return without_new_topics(ends, after.rows(Step.STOP), now), frozenset(claims(view))

    with TargetConnection.of(back, patience_s=patience_s) as connection:
        ends, copied = connection.run(work)
    found = came_since(after, ends, copied)
    return [] if found is None else [found]


async def _checked(
    flow: FlowConfig,
    connections: FlowConnections,
    rpo: Rpo,
    back: tuple[bool, bool],
    leave: frozenset[str],
    leave_active: bool,
    planned: bool,
) -> Readiness:
    lane = OpenLane.of(flow, flow.lane, connections)
    view = await lane.cache.view_with_newest(flow.lane, 1)
    facts, plan = await survey(lane, view, DEFAULT_RUN)
    last = next(iter(past_runs(view, flow.lane, 1)), None)
    features = await _of_features(lane, view, plan)
    groups, behind, lacking, excepted, listed = await _groups(flow, connections, view, leave, leave_active)
    outside = await groups_outside(flow, connections.source, listed.groups)
    looked = Looked(
        facts=facts,
        plan=plan,
        lags=await with_oldest(connections.source, facts, lag_of(facts, flow.topics.policy, flow.flow.source)),
        last_run=last,
        stopped_by=paused_by(view, facts.now_ms),
        stamped_ms=await _stamp(connections, last),
        groups=groups,
        behind_groups=behind,
        excepted=excepted,
        features=features,
        passed=passed_by(flow, view, {name: one.topic_id for name, one in facts.source.topics.items()}),
        writers=await _writers(flow, connections),
        back=back[0],
        wants_back=back[1],
        without_checkpoint=lacking,
        planned=planned,
        unsynced=flow.unsynced,
        outside=[one for one in outside.groups if one.group not in leave],
        unlisted=next(iter(listed.silent.values()), outside.hidden),
    )
    ready = readiness_of(looked, flow.topics.policy, flow.flow.source, rpo)
    check = transforms_check(flow.flow, _transformed(flow, view, facts.source.topics))
    return replace(ready, checks=(*ready.checks, check))


def _transformed(flow: FlowConfig, view: LedgerView, topics: Collection[str]) -> Transformed:
    """Return the flow's transforms as a run on this machine would find them, and the copies that they have made."""
    digests, lost = transform_digests(flow)
    specs = ((topic, flow.transform_of(topic)) for topic in topics)
    wanted = {topic: (spec.name, digests[spec.name]) for topic, spec in specs if spec and spec.name in digests}
    return Transformed(
        made=transformed_topics(view, flow.lane),
        changed=changed_topics(view, flow.lane, wanted),
        lost=list(lost.values()),
    )


async def _stamp(connections: FlowConnections, last: PastRun | None) -> int | None:
    """Return when the broker wrote the last run's record, by the broker's clock (LogAppendTime, ms).

    It is None if that is not known.
    """
    if last is None:
        return None
    place = connections.ledger.place
    found = await first_timestamps(connections.target, {place: last.opened.generation})
    return found.get(place)


async def _groups(
    flow: FlowConfig, connections: FlowConnections, view: LedgerView, leave: frozenset[str], leave_active: bool
) -> tuple[list[Left], int, dict[str, str], set[str], ListedGroups]:
    """Return the groups that a sync would leave, and the number that it would write.

    With them come the groups without a checkpoint, those that are excepted, and all that the source listed.
    """
    sync = GroupSync(flow=flow, lane=flow.lane, connections=connections)
    looked = await sync.look(view, sync.rules(), every=True)
    lacking = without_checkpoint(sync.rules(), looked.decided, looked.held)
    passed = set() if flow.finds_new_groups or not looked.held else looked.decided.writes.keys() - looked.held.keys()
    for group in passed:
        lacking[group] = (
            f"refresh.groups.enabled is false, so no run checks group {group}: write its offsets once with ferry "
            f"groups sync '{flow.flow}' --group {group}"
        )
    active = {one.group for one in looked.left if leave_active and one.why is Why.ACTIVE}
    left = [one for one in looked.left if one.group not in leave and not (leave_active and one.why is Why.ACTIVE)]
    lacking = {group: why for group, why in sorted(lacking.items()) if group not in leave}
    return left, len(looked.decided.writes.keys() - passed - leave), lacking, {*leave, *active}, looked.listed


async def _of_features(lane: OpenLane, view: LedgerView, plan: Plan) -> list[Check]:
    """Return the checks that features add, in order."""
    return [row for check in readiness_checks() for row in await check(lane, view, plan)]


async def _writers(flow: FlowConfig, connections: FlowConnections) -> LedgerWriters:
    """Return which principals may write to the ledger, as far as this login may read the ACLs."""
    topic, own = connections.ledger.place.topic, principal_of(flow, "target").name
    try:
        acls = await described_acls(connections.target)
    except NoAuthorizer as error:
        return LedgerWriters(topic=topic, own=own, acls=None, why=sentence_of(error), is_open=True)
    except (Refused, Unreachable) as error:
        return LedgerWriters(topic=topic, own=own, acls=None, why=sentence_of(error))
    return LedgerWriters(topic=topic, own=own, acls=acls)
