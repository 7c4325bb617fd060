"""What a run would do now, without writing anything: its plan, and its window in offsets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused
from ferry.kafka.admin.uncopied import client_quotas, scram_users
from ferry.lane.open_lane import OpenLane
from ferry.lane.session import both_clusters
from ferry.ledger.deployments import conflict
from ferry.ledger.draining import standing_back
from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipts import last_receipts
from ferry.ledger.runs import has_run
from ferry.messages.catalogue import caused, sentence
from ferry.model import Origin, Plan, code_of
from ferry.plan.dead_letters import letters_shown
from ferry.plan.gather import Positions, gather_facts
from ferry.plan.gather_all import gather_all, with_lost_rules
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION, RunOptions, rules_of
from ferry.plan.others.foreign_records import without_own
from ferry.plan.parts import is_of_whole_flow, judging_parts, plan_parts
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.lost_ledger import forgotten_places
from ferry.plan.rules.not_copied import not_copied
from ferry.plan.rules.planning import NO_GENERATION, decide_plan, refuse_unplannable
from ferry.plan.rules.windows import WindowLook, refuse_endless
from ferry.plan.transforms import transforms_to_show
from ferry.plan.windows import windowed

_NOT_OPENED = "run.would-be-refused"
"""Code of the note that a run would not be opened."""


async def preview(lane: OpenLane, view: LedgerView, options: RunOptions, *, here: bool = True) -> Plan:
    """Return the plan that a run would have now; writes and creates nothing. Raises what `survey` raises."""
    return (await survey(lane, view, options, here=here))[1]


async def survey(lane: OpenLane, view: LedgerView, options: RunOptions, *, here: bool = True) -> tuple[Facts, Plan]:
    """Return the plan that a run would have now, and the facts it was decided from; writes and creates nothing.

    `here`: whether this machine plans the flow's runs, so that what it cannot do is refused (`transforms_to_show`).
    Raises Refused if nothing of the flow may be planned: another cluster under an alias, swapped aliases. Raises
    BadInput if the run is narrowed to a topic that the flow does not copy, or if a backfill lane has no window.
    """
    refuse_endless(lane.name, options.window)
    await refuse_swapped(lane, view)
    shown = transforms_to_show(lane.flow, here=here)
    facts = with_lost_rules(lane, await gather_all(lane, view, Positions.AT_ONCE), shown.digests)
    if options.window is not None:
        found = await windowed(lane.name, facts, options.window, options.topics, lane.source, view, "(dry run)")
        facts = found.facts
    others = facts.others
    if (others.foreign or others.open_transactions or forgotten_places(facts)) and await lane.ledger.exists():
        facts = without_own(facts, lane.name, await lane.cache.view())
    rules = rules_of(lane.flow, lane.name, options, shown.digests, shown.lost)
    with of_this_run(options):
        plan = decide_plan(rules, facts, "(dry run)", NO_GENERATION)

    quotas, users = await client_quotas(lane.source), await scram_users(lane.source)
    plan = replace(plan, not_copied=not_copied(lane.flow.flow, quotas, users, lane.source.topics))
    plan = await letters_shown(lane.flow, lane.target, plan)
    for part in (*judging_parts(lane), *plan_parts(lane, whole=is_of_whole_flow(options, facts.lane))):
        plan = await part.preview(view, plan)
    why = await _refusal_of_run(lane, view, plan.run, options)
    refused = [] if why is None else [caused(_NOT_OPENED, why)]
    return facts, replace(plan, notes=(*refused, *shown.notes, *plan.notes))


def refuses(plan: Plan) -> bool:
    """Return whether a run would refuse something of a previewed plan, or would not be opened at all."""
    return bool(plan.refusals) or any(code_of(note) == _NOT_OPENED for note in plan.notes)


async def window(lane: OpenLane, view: LedgerView, options: RunOptions) -> WindowLook:
    """Return the run's window in offsets, and how far the lane has come in it; writes nothing.

    Raises BadInput without a window, and for one that ends in the future or names what the source does not have. Raises
    Refused if the window would break the order of a partition, or if records of the window are deleted. Raises Refused
    if nothing of the flow may be planned.
    """
    if options.window is None:
        raise BadInput("no window is named: give one")
    facts = await gather_facts(lane.flow, lane.name, lane.source, lane.target, view, positions=Positions.NONE)
    found = await windowed(lane.name, facts, options.window, options.topics, lane.source, view, "")
    refuse_unplannable(rules_of(lane.flow, lane.name, options), found.facts)
    return found.look


async def refuse_swapped(lane: OpenLane, view: LedgerView) -> None:
    """Raise Refused if the flow's ledger is on the source, written from the cluster that is the target now."""
    topic = lane.ledger.place.topic
    if has_run(view, lane.name) or topic not in await lane.source.refresh([topic]):
        return
    flow = lane.flow
    theirs = await lane.ledgers.of(lane.source, flow.flow.source).view()
    if any(last.source_cluster_id == lane.target.cluster_id for last in last_receipts(theirs, lane.name).values()):
        raise Refused(sentence("clusters.swapped", ledger=topic, **both_clusters(flow)))


@contextmanager
def of_this_run(options: RunOptions) -> Iterator[None]:
    """Mark a BadInput that `decide_plan` raises as being about the topics that the run is narrowed to."""
    try:
        yield
    except BadInput as error:
        error.of_run = options.only is not None
        raise


async def _refusal_of_run(lane: OpenLane, view: LedgerView, run: str, options: RunOptions) -> str | None:
    """Return why a run would not be opened now; None if it would be."""
    record = lane.record(run, Origin())
    why = standing_back(view, record, wall_ms()) or (None if options.take_over else conflict(view, record))
    return why or await _unfit_ledger(lane)


async def _unfit_ledger(lane: OpenLane) -> str | None:
    """Return why a run would refuse the ledger's settings, if this login may read them; None if it would not."""
    if not await lane.ledger.exists():
        return None
    try:
        return await lane.ledger.unfit(lane.flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION)
    except Refused:
        return None
