"""Reads at the target whether batches with identical offsets may arrive after clients have written there (ADR 57)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ferry.clock import wall_ms
from ferry.errors import Retryable
from ferry.features.identical.acts.short import look_short
from ferry.features.identical.acts.target import standings
from ferry.features.identical.rules.late import Sender, lateness_of, reaching, senders, until_ms
from ferry.features.identical.rules.planned import CLEANUP, IDLE, LAST_SEQUENCE, RETENTION_BYTES, continuing
from ferry.features.identical.rules.short import named
from ferry.features.identical.settings import IdenticalSettings
from ferry.kafka.admin.broker_settings import broker_settings
from ferry.kafka.admin.topic_settings import topic_settings
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.ledger_cache import LedgerCache
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.ledger.producer_codec import continued, lane_producer, markings, sent_places
from ferry.ledger.receipts import last_receipts
from ferry.messages.catalogue import sentence
from ferry.model import Plan, Slice, TopicPartition
from ferry.model.check import Check
from ferry.model.topic_settings import TopicSettings
from ferry.plan.lag import first_timestamps
from ferry.protocol.driver import KEPT_RUNS
from ferry.protocol.drops import Blocked, Drop, Dropped
from ferry.words import several, to_the_second


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """What the target shows of the partitions to which a lane may have sent batches with identical offsets.

    `ends` are the ends of those that hold the lane's records up to their ends. `until` are those to which a batch may
    still come, with the time (ms) until then; None: no bound is known. `why` says of some why: another producer has
    written there, or `sized`: a size limit of the topic is the only reason. `unstamped` is the ledger's topic, if the
    record of its newest run does not have the broker's time: then no bound is known.
    """

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    until: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    why: Mapping[TopicPartition, str] = field(default_factory=dict)
    sized: Collection[TopicPartition] = ()
    unstamped: str = ""

    @property
    def only_waits(self) -> bool:
        """Whether a size limit is the only reason, and the time is known: a switch can be begun, and must wait."""
        return all(place in self.sized and at is not None for place, at in self.until.items())

    def sentence(self, alias: str, *, begun: bool = False) -> str:
        """Say of which partitions of the cluster it is, until when, and why.

        `begun`: a switch has fenced the lane, so the time does not move any more.
        """
        known = [one for one in self.until.values() if one is not None]
        # Another producer above all: a size limit is not a fault.
        first = next((self.why[one] for one in sorted(self.until, key=self._rank) if one in self.why), None)
        facts = {
            "places": several(sorted(map(str, self.until))),
            "cluster": alias,
            "because": "" if first is None else f" ({first})",
        }
        if self.unstamped:
            return sentence("identical.late.unstamped", topic=self.unstamped, **facts)
        if len(known) < len(self.until):
            return sentence("identical.late.unbounded", **facts)
        code = "identical.late" if begun else "identical.late.before"
        return sentence(code, until=to_the_second(max(known)), **facts)

    def _rank(self, place: TopicPartition) -> tuple[bool, TopicPartition]:
        return place in self.sized, place


async def look_late(
    target: Cluster, ledger: TopicPartition, cache: LedgerCache, lane: str, *, fenced: int = -1, drained: bool = False
) -> Late:
    """Return what may arrive at the target, whose ledger is the partition `ledger`, read by `cache`.

    Call it when a run has fenced the lane: what that run shows holds from then on. `fenced` is its generation. Without
    one, it is as if a run did so now. `drained`: as if all that was planned were there. Raises Unreachable if the
    target does not answer, or does not show that run.
    """

    async def ask() -> LedgerView | None:
        if not sent_places(_showing(await cache.view(), fenced), lane):
            return None
        return _showing(await cache.view_with_newest(lane, KEPT_RUNS), fenced)

    view = await target.retrying(ask)
    if view is None:
        return Late()
    places = sent_places(view, lane)
    topics = await target.refresh({place.topic for place in places})
    found = senders(view, lane)
    ends, why = await _ends(target, _pieces(view, lane, found, [one for one in places if one.topic in topics]))
    settings = (await topic_settings(target, sorted(topics), names=(RETENTION_BYTES, CLEANUP))).found
    lasting = {name for name, one in settings.items() if _lasts(one)}
    # Up to where the broker compares late batches, as long as the lane's last batch is there.
    compared = {place: LAST_SEQUENCE if drained else end for place, end in ends.items()}
    # A batch may also come to a topic that is created again.
    reached = {
        place: some
        for place in sorted(places)
        if (some := reaching(found, place, compared.get(place, -1) if place.topic in lasting else -1))
    }
    if not reached:
        return Late(ends=ends, why=why)
    newest = max(run.generation for run in view.runs if run.record.lane == lane)
    stamps = await _stamps(target, ledger, [newest, *(one.after for some in reached.values() for one in some)])
    # All times are of the ledger's broker: the newest run began at `now_ms`, or before.
    now_ms = stamps.get(newest)
    lateness = None if now_ms is None else await _lateness(target)
    fenced_ms = max(wall_ms(), now_ms or 0)
    until = {place: until_ms(some, stamps, fenced_ms, lateness) for place, some in reached.items()}
    left = {place: at for place, at in until.items() if at is None or at > (now_ms or 0)}
    sizes = {
        place: sentence("identical.late.size", topic_there=place.topic, value=limit)
        for place in left
        if place in ends and (limit := _size_limit(settings.get(place.topic))) is not None
    }
    # Those that would be safe without their size limit.
    unlimited = {place for place in sizes if not reaching(found, place, compared.get(place, -1))}
    unstamped = ledger.topic if now_ms is None else ""
    return Late(ends=ends, until=left, why=sizes | why, sized=frozenset(unlimited), unstamped=unstamped)


def _showing(view: LedgerView, fenced: int) -> LedgerView:
    """Return the view. Raises Retryable if the run of the generation `fenced` is not in it.

    A broker that leads the ledger no longer, and has not seen that yet, returns an older end.
    """
    if view.end <= fenced:
        raise Retryable(f"the ledger ends at offset {view.end}, before the run at {fenced} that fenced the lane")
    return view


def _pieces(view: LedgerView, lane: str, found: Iterable[Sender], places: Iterable[TopicPartition]) -> list[Slice]:
    """Return slices that begin after the last receipts, for a reading of the target."""
    lasts, producer, marked = last_receipts(view, lane), lane_producer(view, lane), markings(view, lane)
    after = continued(view, lane)
    sources = {target: source for one in found for target, source in one.sources.items()}
    sources |= {target: last.source for target, last in lasts.items()}
    pieces = (
        Slice(
            source=sources.get(place, place),
            target=place,
            start=max(lasts[place].end if place in lasts else 0, after[place].at if place in after else 0),
            end=LAST_SEQUENCE,
            slot=0,
            target_next=lasts[place].target_next if place in lasts else None,
            producer=after[place].producer_id if place in after else producer,
            marked_ms=marked.get(place),
        )
        for place in sorted(places)
    )
    return [continuing(piece, after) for piece in pieces]


async def _ends(
    target: Cluster, pieces: Iterable[Slice]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, str]]:
    """Return the ends of partitions that hold the lane's records alone at their ends, and why others do not."""
    left, why = {piece.target: piece for piece in pieces}, dict[TopicPartition, str]()

    async def ask() -> tuple[dict[TopicPartition, int], Collection[Drop]]:
        try:
            found = await standings(target, left.values(), dict.fromkeys(left, LAST_SEQUENCE))
        except (Dropped, Blocked) as error:
            return {}, error.drops
        except Retryable:
            await target.refresh({place.topic for place in left})
            raise
        return {place: one.end for place, one in found.items()}, ()

    while left:
        found, drops = await target.retrying(ask)
        if not drops:
            return found, why
        for one in drops:
            why[one.piece.target] = one.refusal.message
            del left[one.piece.target]
    return {}, why


