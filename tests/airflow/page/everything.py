"""A flow of which every page has something to show: figures, troubles, refusals, receipts, groups, lanes, reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ferry.clock import wall_ms
from ferry.features.doctor.rules.clusters import (
    BrokerFacts,
    ClusterFacts,
    Load,
    PartitionHealth,
    ShortPartition,
    Steering,
)
from ferry.features.evidence.acts.folder import Checked
from ferry.features.evidence.rules.chain import Kept
from ferry.features.evidence.rules.codec import SealedReport
from ferry.features.groups.rules.offset_map import Exact
from ferry.features.groups.rules.table import GroupHead, GroupOffset, GroupRow, GroupTable, NotShown
from ferry.features.groups.rules.translation import Translation
from ferry.features.lanes.rules.listing import Lane, LanePart
from ferry.features.records.rules.one_record import BothSides, OneRecord, Side, StampedBy
from ferry.ledger.history import Holder, PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.ledger.report import Report
from ferry.model import Gap, GroupKind, LaneKind, OpenedRun, Pause, Plan, Refusal, RefusalKind, Segment
from ferry.model.switch import SwitchOutcome, Verb
from ferry.reader.answering import LaneStory
from ferry.reader.documents import Answer, ClustersStory, ClusterStory, Moved
from ferry.reader.lag_point import LagPoint
from ferry.reader.repartitioned import Sought, story_of
from ferry.reader.snapshot import digest_of, topic_rows
from ferry.reader.watch import FlowPoll, FlowWatch
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.dag_runs import DagRunStory, TaskRow
from tests.airflow.page.conftest import HERE, Desk, lag
from tests.airflow.page.values import SENT, digest, progress
from tests.pure.decide.test_deal import receipt as unit_receipt
from tests.pure.decide.test_dealt_to import DEALT
from tests.pure.decide.values import PLAN, RECEIPT, piece, place, redealt, run_of
from tests.pure.reports.values import EVIDENCE

RUN = "manual__2026-11-22T10:15:00+00:00"
ACTIVE = "scheduled__0"
"""A run that has sent records, and committed none."""
MINUTE_MS = 60_000
TOPICS = (
    "orders",
    "payments.card",
    "clicks",
    "audit",
    *(f"metrics.of-a-host-with-a-long-name-{n:03}" for n in range(48)),
)
DEALT_TOPIC = "audit"
"""It goes to other partitions."""
ASKING = ("ferry_switchover__primary__backup", "manual__1")
"""A run of another DAG that waits for an approval."""
NOWHERE = f"{HERE}/topic/no-such-topic"
"""An address that has nothing: the only error page among all pages."""
GONE = Refusal(
    kind=RefusalKind.RETENTION_PASSED,
    topic="orders",
    partition=3,
    message="offset 1204111 of orders-3 is what comes next, and the source's log begins at 1209412: raise retention.ms",
)

MOVED = Moved(
    verb=Verb.SWITCHOVER,
    switch="s1",
    cluster="backup",
    since_ms=1_790_000_000_000,
    end=SwitchOutcome.FINISHED,
    redirected=True,
)


def filled(desk: Desk) -> None:
    """Let the flow be seen, and every question be answered."""
    now = wall_ms()
    states = (PastState.OPEN, PastState.PARTIAL, PastState.SUCCESS, PastState.FAILED, PastState.UNPLANNED)
    runs = [
        replace(
            digest(RUN if at == 1 else f"scheduled__{at}", state, *([GONE] if state is PastState.PARTIAL else ())),
            generation=100 - at,
            started_ms=now - at * 7 * MINUTE_MS,
            ended_ms=now - at * 7 * MINUTE_MS + 4_000,
            idle=at in (7, 8),
        )
        for at, state in ((at, states[at] if at < len(states) else PastState.SUCCESS) for at in range(12))
    ]
    runs[0] = replace(runs[0], progress=progress(SENT))
    held = {"audit": Pause(topic="audit", who="ada", why="schema migration", since_ms=now - MINUTE_MS)}
    lags = tuple(
        replace(lag(topic, number, 7 * number, 200.0), dealt=topic == DEALT_TOPIC)
        for topic in TOPICS
        for number in range(4)
    )
    # Somebody looked for some minutes, an hour ago, and looks again now: runs ran before, between and while.
    looks = (*range(3_600_000, 3_300_000, -5_000), *range(500_000, 0, -5_000))
    desk.watcher.amend(
        history=tuple(
            LagPoint(at_ms=now - back, records=30_000 + back // 1000, bytes=7 * back, seconds=back / 5_000 % 60)
            for back in looks
        ),
    )
    desk.watcher.see(FlowPoll(view=replace(UNREAD, end=5), lags=lags, troubles={}), runs)
    desk.watcher.see(FlowPoll(view=None, lags=None, troubles={"backup": "backup at h:9092 does not answer"}))
    seen = desk.watcher.last
    desk.watcher.amend(
        moved=MOVED,
        never_ran=False,
        known_runs=100,
        pauses=held,
        topics=topic_rows(seen.lags, held),
        troubles=seen.troubles,
    )
    moment = datetime.now(UTC)
    desk.dag = DagState(
        known=True,
        due=moment + timedelta(minutes=3),
        schedule="*/5 * * * *",
        runs=(
            DagRunRow(run=ACTIVE, state="running", queued=moment, started=moment, ended=None, who=""),
            DagRunRow(run=RUN, state="success", queued=moment, started=moment, ended=moment, who="ada"),
        ),
    )
    desk.asking.add(ASKING)
    desk.stories[ASKING] = DagRunStory(
        row=DagRunRow(run=ASKING[1], state="running", queued=moment, started=moment, ended=None, who="ada"),
        conf={"reason": "the data centre is moved", "leave_groups": ["billing", "audit-of-a-long-name"]},
        tasks=(
            TaskRow(name="preview", state="success", started=moment, seconds=4.0),
            TaskRow(name="approve", state="awaiting_input", started=moment, seconds=None),
        ),
        preview=("1. freeze: record the ends", "ok: source: 52 topics answer", "NOT OK: groups: billing is active"),
    )
    answers = _answers(now)

    def answer(
        key: tuple[Any, ...], work: Callable[[FlowWatch], Any], *, fresh_seconds: float, waits: bool = True
    ) -> Answer:
        none = key[0] == "receipts" and key[1].topic == DEALT_TOPIC
        name = ACTIVE if key == ("run", ACTIVE, "") else key[0]
        return Answer(got=([], 0) if none else answers[name], at_ms=now)

    desk.watcher.answer = answer  # type: ignore[method-assign]
    desk.watcher.answer_aside = answer  # type: ignore[assignment,method-assign]


def _answers(now: int) -> dict[str, Any]:
    """By what is asked."""
    cut = replace(
        RECEIPT,
        source=place("orders", 1),
        segments=tuple(Segment(source_start=50 * n, target_start=40 * n, count=40) for n in range(5)),
        end=240,
    )
    receipts = [
        *(replace(RECEIPT, source=place("orders", n), run=RUN, at_ms=now, digest=f"{n:08x}") for n in range(4)),
        cut,
        replace(RECEIPT, source=place("clicks"), segments=(), records=0),
    ]
    gap = Gap(source=place("orders", 3), start=1, end=9, why=RefusalKind.RETENTION_PASSED, run=RUN, at_ms=now)
    plan: Plan = replace(
        PLAN,
        run=RUN,
        slices=tuple(piece("orders", n) for n in range(3)),
        gaps=(gap,),
        refusals=(GONE,),
        notes=("nothing of note",),
        paused=("audit",),
    )
    report = Report(
        plan=plan,
        started_ms=now - 9_000,
        receipts=(
            *receipts,
            *(
                redealt(unit_receipt(n, (9, 9), target_next=4), target_start=0, records=4 * n, at_ms=now)
                for n in range(2)
            ),
        ),
        refusals=(GONE,),
        unfinished=(piece("orders", 3),),
        left=(),
        done=3,
    )
    opened = OpenedRun(record=replace(run_of(RUN), started_ms=now - 9_000), generation=99)
    past = PastRun(opened=opened, state=PastState.PARTIAL, report=report)
    begun = OpenedRun(record=replace(run_of(ACTIVE), started_ms=now), generation=100)
    nothing = replace(report, receipts=(), plan=replace(plan, gaps=()), refusals=(), done=0)
    active = PastRun(opened=begun, state=PastState.OPEN, report=nothing, progress=progress(SENT))
    stands = GroupOffset(offset=40, log_size=50)
    row = GroupRow(
        source=place("orders"),
        target=place("a.orders"),
        at_source=stands,
        outcome=Exact(offset=40),
        translated=stands,
        at_target=stands,
    )
    head = GroupHead(kind=GroupKind.CLASSIC, state="Stable", members=3)
    table = GroupTable(group="billing", source=head, target=None, rows=(row,) * 41)
    lane = Lane(
        name="backfill-january",
        kind=LaneKind.BACKFILL,
        topics=tuple(f"a.orders.{n}" for n in range(9)),
        parts=(LanePart(source=place("orders"), target=place("a.orders"), ranges=(), records=7),),
        windows=31,
        last_run=past,
    )
    sealed = SealedReport(number=7, evidence=EVIDENCE, previous=None, signer=None)
    kept = Kept(number=7, name="report-000007.json", sha256="0", page_sha256="1", report=sealed)
    lost = Kept(number=8, name="report-000008.json", sha256="0", page_sha256=None, report=None, trouble="no JSON")
    found = Translation(source=place("orders"), target=place("a.orders"), outcome=Exact(offset=7))
    holder = Holder(receipt=RECEIPT, segment=RECEIPT.segments[0], target_offset=7)
    return {
        "clusters": _clusters(now),
        "run": past,
        ACTIVE: active,
        "receipt": cut,
        "receipts": (receipts[:50], 10_000),
        "offset": (found, [holder]),
        "OfGroups": (
            (table, *(replace(table, group=f"audit-{n}", rows=(row,)) for n in range(20))),
            (NotShown(cluster="b", group="other", why="it may not be described"),),
            True,
        ),
        "OfRecord": BothSides(
            source=Side(place=place("orders", 1), offset=7, bounds=(0, 90), record=_record("4929-1111")),
            target=Side(place=place("a.orders", 1), offset=5, bounds=(0, 80), record=_record("****-1111")),
            transformed=False,
        ),
        "lanes": [lane],
        "dealt": story_of(DEALT, place("t"), Sought(offset=20), 0, 50),
        "lane": LaneStory(
            lane=replace(lane, last_run=None),
            outlook="75 % copied, 20 offsets left",
            runs=tuple(replace(digest_of(past), run=f"{RUN}~{number}") for number in range(20, 0, -1)),
            known_runs=31,
        ),
        "OfReports": [
            Checked(kept=kept, signed=None, problem=""),
            Checked(kept=lost, signed=None, problem="the report before it is missing"),
        ],
    }


def _clusters(now: int) -> ClustersStory:
    """A source of which one broker is dead, and a target that may not be asked everything."""
    brokers = (
        BrokerFacts(id=1, address="kafka-1.primary.data-centre.example:9092", rack="eu-west-1a", version=(4, 1)),
        BrokerFacts(id=2, address="kafka-2.primary.data-centre.example:9092", rack="eu-west-1b", version=(4, 1)),
        BrokerFacts(id=3, why="it has replicas, and the cluster does not list it: it is down"),
    )
    short = (
        ShortPartition(place=place("orders", 3), offline=True, in_sync=1, replicas=1),
        ShortPartition(place=place("metrics.of-a-host-with-a-long-name-000", 1), offline=False, in_sync=2, replicas=3),
    )
    loads = tuple(Load(broker=node, leads=104 if node < 3 else 0, replicas=208) for node in (1, 2, 3))
    source = ClusterStory(
        alias="primary",
        asked_ms=now - 12_000,
        facts=ClusterFacts(alias="primary", cluster_id="5L6g3nShT-eMCtK--X86sw", brokers=brokers),
        steering=Steering(controller=3000, protocol="metadata.version 4.1 (level 27)"),
        health=PartitionHealth(partitions=208, offline=1, under_replicated=9, short=short, loads=loads),
    )
    denied = "The controller is not known: not allowed to describe the quorum of cluster backup: grant DESCRIBE on it."
    steering = Steering(not_known=(denied,))
    target = ClusterStory(
        alias="backup",
        asked_ms=now - 12_000,
        facts=ClusterFacts(
            alias="backup", cluster_id="Tm90IGEgcmVhbCBpZCBhdA", brokers=(replace(brokers[0], rack=""),)
        ),
        steering=steering,
        why="cluster backup at h:9092 does not answer within 5 s (Connection refused): check the address, the port and"
        " the security settings",
        not_known="which topics the flow takes is not known.",
    )
    return ClustersStory(source=source, target=target)


def _record(card: str) -> OneRecord:
    """A record whose value and headers are wider than a phone."""
    value = json.dumps({"card": card, "items": [f"a-part-with-a-long-number-{n:06}" for n in range(40)]})
    headers = ((b"traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), (b"card", card.encode()))
    return OneRecord.of(1_790_000_000_000, StampedBy.CREATE, b"order-1", value.encode(), headers)


def status_of(path: str) -> int:
    """With which a page is answered once the flow is `filled`; a test of all pages that takes another sees no page."""
    return 404 if path == NOWHERE else 200
