"""Situations, and the plans that they lead to, in the form that tests/pure/decide/plans keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.errors import FerryError
from ferry.ledger.other_flows import OtherFlow
from ferry.ledger.plan_codec import plan_records
from ferry.model import Flow, Gap, Pause, Plan, Record, RefusalKind
from ferry.model.observed import BrokerSpace, OpenTransaction, Unavailable
from ferry.plan.rules.facts import Facts, Seen, SourceTopic, Unfound
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.policy import LanePolicy
from tests.pure.decide import test_absence, test_deal, test_deletes, test_guards, test_resume_point
from tests.pure.decide.test_capacity import CAREFUL, disks
from tests.pure.decide.test_capacity import facts as on_disks
from tests.pure.decide.test_deal import BESIDE, DEALT, ERA, FACTS_HALF, HALF, RULE
from tests.pure.decide.test_deal_by_name import BY_NAME, FIRST
from tests.pure.decide.test_guards import SOUND, at_target, source
from tests.pure.decide.test_lost_ledger import LATER, SOFT
from tests.pure.decide.test_lost_ledger import facts as lost
from tests.pure.decide.test_museum import EXHIBITS, exhibit, facts_of, rules_of
from tests.pure.decide.test_origins import IDENTITY, RENAMED, Table
from tests.pure.decide.test_planning import MIXED, ORDERS, TWO, changed
from tests.pure.decide.test_tombstones import facts as compacted
from tests.pure.decide.values import FACTS, LANE, RECEIPT, RULES, facts_with, part, place, redealt, target, topic

PLANS = Path(__file__).with_name("plans")
RUN, GENERATION = "run-2", 9
NOW_MS = 1_800_000_000_000

Situation = tuple[Rules, Facts]


def plans() -> dict[Path, str]:
    """Each file of the corpus, with what it has to say."""
    made = {PLANS / f"{name}.jsonl": text_of(rules, facts) for name, (rules, facts) in situations().items()}
    return made | dict(_of_museum())


def text_of(rules: Rules, facts: Facts, run: str = RUN, generation: int = GENERATION) -> str:
    """A plan as the ledger has it, keys and values line by line; or the error that there is none."""
    try:
        plan = decide_plan(rules, facts, run, generation)
    except FerryError as error:
        return f"{json.dumps([type(error).__name__, str(error)])}\n"
    return records_text(plan_records(plan))


def records_text(records: list[Record]) -> str:
    """Records as lines: the key of each, and its value, which has a line for each part of the plan."""
    return "".join(f"{one.key.decode()}\n{(one.value or b'').decode()}\n" for one in records)


def decided() -> Iterator[Plan]:
    """The plans of all situations that have one."""
    for rules, facts in situations().values():
        with suppress(FerryError):
            yield decide_plan(rules, facts, RUN, GENERATION)


def _of_museum() -> Iterator[tuple[Path, str]]:
    """What each kept ledger leads to; day by day."""
    for path in EXHIBITS:
        kept = exhibit(path)
        view = kept.whole
        text = text_of(rules_of(kept, view), facts_of(kept, view), "next", kept.end)
        yield PLANS / "museum" / f"{path.parent.name}-{path.stem}.jsonl", text


def situations() -> dict[str, Situation]:
    """All by name. What several of the tests beside ask one by one is said here as a whole plan."""
    groups = (_plain(), _starts(), _topics(), _guarded(), _refused(), _transformed(), _dealt())
    found = {name: situation for group in groups for name, situation in group.items()}
    assert len(found) == sum(map(len, groups)), "each has a name of its own"
    return found


def _guards(**policies: OnGuard) -> Rules:
    return replace(RULES, guards=Guards(**{name: GuardPolicy(default=how) for name, how in policies.items()}))


def _plain() -> Mapping[str, Situation]:
    big = facts_with(
        FACTS, source={"topics": {name: topic(name, part(), part(end=30), part(end=7)) for name in ("orders", "users")}}
    )
    rest = Pause(topic="users", who="ann", why="maintenance", since_ms=0)
    return {
        "plain-first-run": (RULES, facts_with(TWO, lane={"first_run": True})),
        "plain-goes-on": (RULES, SOUND),
        "plain-caught-up": (
            RULES,
            facts_with(SOUND, source={"topics": {n: topic(n, part(end=40)) for n in ("orders", "users")}}),
        ),
        "plain-no-topics": (RULES, FACTS),
        "plain-many-tasks": (replace(RULES, max_tasks=4), big),
        "plain-leader-epochs": (
            RULES,
            facts_with(
                SOUND,
                lane={
                    "receipts": {
                        last.target: replace(last, source_epoch=3, target_epoch=6, since=2)
                        for last in SOUND.lane.receipts.values()
                    }
                },
            ),
        ),
        "plain-names-of-any-letters": (
            RULES,
            facts_with(FACTS, source={"topics": {"ä.\"'<\u2028>": topic("ä.\"'<\u2028>", part())}}),
        ),
        "budget-records": (replace(RULES, max_records=50), big),
        "budget-bytes": (replace(RULES, max_bytes=4_000), big),
        "budget-unknown-sizes": (
            replace(RULES, max_bytes=4_096),
            facts_with(
                FACTS, source={"topics": {"orders": topic("orders", part(size_bytes=None), part(size_bytes=0))}}
            ),
        ),
        "budget-none-of-time": (replace(RULES, max_seconds=0), TWO),
        "paused-topic": (RULES, facts_with(TWO, lane={"pauses": {"users": rest}})),
        "paused-flow": (RULES, facts_with(TWO, lane={"pauses": {"": replace(rest, topic="")}})),
        "narrowed": (replace(RULES, only=frozenset({"users"})), TWO),
        "narrowed-to-what-is-not-there": (replace(RULES, only=frozenset({"nope"})), TWO),
        "identity-policy": (IDENTITY, facts_with(TWO, target={"topics": {"users": target("users", 0)}})),
        "merged": (
            replace(IDENTITY, merges=lambda _: True),
            facts_with(TWO, target={"topics": {"users": target("users", 60)}}),
        ),
        "window-in-scratch-topics": (
            replace(
                RULES,
                lane="backfill-june",
                policy=LanePolicy(base=RULES.policy, lane="backfill-june"),
                scratch=True,
            ),
            facts_with(TWO, lane={"begins": {place("orders"): 20, place("users"): 100}}),
        ),
        "window-after-the-live-records": (
            replace(RULES, lane="append-june", beside_live=True),
            facts_with(
                SOUND,
                lane={
                    "receipts": {},
                    "positions": {},
                    "claims": {"a.orders": LANE, "a.users": LANE},
                    "begins": {place("orders"): 20, place("users"): 10},
                },
            ),
        ),
        "window-goes-on": (
            replace(RULES, lane="backfill-june", scratch=True),
            facts_with(
                SOUND,
                lane={"claims": {"a.orders": "backfill-june"}, "begins": {place("orders"): 60, place("users"): 5}},
            ),
        ),
    }


def _starts() -> Mapping[str, Situation]:
    late = topic("orders", part(end=100, start=100), part(end=50, start=50))
    return {
        "start-earliest": (
            RULES,
            facts_with(ORDERS, source={"topics": {"orders": topic("orders", part())}}, lane={"first_run": True}),
        ),
        "start-latest": (RULES, facts_with(FACTS, source={"topics": {"orders": late}}, lane={"first_run": True})),
        "start-at-a-time": (RULES, facts_with(ORDERS, lane={"first_run": True})),
        "start-given": (RULES, facts_with(ORDERS, lane={"starts": {place("orders"): 70}})),
        "start-of-a-later-partition": (RULES, ORDERS),
        "start-pending": (
            RULES,
            facts_with(
                FACTS,
                source={"topics": {"orders": topic("orders", part(start=60), leaderless=(1,))}},
                lane={"first_run": True, "pending": {place("orders", 1): 900}},
            ),
        ),
    }


def _topics() -> Mapping[str, Situation]:
    settings = {"retention.ms": "5", "cleanup.policy": "compact", "follower.replication.throttled.replicas": "*"}
    there = target("a.orders", 0, configs={"retention.ms": "6", "segment.ms": "9"})
    orders = topic("orders", part(), configs={"retention.ms": "5"})
    differ = facts_with(
        FACTS,
        source={"topics": {"orders": orders}},
        target={"topics": {"a.orders": there}, "defaults": {"segment.ms": "7"}},
    )
    hidden = replace(orders, settings=None)
    gone = test_deletes.GONE
    return {
        "topic-created": (
            RULES,
            facts_with(FACTS, source={"topics": {"orders": topic("orders", part(), part(), configs=settings)}}),
        ),
        "topic-created-on-fewer-brokers": (RULES, facts_with(TWO, target={"brokers": 1})),
        "topic-created-as-the-target-would": (replace(RULES, replication_factor=-1), TWO),
        "topic-created-as-the-source-is": (
            replace(RULES, replication_from_source=True, defaults_from_source=True),
            TWO,
        ),
        "topic-grown": (
            RULES,
            facts_with(
                FACTS,
                source={"topics": {"orders": topic("orders", part(), part())}},
                target={"topics": {"a.orders": target("a.orders", 0)}},
            ),
        ),
        "topic-configured": (RULES, differ),
        "topic-drifts": (replace(RULES, sync_configs=False), differ),
        "topic-with-hidden-settings": (RULES, facts_with(differ, source={"topics": {"orders": hidden}})),
        "topic-hidden-and-new": (RULES, facts_with(FACTS, source={"topics": {"orders": hidden}})),
        "topic-deleted": (test_deletes.FOLLOW, gone),
        "topic-deleted-at-the-source-alone": (RULES, gone),
        "topic-kept-for-others-wrote": (
            test_deletes.FOLLOW,
            facts_with(gone, target={"topics": {"a.orders": target("a.orders", 42)}}),
        ),
        "topic-with-a-slow-first-copy": (
            RULES,
            facts_with(
                FACTS,
                source={
                    "topics": {
                        "orders": topic(
                            "orders", part(), configs={"cleanup.policy": "compact", "delete.retention.ms": "1000"}
                        )
                    }
                },
                lane={"first_run": True},
            ),
        ),
    }


def _guarded() -> Mapping[str, Situation]:
    """What a policy sends on in place of a refusal; the gap says what is lost or void."""
    retention = source(topic("orders", part(log_start=51)))
    both = facts_with(test_resume_point.TARGET_NEW, source={"topics": test_resume_point.RECREATED.source.topics})
    skip, restart = OnGuard.SKIP, OnGuard.RESTART
    foreign = facts_with(
        SOUND, lane={"receipts": {}, "positions": {}, "first_run": True}, others={"foreign": {RECEIPT.target: 2}}
    )
    return {
        "gap-retention-skipped": (_guards(retention_passed=skip), retention),
        "gap-recreated-restarted": (_guards(topic_recreated=restart), test_resume_point.RECREATED),
        "gap-truncated-restarted": (_guards(source_truncated=restart), test_resume_point.CUT),
        "gap-truncated-skipped": (_guards(source_truncated=skip), test_resume_point.CUT),
        "gap-overwritten-restarted": (_guards(source_truncated=restart), test_resume_point.OVERWRITTEN),
        "gap-overwritten-skipped": (_guards(source_truncated=skip), test_resume_point.OVERWRITTEN),
        "gap-target-gone-restarted": (_guards(target_changed=restart), test_resume_point.TARGET_GONE),
        "gap-target-gone-skipped": (_guards(target_changed=skip), test_resume_point.TARGET_GONE),
        "gap-target-new-restarted": (_guards(target_changed=restart), test_resume_point.TARGET_NEW),
        "gap-target-cut-restarted": (_guards(target_changed=restart), test_resume_point.TARGET_CUT),
        "gap-target-filled-skipped": (_guards(target_changed=skip), test_resume_point.TARGET_FILLED),
        "gap-both-sides-restarted": (_guards(topic_recreated=restart, target_changed=restart), both),
        "gap-restarted-and-skipped": (
            _guards(source_truncated=restart, retention_passed=skip),
            source(topic("orders", replace(part(log_start=35), diverged=30))),
        ),
        "gap-cluster-changed": (
            _guards(cluster_changed=restart),
            facts_with(SOUND, source={"cluster_id": "cluster-x"}),
        ),
        "gap-foreign-records-put-up-with": (_guards(foreign_writer=skip), foreign),
        "gap-tombstones-skipped": (_guards(tombstones_passed=skip), compacted(9_000)),
        "gap-passed-by-hand": (RULES, facts_with(SOUND, lane={"skips": {place("orders"): (test_resume_point.STUCK,)}})),
        "gap-passed-by-hand-before-the-first-run": (
            RULES,
            facts_with(ORDERS, lane={"starts": {place("orders"): 5}, "skips": {place("orders"): (_by_hand(5, 20),)}}),
        ),
        "lifted-topic-gone": (test_absence.SKIPPING, test_absence.GONE),
        "lifted-no-topics": (_guards(topics_none=skip), facts_with(FACTS, source={"unfound": IN_VAIN})),
        "note-position-moved": (
            RULES,
            facts_with(SOUND, lane={"positions": {**SOUND.lane.positions, place("a.orders"): None}}),
        ),
        "note-unmatched-name": (RULES, facts_with(TWO, source={"unmatched": ("ordres",)})),
        "note-nothing-to-copy-yet": (
            RULES,
            facts_with(FACTS, source={"unfound": replace(IN_VAIN, idle="cluster a is empty")}),
        ),
        "note-open-transaction-at-the-source": (
            RULES,
            facts_with(
                ORDERS,
                now_ms=NOW_MS,
                source={"open_transactions": {place("orders"): OpenTransaction(producer_id=7, start=17, last_ms=1)}},
            ),
        ),
        "note-open-transaction-on-the-ledger": (
            RULES,
            facts_with(
                ORDERS,
                now_ms=NOW_MS,
                lane={
                    "open_on_ledger": {
                        place("ferry-ledger.a.internal"): OpenTransaction(
                            producer_id=7, start=17, last_ms=1, transactional_id="ferry.a->b.live.0"
                        )
                    }
                },
            ),
        ),
        "note-disks-fill-up": (
            replace(CAREFUL, max_bytes=10**9),
            on_disks(disks(b1=14, b2=12, b3=90)),
        ),
        "note-brokers-that-do-not-tell": (CAREFUL, on_disks(disks(b1=90))),
    }


IN_VAIN = Unfound(patterns=("ordres.*",), empty=False, shown=12, excluded=("orders-old",))


def _by_hand(start: int, end: int) -> Gap:
    return Gap(source=place("orders"), start=start, end=end, why=RefusalKind.STUCK, run="skip-1", at_ms=1)


def _refused() -> Mapping[str, Situation]:
    """One topic or partition is refused, and the others are copied."""
    disk = test_guards.DISK
    silent = Unavailable(kind=RefusalKind.NO_LEADER, why="its leader does not answer")
    other = OtherFlow(ledger="ferry-ledger.c.internal", claimed=frozenset({"orders"}), shared=frozenset(), written={})
    way = (Flow(source="b", target="c"), Flow(source="c", target="a"))
    undecided = OpenTransaction(producer_id=4711, start=41, last_ms=1_767_225_600_000, transactional_id="billing-1")
    two = facts_with(FACTS, source={"topics": {name: topic(name, part()) for name in ("orders", "payments")}})

    def named(name: str) -> Rules:
        return replace(RULES, policy=Table({"orders": name}), policy_name="mine.Table")

    return {
        "refused-partition-count": (RULES, at_target(target("a.orders", 41, 0))),
        "refused-name-too-long": (named("x" * 250), two),
        "refused-invalid-name": (named("a/b"), two),
        "refused-name-clash": (replace(RULES, policy=Table({"orders": "all", "payments": "all"})), two),
        "refused-loop-by-a-way": (replace(IDENTITY, way_back=lambda n: way if n == "orders" else ()), two),
        "refused-loop-by-offsets": (
            IDENTITY,
            facts_with(two, lane={"first_run": True}, others={"returned": {place("orders"): ((0, 40), (99, 100))}}),
        ),
        "refused-not-authorized": (
            RULES,
            facts_with(two, source={"hidden": frozenset({"secret"}), "unmatched": ("secret",)}),
        ),
        "refused-topic-gone": (RULES, test_absence.GONE),
        "refused-topics-none": (RULES, facts_with(FACTS, source={"unfound": IN_VAIN})),
        "refused-topic-recreated": (RULES, test_resume_point.RECREATED),
        "refused-partition-gone": (
            RULES,
            facts_with(test_absence.shrunk(), target={"topics": {"a.orders": target("a.orders", 41)}}),
        ),
        "refused-target-gone": (RULES, test_resume_point.TARGET_GONE),
        "refused-target-created-again": (RULES, test_resume_point.TARGET_NEW),
        "refused-target-cut": (RULES, test_resume_point.TARGET_CUT),
        "refused-target-filled": (RULES, test_resume_point.TARGET_FILLED),
        "refused-retention-passed": (RULES, source(topic("orders", part(log_start=51)))),
        "refused-retention-before-the-first-receipt": (
            RULES,
            facts_with(ORDERS, lane={"starts": {place("orders"): 5}}),
        ),
        "refused-source-truncated": (RULES, test_resume_point.CUT),
        "refused-source-overwritten": (RULES, test_resume_point.OVERWRITTEN),
        "refused-foreign-writer": (RULES, facts_with(SOUND, others={"foreign": {RECEIPT.target: 44}})),
        "refused-foreign-writer-before-the-first-copy": (
            RULES,
            facts_with(
                SOUND,
                lane={"receipts": {}, "positions": {}, "first_run": True},
                others={"foreign": {RECEIPT.target: 2}},
            ),
        ),
        "refused-foreign-transaction": (
            RULES,
            facts_with(SOUND, others={"open_transactions": {RECEIPT.target: undecided}}),
        ),
        "refused-stranger-in-a-merged-topic": (
            replace(IDENTITY, merges=lambda _: True),
            facts_with(
                FACTS,
                source={"topics": {"orders": topic("orders", part(), part())}},
                others={"unaccounted": {place("orders", 1): 17}},
            ),
        ),
        "refused-ledger-behind": (replace(RULES, guards=SOFT), lost(LATER)),
        "refused-no-leader": (RULES, source(topic("orders", leaderless=(0,)))),
        "refused-no-answer": (RULES, source(replace(topic("orders", leaderless=(0,)), unserved={0: silent}))),
        "refused-no-leader-at-the-target": (RULES, at_target(replace(target("a.orders"), partitions=1))),
        "refused-too-few-replicas": (RULES, at_target(target("a.orders", 41, replicas={0: (1, 3)}, min_in_sync=2))),
        "refused-storage": (RULES, source(replace(topic("orders", leaderless=(0,)), unserved={0: disk}))),
        "refused-owned": (RULES, facts_with(SOUND, lane={"claims": {**SOUND.lane.claims, "a.orders": "drill"}})),
        "refused-owned-elsewhere": (IDENTITY, facts_with(two, others={"flows": (other,)})),
        "refused-no-space": (CAREFUL, on_disks(disks(b1=14, b2=90, b3=90))),
        "refused-no-space-for-a-new-topic": (CAREFUL, on_disks(disks(b1=11, b2=11, b3=11), there=False)),
        "refused-tombstones-passed": (RULES, compacted(9_000)),
        "refused-run-cluster-changed": (RULES, facts_with(SOUND, source={"cluster_id": "cluster-x"})),
        "refused-run-target-changed": (
            RULES,
            facts_with(
                SOUND,
                lane={"receipts": {at: replace(one, target_cluster_id="b") for at, one in SOUND.lane.receipts.items()}},
            ),
        ),
    }


def _transformed() -> Mapping[str, Situation]:
    """Records that are changed on their way, each of which keeps its partition."""
    two = facts_with(FACTS, source={"topics": {name: topic(name, part()) for name in ("orders", "payments")}})

    def by(one: Transform) -> Rules:
        return replace(RULES, transform_of=lambda name: one if name == "orders" else None)

    return {
        "transformed-beside-plain": (changed(RULES), MIXED),
        "transformed-alone": (
            changed(RULES),
            facts_with(MIXED, source={"topics": {"orders": topic("orders", part(), part())}}),
        ),
        "transformed-and-renamed": (replace(RENAMED, policy=Table({"orders": "eu.orders"})), two),
        "transformed-with-a-budget": (replace(changed(RULES), max_records=60), MIXED),
        "transformed-by-one-task": (replace(changed(RULES), max_tasks=1), MIXED),
        "refused-transform-name": (replace(RENAMED, policy=Table({"orders": "ferry-ledger.a.internal"})), two),
        "refused-transform-unknown-name": (by(Transform("day", why_unknown="TimestampRouter asks each record")), two),
        "refused-transform-lost": (by(Transform("small", why_lost="a:b cannot be imported")), two),
        "refused-transform-of-a-dealt-topic": (
            RULES,
            facts_with(FACTS_HALF, source={"topics": {"t": FACTS_HALF.source.topics["t"], "u": topic("u", part())}}),
        ),
    }


def _dealt() -> Mapping[str, Situation]:
    """Topics that get other partitions."""
    small = replace(RULES, transform_of=lambda name: RULE if name == "t" else None)
    few = replace(RULES, transform_of=lambda name: RULE._replace(digest="few", partitions=3, text="spec"))

    def of(t: SourceTopic, **facts: Any) -> Facts:
        return facts_with(FACTS_HALF, source={"topics": {"t": t}}, **facts)

    level = {**HALF, place("a.t", 1): test_deal.receipt(1, (5, 3), target_next=3)}
    wide = replace(target("a.t", 0, 0, 0, 0), brokers=dict.fromkeys(range(4), (1,)))
    full = {1: BrokerSpace(total=1_000_000, usable=201_000)}
    resting = topic("t", part(end=9), part(end=9), configs={"cleanup.policy": "compact", "delete.retention.ms": "1000"})
    begun = replace(ERA, target_topic="x", since=5, digest="d")
    skip = GuardPolicy(default=OnGuard.SKIP)
    return {
        "dealt-first-run": (DEALT, BESIDE),
        "dealt-goes-on": (small, FACTS_HALF),
        "dealt-caught-up": (
            small,
            facts_with(
                FACTS_HALF,
                lane={"units": {place("a.t", n): test_deal.receipt(n, (9, 9), target_next=4) for n in (0, 1)}},
            ),
        ),
        "dealt-with-a-budget": (replace(DEALT, max_records=90), BESIDE),
        "dealt-by-a-changed-rule-that-waits": (few, FACTS_HALF),
        "dealt-by-a-changed-rule": (few, facts_with(FACTS_HALF, lane={"units": level})),
        "dealt-to-topics-by-name": (BY_NAME, FIRST),
        "dealt-by-a-rule-that-is-half-written": (
            BY_NAME,
            facts_with(FIRST, lane={"eras": {"x": begun}, "first_run": False}),
        ),
        "dealt-retention-skipped": (
            replace(small, guards=Guards(retention_passed=skip)),
            of(topic("t", part(end=9), part(log_start=4, end=9))),
        ),
        "dealt-passed-by-hand": (
            small,
            facts_with(
                FACTS_HALF,
                lane={
                    "dealt": {place("t", 0): 5, place("t", 1): 1},
                    "skips": {place("t", 1): (replace(_by_hand(1, 4), source=place("t", 1)),)},
                },
            ),
        ),
        "dealt-grown": (small, of(topic("t", part(end=9), part(end=9), part(log_start=5, end=9)))),
        "dealt-leader-epochs": (
            small,
            facts_with(FACTS_HALF, lane={"units": {at: redealt(one, epochs=(2, 1)) for at, one in HALF.items()}}),
        ),
        "refused-dealt-retention-passed": (small, of(topic("t", part(end=9), part(log_start=4, end=9)))),
        "refused-dealt-truncated": (small, of(topic("t", part(end=4), part(end=9)))),
        "refused-dealt-no-leader": (small, of(topic("t", part(end=9), leaderless=(0,)))),
        "refused-dealt-loop": (small, facts_with(FACTS_HALF, others={"returned": {place("t", 0): ((6, 7),)}})),
        "refused-dealt-foreign-writer": (small, facts_with(FACTS_HALF, others={"foreign": {place("a.t", 1): 4}})),
        "refused-dealt-target-cut": (small, facts_with(FACTS_HALF, target={"cut": {place("a.t", 1): 2}})),
        "refused-dealt-target-gone": (small, facts_with(FACTS_HALF, target={"topics": {}})),
        "refused-dealt-recreated": (small, of(topic("t", part(end=9), part(end=9), topic_id="new"))),
        "refused-dealt-ledger-behind": (small, facts_with(FACTS_HALF, lane={"eras": {"a.t": replace(ERA, since=0)}})),
        "refused-dealt-too-few-partitions": (
            replace(RULES, transform_of=lambda _: RULE._replace(digest="few", partitions=1)),
            facts_with(FACTS_HALF, lane={"units": level}),
        ),
        "refused-dealt-rule-lost": (few, facts_with(FACTS_HALF, lane={"lost_rules": {"a.t": "PySpark is another"}})),
        "refused-dealt-no-space": (
            replace(DEALT, free_percent=20),
            facts_with(BESIDE, target={"topics": {"a.t": wide}, "space": full, "brokers": 1}),
        ),
        "refused-dealt-tombstones-passed": (
            small,
            of(
                resting,
                now_ms=10**9,
                lane={
                    "dealt": {place("t", 0): 5, place("t", 1): 1},
                    "seen": {place("t", 1): Seen(whole_ms=0, asked_ms=0, asked_end=2)},
                },
            ),
        ),
        "refused-dealt-in-a-window": (replace(small, lane="backfill-x"), facts_with(FACTS_HALF, lane={"claims": {}})),
        "refused-dealt-name-claimed": (BY_NAME, facts_with(FIRST, lane={"claims": {"x": "other"}})),
        "refused-dealt-after-plain": (
            small,
            facts_with(FACTS_HALF, lane={"receipts": {place("a.t"): replace(RECEIPT, target=place("a.t"))}}),
        ),
    }
