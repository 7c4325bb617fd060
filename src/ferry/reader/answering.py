"""The answer to each question.

It comes from the last snapshot, from the ledger and the clusters by the flow's thread, or from files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.lanes.rules.listing import Lane, outlook_of
from ferry.features.switch.acts.preflight import look_before
from ferry.features.switch.acts.sides import refuse_identical, refuse_reverse, sides_of
from ferry.features.switch.rules.readiness import Readiness
from ferry.ledger.history import Forgotten, PastRun
from ferry.model import Flow, Pause, Plan
from ferry.model.switch import Switch, SwitchOptions, SwitchState
from ferry.page.cut import A_PAGE, Cut, lines
from ferry.page.part import FromFiles, PageAnswer, page_answers
from ferry.page.question import Question
from ferry.plan.options import RunOptions
from ferry.reader.documents import (
    Answer,
    Done,
    JobStory,
    LanePage,
    OffsetStory,
    RunDigest,
    RunStory,
    Unknown,
)
from ferry.reader.limits import RUNS
from ferry.reader.questions import (
    Begin,
    Look,
    OfClusters,
    OfDealt,
    OfLag,
    OfLane,
    OfLanes,
    OfOffset,
    OfReceipt,
    OfReceipts,
    OfRefusals,
    OfRun,
    OfSeries,
    OfStatus,
    OfTopic,
    OfTopics,
    OfUnknown,
)
from ferry.reader.repartitioned import Sought, story_of_dealt
from ferry.reader.run_sentences import recurring
from ferry.reader.snapshot import Snapshot, digest_of
from ferry.reader.status import in_short, series_of, status_of, topic_of, topics_of
from ferry.reader.stories import (
    dealt_page,
    holder_line,
    lane_line,
    part_line,
    part_of,
    plan_story,
    receipt_line,
    receipt_story,
    run_story,
)
from ferry.reader.watch import FlowWatch
from ferry.reader.watcher import Job, TooMuch, Watcher
from ferry.run.ledger.access import LedgerAccess
from ferry.run.ledger.pausing import lift_pause, write_pause
from ferry.run.micro_run import MicroRuns

STALE_SECONDS = 20.0
"""After this time a cluster's answer is requested again."""
Handler = Callable[[FlowConfig, Watcher, Any], Answer]


def _seen(watcher: Watcher, got: Callable[[Snapshot], Any]) -> Answer:
    """Answer from the last snapshot; that does not keep the flow's thread running."""
    seen = watcher.last
    return Answer(got=got(seen), at_ms=seen.looked_ms or wall_ms())


def _asked(
    watcher: Watcher, key: tuple[Any, ...], work: Callable[[FlowWatch], Any], made: Callable[[Any], Any]
) -> Answer:
    """Answer from the ledger or the clusters, cut to what is shown."""
    return _cut(watcher.answer(key, work, fresh_seconds=STALE_SECONDS), made)


def _cut(found: Answer, made: Callable[[Any], Any]) -> Answer:
    kept = replace(found)
    return replace(kept, got=None if kept.got is None else made(kept.got))


def _status(flow: FlowConfig, watcher: Watcher, asked: OfStatus) -> Answer:
    seen = watcher.last
    mark = f"{watcher.name}:{seen.number}:{asked.runs}"
    if asked.mark == mark:
        return Answer(at_ms=wall_ms())
    return Answer(got=status_of(seen, flow.rpo, flow.lane, runs=asked.runs, mark=mark), at_ms=wall_ms())


def _clusters(_: FlowConfig, watcher: Watcher, asked: OfClusters) -> Answer:
    """Answer without a wait, because the overview has other figures to show."""
    return replace(watcher.answer(("clusters",), FlowWatch.clusters, fresh_seconds=STALE_SECONDS, waits=False))


def _topics(_: FlowConfig, watcher: Watcher, asked: OfTopics) -> Answer:
    return _seen(watcher, lambda seen: topics_of(seen, asked))


def _topic(_: FlowConfig, watcher: Watcher, asked: OfTopic) -> Answer:
    return _seen(watcher, lambda seen: topic_of(seen, asked.topic, asked.page))


def _lag(_: FlowConfig, watcher: Watcher, asked: OfLag) -> Answer:
    parts = watcher.last.lags.get(asked.place.topic, ())
    return _seen(watcher, lambda _: next((one for one in parts if one.source == asked.place), None))


def _unknown(_: FlowConfig, watcher: Watcher, asked: OfUnknown) -> Answer:
    seen = watcher.last
    answers = seen.lag_ms and not seen.troubles and not seen.hindrances
    topic = next((one for one in asked.topics if one not in seen.lags), None) if answers else None
    if topic is not None:
        watcher.nudge()
    return _seen(watcher, lambda seen: None if topic is None else Unknown(topic=topic, lag_ms=seen.lag_ms))


