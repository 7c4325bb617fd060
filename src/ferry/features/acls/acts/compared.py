"""Compares the ACLs of both clusters before a switch; writes nothing."""

from __future__ import annotations

from ferry.features.acls.acts.sync import acls_of_plan
from ferry.features.acls.rules.compared import compared, not_permitted
from ferry.kafka.admin.acls import NoAuthorizer
from ferry.kafka.admin.topics import NotPermitted
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.model import Plan, sentence_of
from ferry.model.check import Check


async def check_acls(lane: OpenLane, view: LedgerView, plan: Plan) -> list[Check]:
    """Return whether the target's ACLs are as the source's ask for (`ferry.lane.checks`)."""
    if not lane.flow.syncs_acls:
        return [compared(None)]
    try:
        return [compared(await acls_of_plan(lane).diff(view, plan))]
    except NoAuthorizer as error:
        return [compared(None, sentence_of(error))]
    except NotPermitted as error:
        return [not_permitted(sentence_of(error))]
