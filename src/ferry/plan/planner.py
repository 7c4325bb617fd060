"""Planning a micro-run: from the facts of both clusters and of the ledger to a plan and its topic changes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import OnGuard
from ferry.errors import BadInput, FerryError, Refused, Superseded
from ferry.kafka.admin.uncopied import client_quotas, scram_users
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.open_transactions import named_transactions
from ferry.lane.ledger_cache import LedgerCache, LedgerCaches
from ferry.lane.opening import driver_port, lane_record
from ferry.lane.pruning import give_up, sweep, tombstones_of, unswept_tombstones
from ferry.ledger.codec import gap_record
from ferry.ledger.deployments import admitted, conflict
from ferry.ledger.draining import standing_back
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import Chain
from ferry.ledger.pruning import unswept
from ferry.ledger.rebuilt import rebuild_notes
from ferry.ledger.receipts import last_receipts
from ferry.ledger.runs import has_run, slots_to_fence, superseded_by
from ferry.ledger.summary import is_due
from ferry.ledger.unit_codec import era_record
from ferry.ledger.window_codec import window_record
from ferry.messages.catalogue import sentence, what_is
from ferry.model import ChangeKind, Origin, Plan, Record, RefusalKind, RunRecord, Sentence, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.change_topics import Changed, change_topics
from ferry.plan.claims import Claims
from ferry.plan.dead_letters import letters_shown, with_letters
from ferry.plan.gather import Positions, gather_facts, gather_outline, with_deleted
from ferry.plan.gather_targets import gather_targets, with_resources
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION, RunOptions, rules_of
from ferry.plan.others.foreign_records import with_foreign_writers, without_own
from ferry.plan.others.other_flows import with_neighbours
from ferry.plan.parts import plan_parts
from ferry.plan.rules.clock import skew_sentence
from ferry.plan.rules.dead_letters import skipping
from ferry.plan.rules.deletes import deleted_notes, forgetting, forgotten
from ferry.plan.rules.facts import Facts, LaneFacts
from ferry.plan.rules.lost_ledger import forgotten_places
from ferry.plan.rules.not_copied import not_copied
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.starts import later_start_records, start_records
from ferry.plan.rules.tombstones import seen_records
from ferry.plan.rules.topics import creation_notes
from ferry.plan.rules.windows import WindowLook, refuse_endless
from ferry.plan.transforms import lost_rules, transform_digests, transforms_to_show
from ferry.plan.truncation import with_truncations
from ferry.plan.windows import Windowed, windowed
from ferry.protocol.driver import Driver
from ferry.protocol.names import transactional_id
from ferry.protocol.opening import open_run

log = logging.getLogger(__name__)


@contextmanager
def of_this_run(options: RunOptions) -> Iterator[None]:
    """Mark a BadInput that `decide_plan` raises as being about the topics that the run is narrowed to."""
    try:
        yield
    except BadInput as error:
        error.of_run = options.only is not None
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Plans runs of one flow in one lane over open connections. Lives on their event loop.

    Each ledger is read from its beginning once, by the first caller of `ledgers`; later reads continue from there.
    """

    flow: FlowConfig
    lane: str
    source: Cluster
    target: Cluster
    ledger: LedgerTopic
    ledgers: LedgerCaches

    async def preview(self, view: LedgerView, options: RunOptions) -> Plan:
        """Return the plan that a run would have now; writes and creates nothing.

        Raises Refused if nothing of the flow may be planned: another cluster under an alias, swapped aliases. Raises
        BadInput if the run is narrowed to a topic that the flow does not copy, or if a backfill lane has no window.
        """
        return (await self.survey(view, options))[1]

    async def survey(self, view: LedgerView, options: RunOptions) -> tuple[Facts, Plan]:
        """Return the plan that a run would have now, and the facts it was decided from; writes and creates nothing.

        Raises Refused if nothing of the flow may be planned: another cluster under an alias, swapped aliases. Raises
        BadInput if the run is narrowed to a topic that the flow does not copy, or if a backfill lane has no window.
        """
        refuse_endless(self.lane, options.window)
        await self._refuse_swapped(view)
        shown = transforms_to_show(self.flow)
        facts = self._with_lost_rules(await self.facts(view, positions=Positions.AT_ONCE), shown.digests)
        if options.window is not None:
            facts = (await self._windowed(view, facts, options, "(dry run)")).facts
        others = facts.others
        if (others.foreign or others.open_transactions or forgotten_places(facts)) and await self.ledger.exists():
            facts = without_own(facts, self.lane, await self.ledger_cache.view())
        rules = rules_of(self.flow, self.lane, options, shown.digests, shown.lost)
        with of_this_run(options):
            plan = decide_plan(rules, facts, "(dry run)", -1)
        quotas, users = await client_quotas(self.source), await scram_users(self.source)
        plan = replace(plan, not_copied=not_copied(self.flow.flow, quotas, users, self.source.topics))
        plan = await letters_shown(self.flow, self.target, plan)
        if _is_whole(options, facts.lane):
            for part in plan_parts(self):
                plan = await part.preview(view, plan)
        record = self.record(plan.run, Origin())
        why = standing_back(view, record, wall_ms()) or (None if options.take_over else conflict(view, record))
        why = why or await self._unfit_ledger()
        refused = [] if why is None else [sentence("run.would-be-refused", why=why)]
        return facts, replace(plan, notes=(*refused, *shown.notes, *plan.notes))

    async def _unfit_ledger(self) -> str | None:
        """Return why a run would refuse the ledger's settings, if this login may read them; None if it would not."""
        if not await self.ledger.exists():
            return None
        try:
            return await self.ledger.unfit(self.flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION)
        except Refused:
            return None

    async def open(self, run: str, origin: Origin, options: RunOptions) -> Plan:
        """Open a run: fence earlier writers, decide, create and grow topics, seal the plan in the ledger.

        A run record ends the active run of the lane. So anything that cannot be planned, and a ledger that this Ferry
        cannot read, is an error before anything is written. For that the ledger is read up to its current end first.
        That end is the broker's answer, so `open_run` reads on from there up to records of its own. Raises Superseded
        while a switch drains the flow.
        """
        refuse_endless(self.lane, options.window)
        digests, lost = transform_digests(self.flow)
        await self.ledger.open(self.flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION)
        known = await self.ledger_cache.view()
        await self._refuse_swapped(known)
        record = admitted(known, self.record(run, origin), take_over=options.take_over)
        why = standing_back(known, record, wall_ms())
        if why is not None:
            raise Superseded(why)
        outline = await gather_outline(self.flow, self.lane, self.source, self.target, known)
        with of_this_run(options):
            decide_plan(rules_of(self.flow, self.lane, options), outline, run, -1)
        if options.window is not None:
            await self.window(known, options)

        async def decide(driver: Driver) -> Plan:
            return await self._decide(driver, options, digests, lost)

        plan, driver = await open_run(self.driver_port(), record, decide, known)
        self.ledger_cache.learn(driver.view, driver.read_ms)  # the driver has read the sealed plan, too
        await self._keep_short(driver, plan)
        return plan

    async def _keep_short(self, driver: Driver, plan: Plan) -> None:
        """Write a summary of the ledger if one is due, and prune it.

        It happens after the plan is sealed, so nothing waits.

        The ledger as it was when the plan was decided was read up to a record of this run. If summary or pruning fails,
        the run continues, and the next run does it.
        """
        if self.ledger_cache.last is None:
            return
        view, read_ms = self.ledger_cache.last
        due = is_due(view)
        prunes = self.flow.ledger.prunes and (due or bool(unswept(view, self.lane)))
        if not due and not prunes:
            return
        try:
            if superseded_by(await self.ledger_cache.view(), self.lane, plan.generation) is not None:
                return  # the newer run does it
            if due:
                await self.ledger_cache.summarise(view, plan.generation, read_ms)
            if prunes:
                await self._prune(driver, plan, more=due)
        except FerryError as error:
            log.warning("run %s: summary and pruning of the ledger are left to the next run: %s", plan.run, error)

    async def _prune(self, driver: Driver, plan: Plan, *, more: bool) -> None:
        """Delete some of the ledger records that earlier runs discarded, and with `more` discard others.

        Raises Superseded, and writes nothing, when a newer run owns the lane.
        """
        view = await self.ledger_cache.view()
        most = tombstones_of(len(plan.slices))
        await sweep(self.ledger, view, self.lane, most, driver.commit)
        if more:
            await give_up(view, self.lane, plan.run, self.source, self.target, driver.commit)

    def driver_port(self) -> KafkaDriver:
        """Return the port that opens a run of the lane: its ledger, and the slots to fence."""
        return driver_port(self.flow, self.lane, self.ledger)

    def record(self, run: str, origin: Origin) -> RunRecord:
        """Return the record that opens a run of this flow in this lane now."""
        return lane_record(self.flow, self.lane, run, origin)

    async def _refuse_swapped(self, view: LedgerView) -> None:
        """Raise Refused if the flow's ledger is on the source, written from the cluster that is the target now."""
        topic = self.ledger.place.topic
        if has_run(view, self.lane) or topic not in await self.source.refresh([topic]):
            return
        theirs = await self.ledgers.of(self.source, self.flow.flow.source).view()
        if any(last.source_cluster_id == self.target.cluster_id for last in last_receipts(theirs, self.lane).values()):
            source, target = self.flow.flow.source, self.flow.flow.target
            raise Refused(
                f"aliases {source} and {target} are swapped: the cluster that {source} leads to has this flow's ledger "
                f"{topic}, written from the one that {target} leads to now: correct the bootstrap servers "
                f"({self.flow.where('source', 'consumer', 'bootstrap.servers')}, "
                f"{self.flow.where('target', 'producer', 'bootstrap.servers')}), or use other aliases"
            )

    async def _decide(
        self, driver: Driver, options: RunOptions, digests: Mapping[str, str], lost: Mapping[str, str]
    ) -> Plan:
        """Plan an opened run: gather facts, decide, change the target's topics, decide again from what is there then.

        What is decided is given to `Driver.keep`, so it is written with the plan.
        """
        run, generation = driver.opened.record.run, driver.opened.generation
        self.ledger_cache.learn(driver.view, driver.read_ms)
        clock = self._clock_skew()
        rules = rules_of(self.flow, self.lane, options, digests, lost)
        before = self._with_lost_rules(await self.facts(driver.view), digests)
        windows = None if options.window is None else await self._windowed(driver.view, before, options, run)
        if windows is not None:
            before = windows.facts

        wanted = decide_plan(rules, before, run, generation)
        if wanted.changes:
            await driver.refuse_superseded()  # no fence covers changes outside the ledger
        changed = await change_topics(self.target, wanted.changes)
        facts, plan, created = before, wanted, []
        if any(change.kind is not ChangeKind.CONFIGURE for change in wanted.changes):
            facts = await self._changed(driver, before, wanted, changed)
            plan = decide_plan(rules, facts, run, generation)
            created = creation_notes(rules, before, changed.done)

        if skipping(self.flow, plan) and self.flow.records.dead_letters.topic not in self.target.topics:
            await driver.refuse_superseded()  # before that topic is created
        plan = await with_letters(self.flow, rules, facts, self.target, plan)
        decided = plan = await self._claims.claim(driver, facts, plan)
        notes = [*self._opening_notes(driver, clock), *deleted_notes(changed.done), *created]
        plan = _with_changes(plan, changed, notes)
        if clock is not None:
            plan = replace(plan, lifted=(*plan.lifted, RefusalKind.CLOCK_SKEW))
        if _is_whole(options, facts.lane):
            for part in plan_parts(self):
                plan = await part.act(driver, plan)

        driver.keep(self._starts(driver.view, before, windowed=windows is not None))
        driver.keep(gap_record(self.lane, gap) for gap in plan.gaps)
        driver.keep(seen_records(rules, facts, decided) if windows is None else map(window_record, windows.records))
        driver.keep(era_record(self.lane, era) for era in plan.eras if era.since == generation)
        return plan

    def _clock_skew(self) -> Sentence | None:
        """Return by how much the clock of this machine is off, if the flow continues in spite of it.

        None if the clock is near enough. Raises Refused if the flow's guard does not let it continue.
        """
        clock = skew_sentence(self.ledger.skew_ms or 0, self.target.alias)
        if clock is not None and self.flow.topics.guards.clock_skew.default is OnGuard.FAIL:
            raise Refused(clock)
        return clock

    def _opening_notes(self, driver: Driver, clock: Sentence | None) -> list[Sentence]:
        """Return the notes on how the run was opened."""
        taken = driver.opened.record.took_over
        notes = [sentence("run.took-over", lane=self.lane, deployment=taken)] if taken else []
        notes += rebuild_notes(driver.view, driver.opened)
        if clock is not None:
            notes.append(sentence("passed.clock", what=what_is(clock)))
        return notes

    async def _changed(self, driver: Driver, facts: Facts, wanted: Plan, changed: Changed) -> Facts:
        """Return the facts after the changes: the target's topics are gathered again, nothing else.

        What was deleted is removed from the ledger. If a run dies between the deletion and that record, the next run
        finds neither topic, and removes it then.
        """
        view = driver.view
        deleted = [change for change in changed.done if change.kind is ChangeKind.DELETE]
        if deleted:
            names = {change.topic for change in deleted}

            def gone(of: Chain) -> bool:
                return of.lane == self.lane and of.target.topic in names

            blocks = [Record(key=key, value=None) for key in await self.ledger_cache.block_keys(view, gone)]
            unswept = await unswept_tombstones(self.ledger, view, self.lane, names)
            forgets = forgetting(view, facts, wanted, deleted, await self.ledger_cache.rows(view, gone))
            await driver.commit([*unswept, *forgets, *blocks])
        facts = forgotten(facts, deleted)
        sources = {name: topic for name, topic in facts.source.topics.items() if name not in changed.failed}
        names = facts.source.topics.keys() | facts.source.absent
        targets = (await gather_targets(self.flow, self.target, names, facts.lane.eras.values())).topics
        facts = replace(
            facts,
            source=replace(facts.source, topics=sources),
            target=replace(facts.target, topics=targets),
        )
        return await self._with_others(facts, view)

    async def with_newest(self, view: LedgerView) -> LedgerView:
        """Return a view with the lane's newest run complete, as it is now; the same view if there is no run."""
        return await self.ledger_cache.view_with_newest(self.lane, 1) if view.runs else view

    async def window(self, view: LedgerView, options: RunOptions) -> WindowLook:
        """Return the run's window in offsets, and how far the lane has come in it; writes nothing.

        Raises BadInput for a window that ends in the future or names what the source does not have. Raises Refused if
        the window would break the order of a partition, if records of it are deleted, or if nothing of the flow may be
        planned.
        """
        facts = await gather_facts(self.flow, self.lane, self.source, self.target, view, positions=Positions.NONE)
        found = await self._windowed(view, facts, options, "")
        decide_plan(rules_of(self.flow, self.lane, options), found.facts, "(window)", -1)
        return found.look

    async def _windowed(self, view: LedgerView, facts: Facts, options: RunOptions, run: str) -> Windowed:
        if options.window is None:
            raise BadInput("no window is named: give one")
        return await windowed(self.lane, facts, options.window, options.topics, self.source, view, run)

    def _starts(self, view: LedgerView, facts: Facts, *, windowed: bool) -> list[Record]:
        """Return the records of where partitions begin, also of topics not copied yet: paused, refused, not created."""
        if facts.lane.first_run:
            return start_records(self.lane, facts, windowed=windowed)
        return later_start_records(view, self.lane, facts, windowed=windowed)

    @property
    def _claims(self) -> Claims:
        return Claims(flow=self.flow, lane=self.lane, target=self.target, ledgers=self.ledgers)

    @property
    def ledger_cache(self) -> LedgerCache:
        """The flow's ledger as far as this process has read it."""
        return self.ledgers.of(self.target, self.flow.flow.source)

    async def facts(self, view: LedgerView, positions: Positions = Positions.SETTLED) -> Facts:
        """Gather the facts that a plan is decided from."""
        facts = await gather_facts(self.flow, self.lane, self.source, self.target, view, positions=positions)
        facts = await with_truncations(facts, self.lane, self.source, self.target, view, self.ledger_cache)
        facts = replace(
            facts,
            source=await with_deleted(self.flow, facts, self.source),
            target=await with_resources(self.flow, facts.target, self.target),
            lane=replace(facts.lane, open_on_ledger=await self._open_on_ledger(view)),
        )
        return await self._with_others(facts, view)

    async def _open_on_ledger(self, view: LedgerView) -> dict[TopicPartition, OpenTransaction]:
        """Return the oldest transaction that is open on the ledger, if the view has records of one."""
        if not view.open:
            return {}
        place = self.ledger.place
        begun = (await named_transactions(self.target, [place])).get(place)
        if begun is None:  # the leader of the ledger's partition does not report more about it
            return {place: OpenTransaction.untold(min(one.offset for one in view.open))}
        return {place: begun[0]} if begun else {}

    def _with_lost_rules(self, facts: Facts, digests: Mapping[str, str]) -> Facts:
        if not facts.lane.eras:
            return facts
        return replace(facts, lane=replace(facts.lane, lost_rules=lost_rules(self.flow, facts.lane.eras, digests)))

    async def _with_others(self, facts: Facts, view: LedgerView) -> Facts:
        """Return `facts` with what others wrote to the target, up to the ends in the facts or later ones."""
        slots = range(max(self.flow.copy.tasks_max, slots_to_fence(view, self.lane)))
        writers = frozenset(transactional_id(self.flow.flow, self.lane, slot) for slot in slots)
        facts = await with_foreign_writers(self.flow, self.lane, facts, self.target, view, writers)
        return await with_neighbours(self.flow, self.lane, facts, self.source, self.target, self.ledgers, view)


def _with_changes(plan: Plan, changed: Changed, notes: Iterable[str]) -> Plan:
    """Return the plan with the outcome of the topic changes, and with `notes` before its own."""
    refused = (*plan.refusals, *changed.failed.values(), *changed.unset.values())
    return replace(
        plan,
        changes=changed.done,
        refusals=tuple(sorted(refused, key=attrgetter("order"))),
        notes=(*notes, *plan.notes, *changed.notes),
    )


def _is_whole(options: RunOptions, lane: LaneFacts) -> bool:
    """Return whether a run is of the whole flow: not narrowed to topics or a window, and not paused."""
    return options.topics is None and options.window is None and "" not in lane.pauses