def _refusals(_: FlowConfig, watcher: Watcher, asked: OfRefusals) -> Answer:
    return _seen(watcher, lambda seen: Cut.of(recurring(seen.runs), asked.page))


def _series(flow: FlowConfig, watcher: Watcher, asked: OfSeries) -> Answer:
    return _seen(watcher, lambda seen: series_of(seen, asked, flow.flow))


def _run(_: FlowConfig, watcher: Watcher, asked: OfRun) -> Answer:
    def made(found: PastRun | Forgotten) -> RunStory:
        story = run_story(found, asked)
        opened = story.opened
        polled = next((one for one in watcher.last.runs if opened and one.generation == opened.generation), None)
        return story if polled is None else replace(story, progress=polled.progress)  # measured more often

    work = partial(FlowWatch.run, name=asked.run, lane=asked.lane)
    return _asked(watcher, ("run", asked.run, asked.lane), work, made)


def _receipts(_: FlowConfig, watcher: Watcher, asked: OfReceipts) -> Answer:
    skip = (asked.page - 1) * A_PAGE
    work = partial(FlowWatch.receipts, place=asked.place, skip=skip, most=A_PAGE, lane=asked.lane)
    return _asked(
        watcher,
        ("receipts", asked.place, asked.page, asked.lane),
        work,
        lambda found: lines(part_of(found[0], asked.page, found[1]), receipt_line),
    )


def _receipt(_: FlowConfig, watcher: Watcher, asked: OfReceipt) -> Answer:
    work = partial(FlowWatch.receipt, place=asked.place, start=asked.start, run=asked.run, lane=asked.lane)
    key = ("receipt", asked.place, asked.start, asked.run, asked.lane)
    return _asked(watcher, key, work, lambda found: receipt_story(found, asked))


def _dealt(_: FlowConfig, watcher: Watcher, asked: OfDealt) -> Answer:
    sought = Sought(offset=asked.offset, key=asked.key)
    skip = (asked.page - 1) * A_PAGE
    work = partial(story_of_dealt, place=asked.place, sought=sought, skip=skip, most=A_PAGE, lane=asked.lane)
    key = ("dealt", asked.place, asked.page, sought, asked.lane)
    return _asked(watcher, key, work, lambda found: dealt_page(found, asked))


def _offset(_: FlowConfig, watcher: Watcher, asked: OfOffset) -> Answer:
    work = partial(FlowWatch.where, place=asked.place, offset=asked.offset, backward=asked.backward, lane=asked.lane)
    key = ("offset", asked.place, asked.offset, asked.backward, asked.lane)

    def made(got: Any) -> OffsetStory:
        found, held = got
        return OffsetStory(
            source=found.source,
            target=found.target,
            word=found.outcome.word,
            offset=found.outcome.offset,
            is_pruned=getattr(found.outcome, "pruned", None) is not None,
            held=tuple(map(holder_line, held)),
            read_all=getattr(found.outcome, "read_all", False),
        )

    return _asked(watcher, key, work, made)


