"""A run from its first look to its sealed plan.

Look, fence, gather, decide, change topics, decide again, judge, claim topics, act for features, seal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import attrgetter

from ferry.clock import wall_ms
from ferry.config.flow.guards import OnGuard
from ferry.errors import Refused, Superseded
from ferry.lane.open_lane import OpenLane
from ferry.lane.pruning import unswept_tombstones
from ferry.lane.upkeep import keep_short
from ferry.ledger.codec import accounted_records, gap_record
from ferry.ledger.deployments import admitted
from ferry.ledger.draining import standing_back
from ferry.ledger.ledger import LedgerView, accounted
from ferry.ledger.map_block import ReceiptChain
from ferry.ledger.rebuilt import rebuild_notes
from ferry.ledger.unit_codec import era_record
from ferry.ledger.window_codec import window_record
from ferry.messages.catalogue import sentence, what_is
from ferry.model import ChangeKind, Origin, Plan, Record, RefusalKind, Sentence
from ferry.plan.change_topics import Changed, change_topics
from ferry.plan.claims import claim
from ferry.plan.dead_letters import with_letters
from ferry.plan.gather import gather_outline
from ferry.plan.gather_all import gather_again, gather_all, with_lost_rules
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION, RunOptions, rules_of
from ferry.plan.parts import is_of_whole_flow, judging_parts, plan_parts
from ferry.plan.preview import of_this_run, refuse_swapped, window
from ferry.plan.rules.clock_skew import skew_sentence
from ferry.plan.rules.deletes import deleted_notes, forgetting, forgotten
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan, refuse_unplannable
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.searched import searched
from ferry.plan.rules.starts import later_start_records, start_records
from ferry.plan.rules.tombstones import seen_records
from ferry.plan.rules.topics import creation_notes
from ferry.plan.rules.windows import refuse_endless
from ferry.plan.transforms import transform_digests
from ferry.plan.windows import windowed
from ferry.protocol.driver import Driver, fence_and_seal


async def open_planned(lane: OpenLane, run: str, origin: Origin, options: RunOptions) -> Plan:
    """Open a run: fence earlier writers, decide, create and grow topics, seal the plan in the ledger.

    A run record ends the active run of the lane. So anything that cannot be planned, and a ledger that this Ferry
    cannot read, is an error before any record is written. Only the ledger's topic is created. To judge this, the ledger
    is read up to the end that the broker returns. `fence_and_seal` continues from there, up to records of its own.
    After the plan is sealed, a summary and pruning may follow; their failure is a warning. Raises Superseded while a
    switch drains the flow.
    """
    flow = lane.flow
    refuse_endless(lane.name, options.window)
    digests, lost = transform_digests(flow)
    await lane.ledger.open(flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION)
    view = await lane.cache.view()
    await refuse_swapped(lane, view)
    record = admitted(view, lane.record(run, origin), take_over=options.take_over)
    why = standing_back(view, record, wall_ms())
    if why is not None:
        raise Superseded(why)
    outline = await gather_outline(flow, lane.name, lane.source, lane.target, view)
    with of_this_run(options):
        refuse_unplannable(rules_of(flow, lane.name, options), outline)
    if options.window is not None:
        await window(lane, view, options)

    async def decide(driver: Driver) -> Plan:
        return await decide_and_change(lane, driver, options, digests, lost)

    plan, driver = await fence_and_seal(lane.driver_port(), record, decide, view)
    lane.cache.learn(driver.view, driver.read_ms)  # the driver has read the sealed plan, too
    await keep_short(lane, driver, plan)
    return plan


async def decide_and_change(
    lane: OpenLane, driver: Driver, options: RunOptions, digests: Mapping[str, str], lost: Mapping[str, str]
) -> Plan:
    """Plan an opened run: gather facts, decide, change the target's topics, decide again from what is there then.

    `digests` and `lost` are those of the flow's transforms (`transform_digests`). New claims of topics are
    committed at once, so that other flows see them. So is what is forgotten of deleted topics, and what a feature is
    about to change outside of the ledger. `Driver.keep` is given the rest, which is written with the plan.
    """
    run, generation = driver.opened.record.run, driver.opened.generation
    lane.cache.learn(driver.view, driver.read_ms)
    clock = _clock_skew(lane)
    rules = rules_of(lane.flow, lane.name, options, digests, lost)
    before = with_lost_rules(lane, await gather_all(lane, driver.view), digests)
    windows = None
    if options.window is not None:
        windows = await windowed(lane.name, before, options.window, options.topics, lane.source, driver.view, run)
        before = windows.facts

    wanted = decide_plan(rules, before, run, generation)
    # No fence covers changes outside the ledger.
    changed = await change_topics(lane.target, wanted.changes, driver.refuse_superseded)
    facts, plan, created = before, wanted, []
    if any(change.kind is not ChangeKind.CONFIGURE for change in wanted.changes):
        facts = await _after_changes(lane, driver, before, wanted, changed)
        plan = decide_plan(rules, facts, run, generation)
        created = creation_notes(rules, before, changed.done)

    plan = await with_letters(lane.flow, rules, facts, lane.target, plan, driver.refuse_superseded)
    for judge in judging_parts(lane):
        plan = await judge.act(driver, plan)
    plan = await claim(lane, driver, facts, plan)
    notes = [*_opening_notes(lane, driver, clock), *deleted_notes(changed.done), *created]
    plan = _with_changes(plan, changed, notes)
    if clock is not None:
        plan = replace(plan, lifted=(*plan.lifted, RefusalKind.CLOCK_SKEW))
    for part in plan_parts(lane, whole=is_of_whole_flow(options, facts.lane)):
        plan = await part.act(driver, plan)

    driver.keep(_starts(lane, driver.view, before, windowed=windows is not None))
    driver.keep(gap_record(lane.name, gap) for gap in plan.gaps)
    read = _with_refused_settings_copied(plan, changed)
    driver.keep(seen_records(rules, facts, read) if windows is None else map(window_record, windows.records))
    driver.keep(_searched(lane, driver.view, rules, facts, plan))
    driver.keep(era_record(lane.name, era) for era in plan.eras if era.since == generation)
    return plan


def _clock_skew(lane: OpenLane) -> Sentence | None:
    """Return by how much the clock of this machine is off, if the flow continues in spite of it.

    None if the clock is near enough. Raises Refused if the flow's guard does not let it continue.
    """
    clock = skew_sentence(lane.ledger.skew_ms or 0, lane.target.alias)
    if clock is not None and lane.flow.topics.guards.clock_skew.default is OnGuard.FAIL:
        raise Refused(clock)
    return clock


def _opening_notes(lane: OpenLane, driver: Driver, clock: Sentence | None) -> list[Sentence]:
    """Return the notes on how the run was opened."""
    taken = driver.opened.record.took_over
    notes = [sentence("run.took-over", lane=lane.name, deployment=taken)] if taken else []
    notes += rebuild_notes(driver.view, driver.opened)
    if clock is not None:
        notes.append(sentence("passed.clock", what=what_is(clock)))
    return notes


async def _after_changes(lane: OpenLane, driver: Driver, facts: Facts, wanted: Plan, changed: Changed) -> Facts:
    """Return the facts after the changes: the target's topics are gathered again, nothing else.

    What was deleted is removed from the ledger. If a run dies between the deletion and that record, the next run
    finds neither topic, and removes it then.
    """
    view = driver.view
    deleted = [change for change in changed.done if change.kind is ChangeKind.DELETE]
    if deleted:
        names = {change.topic for change in deleted}

        def gone(of: ReceiptChain) -> bool:
            return of.lane == lane.name and of.target.topic in names

        blocks = [Record(key=key, value=None) for key in await lane.cache.block_keys(view, gone)]
        unswept = await unswept_tombstones(lane.ledger, view, lane.name, names)
        forgets = forgetting(view, facts, wanted, deleted, await lane.cache.rows(view, gone))
        await driver.commit([*unswept, *forgets, *blocks])
    return await gather_again(lane, forgotten(facts, deleted), view, changed.failed)


def _starts(lane: OpenLane, view: LedgerView, facts: Facts, *, windowed: bool) -> list[Record]:
    """Return the records of where partitions begin, also of topics not copied yet: paused, refused, not created."""
    if facts.lane.first_run:
        return start_records(lane.name, facts, windowed=windowed)
    return later_start_records(view, lane.name, facts, windowed=windowed)


def _searched(lane: OpenLane, view: LedgerView, rules: Rules, facts: Facts, plan: Plan) -> list[Record]:
    """Return the records of how far the copies were searched for records of other producers."""
    ids = {name: topic.topic_id for name, topic in facts.target.topics.items()}
    return accounted_records(lane.name, searched(rules, facts, plan, accounted(view, lane.name, ids)), ids)


def _with_changes(plan: Plan, changed: Changed, notes: Iterable[str]) -> Plan:
    """Return the plan with the outcome of the topic changes, and with `notes` before its own."""
    refused = (*plan.refusals, *changed.failed.values(), *changed.unset.values())
    return replace(
        plan,
        changes=changed.done,
        refusals=tuple(sorted(refused, key=attrgetter("order"))),
        notes=(*notes, *plan.notes, *changed.notes),
    )


def _with_refused_settings_copied(plan: Plan, changed: Changed) -> Plan:
    """Return the plan without the refusals of settings and deletions: topics with those alone are still copied."""
    return replace(plan, refusals=tuple(one for one in plan.refusals if one not in changed.unset.values()))