def _lasts(found: TopicSettings) -> bool:
    """Return whether records of clients do not push the lane's last batch out of a topic with these settings.

    A broker that loads a log again has the producer state of the batches that are left.
    """
    cleaned = found.in_force(CLEANUP)
    shown = found.in_force(RETENTION_BYTES) is not None and cleaned is not None
    return shown and "compact" not in (cleaned or "") and _size_limit(found) is None


def _size_limit(found: TopicSettings | None) -> str | None:
    kept = None if found is None else found.in_force(RETENTION_BYTES)
    return None if kept is None or int(kept) < 0 else kept


async def _lateness(target: Cluster) -> int | None:
    try:
        brokers = await broker_settings(target, (IDLE,))
    except NotPermitted:
        return None
    return lateness_of(int(one[IDLE]) if IDLE in one else None for one in brokers.values())


async def _stamps(target: Cluster, ledger: TopicPartition, generations: Iterable[int | None]) -> dict[int, int]:
    """Return when the ledger's broker had the records of runs (ms), by generation.

    Those that have their producer's time are left out. Raises Unreachable if a record is not returned.
    """
    known = sorted({one for one in generations if one is not None})
    stamps = {one: await target.retrying(partial(_stamp, target, ledger, one)) for one in known}
    return {one: stamp for one, stamp in stamps.items() if stamp is not None}


async def _stamp(target: Cluster, ledger: TopicPartition, generation: int) -> int | None:
    for appended in (True, False):
        found = await first_timestamps(target, {ledger: generation}, appended=appended)
        if ledger in found:
            return found[ledger] if appended else None
    await target.refresh({ledger.topic})
    raise Retryable(f"cluster {target.alias} does not return the record of a run at offset {generation} of {ledger}")


async def check_late(lane: OpenLane, view: LedgerView, plan: Plan) -> list[Check]:
    """Return whether batches may arrive after a switchover has drained the lane (`ferry.lane.checks`).

    Copies that end before the source's offsets do not hold: clients would write at offsets that it has used.
    """
    if not lane.flow.of(IdenticalSettings).keeps:
        return []
    short = await look_short(lane, view, plan)
    if short:
        message = sentence("identical.short", places=named(short), cluster=lane.target.alias)
        return [Check(name="offsets", ok=False, message=message)]
    found = await look_late(lane.target, lane.ledger.place, lane.cache, lane.name, drained=True)
    alias = lane.target.alias
    if found.until:
        waits = found.only_waits
        return [Check(name="offsets", ok=waits, warns=waits, message=found.sentence(alias))]
    return [Check(name="offsets", ok=True, message=sentence("identical.late.none", cluster=alias))]
