"""Copies the source's ACLs to the target when a run is planned: read both sides, decide, record, change.

A failure never stops the copy. With `ferry.sync.acls.policy = read`, the default, which works as MirrorMaker 2 does, a
failure is a note. With `full` it is a refusal: the run copies everything and then fails.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ferry.clock import wall_ms
from ferry.config.flow.acls import AclPolicy
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.principal import principal_of
from ferry.errors import Refused, Unreachable
from ferry.features.acls.rules.acls import AclDiff, AclFacts, AclRules, decide_acls, remarks, unmapped_sentence
from ferry.kafka.admin.acls import (
    AclInDoubt,
    NoAuthorizer,
    create_acls,
    delete_acls,
    described_acls,
    may_alter_cluster,
)
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.open_lane import OpenLane
from ferry.ledger.acl_codec import forgotten_acl_record, own_acl_record, synced_record
from ferry.ledger.ledger import LedgerView, claims
from ferry.ledger.own_acls import due_in_ms, own_acls
from ferry.messages.catalogue import caused, said, sentence
from ferry.messages.refusals import refused_as
from ferry.model import AclBinding, Plan, RefusalKind, Sentence
from ferry.protocol.driver import Driver

log = logging.getLogger(__name__)

SHOWN_FAILURES = 20
"""How many ACLs that a broker refused are named one by one; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSyncer:
    """The ACLs of one flow in one lane over open connections. It is used on their event loop."""

    flow: FlowConfig
    lane: str
    source: Cluster
    target: Cluster

    def due_in_ms(self, view: LedgerView) -> int | None:
        """Return after how many ms a run syncs ACLs again; 0: the next run does, None: never."""
        periodic = self.flow.acls.sync_topic_acls
        if not periodic.enabled or periodic.interval_s is None:
            return None
        return due_in_ms(view, self.lane, interval_s=periodic.interval_s, settings=self._settings, now_ms=wall_ms())

    async def diff(self, view: LedgerView, plan: Plan) -> AclDiff:
        """Return how the target's ACLs differ from what the source's ask for, whether a sync is due or not.

        It uses the source's metadata from which the plan was made. It reads the target's ACLs only if there is
        something to compare. Raises NoAuthorizer, NotPermitted and Unreachable.
        """
        refused = frozenset(refusal.topic for refusal in plan.refusals if refusal.partition is None)
        others, claimed = self.not_shown(view, refused)
        facts = AclFacts(
            source_cluster_id=self.source.cluster_id,
            source=await described_acls(self.source),
            target=frozenset(),
            own=own_acls(view, self.lane),
            topics=frozenset(name for name in self.source.topics if self.flow.topics.selection.takes(name)),
            refused=refused,
            others=others,
            claimed=claimed,
        )
        diff = decide_acls(self._rules, facts)
        if not diff.changes and not facts.own:
            return diff
        return decide_acls(self._rules, replace(facts, target=await described_acls(self.target)))

    def not_shown(self, view: LedgerView, refused: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
        """Return the topics of the target that the flow did not create, and those that it created by the ledger alone.

        Internal topics of Kafka and MirrorMaker are left out.
        """
        flow = self.flow
        taken = {name: flow.copies_of(name) for name in self.source.topics if flow.topics.selection.takes(name)}
        shown = {copy for name, copies in taken.items() if name not in refused for copy in copies}
        doubtful = {
            name for name in self.target.topics.keys() - shown if not flow.topics.policy.is_internal_topic(name)
        }
        others = doubtful - claims(view).keys() - {copy for copies in taken.values() for copy in copies}
        return frozenset(others), frozenset(doubtful - others)

    async def preview(self, view: LedgerView, plan: Plan) -> Plan:
        """Return the plan with what its run would do to the target's ACLs; changes nothing."""
        if self.due_in_ms(view) != 0:
            return plan
        try:
            diff = await self._permitted_diff(view, plan)
        except (Refused, Unreachable) as error:
            return await self._without(plan, error)
        return self._with(plan, diff)

    async def act(self, driver: Driver, plan: Plan) -> Plan:
        """Change the target's ACLs to what the source's ask for; return the plan with what was changed.

        The ledger records an ACL before it is created, and until after it was deleted. If a broker refuses single ACLs,
        the others are still changed. Raises the errors of the ledger, and Superseded.
        """
        view = driver.view
        if self.due_in_ms(view) != 0:
            return plan
        try:
            diff = await self._permitted_diff(view, plan)
            failed = await self._apply(driver, diff, plan.run)
        except (Refused, Unreachable) as error:
            return await self._without(plan, error)
        if not failed:
            driver.keep([synced_record(self.lane, run=plan.run, settings=self._settings, at_ms=wall_ms())])
        return self._with(plan, diff, failed)

    async def _permitted_diff(self, view: LedgerView, plan: Plan) -> AclDiff:
        """Return the differences.

        Raises NotPermitted if there is something to change and this login may not change it.
        """
        diff = await self.diff(view, plan)
        if diff.changes and not await may_alter_cluster(self.target):
            raise NotPermitted(sentence("acls.not-permitted", cluster=self.target.alias))
        return diff

    async def _apply(self, driver: Driver, diff: AclDiff, run: str) -> dict[AclBinding, Refused]:
        """Make the changes; return the errors of those that failed, by ACL."""
        cluster_id, now_ms = self.source.cluster_id, wall_ms()
        meant = [
            own_acl_record(self.lane, change, source_cluster_id=cluster_id, run=run, at_ms=now_ms)
            for change in (*diff.created, *diff.moved)
        ]
        if meant:
            await driver.commit(meant)
        failed = await create_acls(self.target, [change.binding for change in diff.created])
        if diff.deleted:
            await driver.refuse_superseded()  # before ACLs are created, the commit does that
        kept = await delete_acls(self.target, [change.binding for change in diff.deleted])
        absent = {binding for binding, error in failed.items() if not isinstance(error, AclInDoubt)}
        gone = {*absent, *diff.forgotten, *(change.binding for change in diff.deleted)} - kept.keys()
        driver.keep(forgotten_acl_record(self.lane, binding) for binding in sorted(gone))
        return failed | kept

    def _with(self, plan: Plan, diff: AclDiff, failed: Mapping[AclBinding, Refused] | None = None) -> Plan:
        failed = failed or {}
        changes = tuple(change for change in diff.changes if change.binding not in failed)
        plan = replace(plan, acls=changes, notes=(*plan.notes, *remarks(self._rules, replace(diff, changes=changes))))
        unmapped = unmapped_sentence(diff)
        sentences = [*([unmapped] if unmapped else []), *_failures(list(failed.values()))]
        return self._said(plan, sentences, RefusalKind.INVALID_CONFIG)

    async def _without(self, plan: Plan, error: Refused | Unreachable) -> Plan:
        full = self.flow.acls.rules.policy is not AclPolicy.READ
        if isinstance(error, NoAuthorizer) and error.alias == self.source.alias and not full:
            # MirrorMaker 2 continues in this case, too: if the source has no ACLs, none are missing at the target. It
            # is a note for a preview, and for a flow whose file asks for ACLs. In the runs of other flows it would be a
            # note for ever.
            why = caused("acls.none", error)
            if (plan.only_shown or self.flow.acls.rules.asked) and await self._has_authorizer(self.target):
                return replace(plan, notes=(*plan.notes, why))
            log.info("%s", why)
            return plan
        return self._said(plan, [caused("acls.not-synced", error)], RefusalKind.NOT_AUTHORIZED)

    async def _has_authorizer(self, cluster: Cluster) -> bool:
        """Return whether a cluster has an authorizer; True if that is not known.

        If neither side has one, no ACL can be missing.
        """
        try:
            await described_acls(cluster)
        except NoAuthorizer:
            return False
        except (Refused, Unreachable):
            return True
        return True

    def _said(self, plan: Plan, sentences: Iterable[str], kind: RefusalKind) -> Plan:
        """Return the plan with what went wrong: as a note, or with the policy `full` as a refusal of the flow."""
        if self.flow.acls.rules.policy is AclPolicy.READ:
            return replace(plan, notes=(*plan.notes, *sentences))
        refusals = (refused_as(one, "", kind=kind) for one in sentences)
        return replace(plan, refusals=(*refusals, *plan.refusals))

    @property
    def _rules(self) -> AclRules:
        flow = self.flow
        return AclRules(
            flow=flow.flow,
            policy=flow.topics.policy,
            sync=flow.acls.rules,
            takes_topic=flow.topics.selection.takes,
            takes_group=lambda group: flow.syncs_groups and flow.groups.filter.takes(group),
            policy_name=flow.topics.policy_name,
            own_principal=principal_of(flow, "target").name,
        )

    @property
    def _settings(self) -> str:
        return self.flow.digest()


def acls_of_plan(lane: OpenLane) -> AclSyncer:
    """Return the part of a run's planning that syncs ACLs (`ferry.plan.parts`)."""
    return AclSyncer(flow=lane.flow, lane=lane.name, source=lane.source, target=lane.target)


def _failures(errors: list[Refused]) -> list[Sentence]:
    sentences = [said(error) for error in errors[:SHOWN_FAILURES]]
    more = len(errors) - SHOWN_FAILURES
    return [*sentences, sentence("acls.more-failed", more=more)] if more > 0 else sentences