def _lanes(_: FlowConfig, watcher: Watcher, asked: OfLanes) -> Answer:
    return _asked(watcher, ("lanes",), FlowWatch.lanes, lambda found: tuple(map(lane_line, found)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStory:
    """A lane without its newest run, its progress, and some of its runs, newest first."""

    lane: Lane
    outlook: str
    runs: tuple[RunDigest, ...]
    known_runs: int
    """How many runs of it are in the ledger."""


def _lane(_: FlowConfig, watcher: Watcher, asked: OfLane) -> Answer:
    def made(story: LaneStory) -> LanePage:
        copied = Cut.of(sorted(story.lane.parts, key=lambda part: part.source), asked.parts)
        return LanePage(
            lane=lane_line(story.lane, story.outlook),
            runs=tuple(map(in_short, story.runs)),
            known_runs=story.known_runs,
            copied=lines(copied, part_line),
        )

    work = partial(_lane_story, name=asked.lane, skip=(asked.page - 1) * RUNS)
    return _asked(watcher, ("lane", asked.lane, asked.page), work, made)


def _lane_story(watch: FlowWatch, name: str, skip: int) -> LaneStory | None:
    """Return what the ledger has of a lane; only the runs that are shown are read, and each is kept as a digest."""
    found = watch.lane(name)
    if found is None:
        return None
    lane, runs = found
    read = map(watch.past, runs[skip : skip + RUNS])
    return LaneStory(
        lane=replace(lane, last_run=None),
        outlook=outlook_of(lane, wall_ms()),
        runs=tuple(digest_of(past) for past in read if isinstance(past, PastRun)),
        known_runs=len(runs),
    )


def _begin(flow: FlowConfig, watcher: Watcher, asked: Begin) -> Answer:
    work = {"plan": _plan, "readiness": _readiness, "pause": _pause, "resume": _resume}[asked.what]
    try:
        job = watcher.ask(asked.who, asked.event, partial(work, asked=asked, flow=flow.flow))
    except TooMuch as error:
        return Answer(got=JobStory(refused=str(error)), at_ms=wall_ms())
    watcher.nudge()
    return Answer(got=job_story(job), at_ms=wall_ms())


def _plan(watch: FlowWatch, *, asked: Begin, flow: Flow) -> Plan:
    with MicroRuns(watch.flow, patience_s=watch.patience_s) as runs:
        return runs.preview(RunOptions(only=frozenset(asked.topics) or None), here=False)  # workers plan its runs


def _readiness(watch: FlowWatch, *, asked: Begin, flow: Flow) -> Readiness:
    """Return the checks of a switch of the flow's clients, as its first step makes them."""
    if watch.settings is None:
        raise BadInput(f"what a {asked.verb} of flow {flow} needs is not known here: see ferry readiness '{flow}'")
    settings = watch.settings()
    refuse_identical(settings, watch.flow, f"the readiness for a {asked.verb}", asked.verb)
    sides = sides_of(settings, watch.flow, asked.verb)
    options = SwitchOptions(reverse=asked.reverse)
    refuse_reverse(sides, options)
    switch = Switch(
        id="",
        verb=asked.verb,
        named=flow,
        via=sides.via.flow,
        who=asked.who,
        approved_by="",
        approved_ms=0,
        at_ms=wall_ms(),
        options=options,
    )
    return look_before(sides, SwitchState(switch=switch, offset=-1), patience_s=watch.patience_s)[0]


def _what(asked: Begin, flow: Flow) -> str:
    return f"Topic {asked.topic}" if asked.topic else f"Flow {flow}"


def _pause(watch: FlowWatch, *, asked: Begin, flow: Flow) -> str:
    held = Pause(topic=asked.topic, who=asked.who, why=asked.why, since_ms=asked.since_ms, until_ms=asked.until_ms)
    with LedgerAccess(watch.flow, patience_s=watch.patience_s) as ledger:
        write_pause(ledger, held)
    return f"{_what(asked, flow)} is paused. A run under way is not touched."


def _resume(watch: FlowWatch, *, asked: Begin, flow: Flow) -> str:
    with LedgerAccess(watch.flow, patience_s=watch.patience_s) as ledger:
        lifted = lift_pause(ledger, asked.topic, asked.who, wall_ms())
    did = "was not paused" if lifted is None else "continues with the next run"
    warned = f" But {lifted.warning}." if lifted is not None and lifted.warning is not None else ""
    return f"{_what(asked, flow)} {did}.{warned}"


def job_story(job: Job) -> JobStory:
    """Return the state of a job."""
    if not job.done.is_set() or job.error:
        return JobStory(job=job.id, who=job.who, done=job.done.is_set(), error=job.error)
    if isinstance(job.answer, Readiness):
        return JobStory(job=job.id, who=job.who, done=True, checks=job.answer.checks)
    plan = plan_story(job.answer) if isinstance(job.answer, Plan) else None
    return JobStory(job=job.id, who=job.who, done=True, text="" if plan else str(job.answer), plan=plan)


def _look(_: FlowConfig, watcher: Watcher, asked: Look) -> Answer:
    watcher.nudge()
    return Answer(got=Done(), at_ms=wall_ms())


HANDLERS: Mapping[type[Question[Any]], Handler] = {
    OfStatus: _status,
    OfClusters: _clusters,
    OfTopics: _topics,
    OfTopic: _topic,
    OfLag: _lag,
    OfUnknown: _unknown,
    OfRefusals: _refusals,
    OfSeries: _series,
    OfRun: _run,
    OfReceipts: _receipts,
    OfReceipt: _receipt,
    OfDealt: _dealt,
    OfOffset: _offset,
    OfLanes: _lanes,
    OfLane: _lane,
    Begin: _begin,
    Look: _look,
}
"""The handlers of the reader's own questions but OfJob, which does not name a flow."""


def handlers() -> Mapping[type[Question[Any]], Handler]:
    """Return the handlers of all questions, those about features among them."""
    return {**HANDLERS, **{of: partial(_of_feature, one) for of, one in page_answers().items()}}


def _of_feature(one: PageAnswer, flow: FlowConfig, watcher: Watcher, asked: Any) -> Answer:
    key = one.of.__name__, one.same(asked)
    made = partial(one.show, flow, asked)
    if isinstance(one, FromFiles):
        return _cut(watcher.answer_aside(key, partial(one.find, flow, asked), fresh_seconds=STALE_SECONDS), made)
    find = one.find

    def work(watch: FlowWatch) -> Any:
        return find(watch.flow, asked, watch.patience_s)

    return _asked(watcher, key, work, made)
