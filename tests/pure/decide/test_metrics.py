"""What runs tell adds up, however often they tell it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.values import SCHEDULE_PRESETS
from ferry.config.settings import parse_settings
from ferry.errors import Unreachable
from ferry.features.observe.acts import after_run as acts
from ferry.features.observe.acts.textfile import exposition, parse
from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.alerts import AlertKind, alerts_of, late_alert, wants_lag
from ferry.features.observe.rules.due import due_ms, shortest_interval
from ferry.features.observe.rules.of_run import after_run, lag_gauges, only_of, with_lag, with_skip, with_verification
from ferry.features.observe.rules.samples import Values, labelled
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.report import Report
from ferry.ledger.run_codec import run_record
from ferry.model import (
    AgeStats,
    Flow,
    Gap,
    GroupOutcome,
    Receipt,
    RefusalKind,
    Resolution,
    RunVerified,
    ThrottleTime,
    Verified,
    VerifyMode,
)
from ferry.plan.rules.lag import PartitionLag
from tests.golden import Golden
from tests.pure.decide.test_deal import receipt as unit_receipt
from tests.pure.decide.values import PLAN, RECEIPT, lying, place, refusal, run_of

COMMON = labelled((), source="a", target="b", lane="live")


def flow(*lines: str) -> FlowConfig:
    text = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\na->b.enabled = true\n"
    return parse_settings(text + "\n".join(lines) + "\n", "f").flow("a->b")


FLOW = flow("ferry.schedule = */5 * * * *", "ferry.rpo.seconds = 600")


def report(generation: int, records: int, *, refused: int = 0, started_ms: int = 1_000_000) -> Report:
    """A run that has copied so many records of one topic so far."""
    return Report(
        plan=replace(PLAN, flow=Flow(source="a", target="b"), lane="live", generation=generation),
        started_ms=started_ms,
        receipts=tuple(replace(RECEIPT, records=1, at_ms=started_ms + 2_000) for _ in range(records)),
        refusals=tuple(refusal("t", number) for number in range(refused)),
        unfinished=(),
        left=(),
        done=0,
    )


def value(values: Values, metric: m.Metric, **more: str) -> float | None:
    return values.get((metric.name, labelled(COMMON, **more)))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=12))
def test_counters_have_what_every_run_copied_once(told: list[tuple[int, int]]) -> None:
    """Runs are told in any order and again, each time with no less than before; late word of an old run is lost."""
    values: Values = {}
    copied: dict[int, int] = {}
    newest = -1
    for generation, records in told:
        values = after_run(values, report(generation, max(records, copied.get(generation, 0))), FLOW)
        if generation >= newest:
            newest = generation
            copied[generation] = max(records, copied.get(generation, 0))
    topic = RECEIPT.target.topic
    assert (value(values, m.RECORD_COUNT, topic=topic) or 0) == sum(copied.values())
    assert (value(values, m.RUN_COUNT) or 0) == len(copied)
    assert only_of(values, FLOW) == values


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=12), st.integers(0, 3_000))
def test_runs_of_a_ledger_that_was_rebuilt_or_begun_again_count(begun: list[tuple[int, bool]], took_ms: int) -> None:
    """Each run begins later than those before it, at any generation, also at one that another ledger had."""
    values: Values = {}
    for number, (generation, twice) in enumerate(begun):
        started_ms = 1_790_000_000_007 + number * 300_000
        run = replace(
            report(generation, 1, started_ms=started_ms), receipts=(replace(RECEIPT, at_ms=started_ms + took_ms),)
        )
        for _ in range(1 + twice):
            values = parse(exposition(after_run(values, run, FLOW)))
        assert value(values, m.GENERATION) == generation
        assert value(values, m.LAST_SUCCESS_TIME) == (started_ms + int(run.seconds * 1000)) / 1000
    assert value(values, m.RUN_COUNT) == value(values, m.SUCCESS_COUNT) == len(begun)


def test_the_alerts_see_the_failures_after_a_ledger_was_rebuilt() -> None:
    values = after_run({}, report(5_000, 1, started_ms=1_000_000), FLOW)
    values = after_run(values, report(100, 0, refused=1, started_ms=9_000_000), FLOW)
    assert [value(values, m.LAST_RUN_STATE, state=state) for state in ("success", "partial", "failed")] == [0, 0, 1]
    assert value(values, m.LAST_SUCCESS_TIME) == 1_002
    assert after_run(values, report(99, 1, started_ms=8_000_000), FLOW) == values


def test_what_was_dealt_to_other_partitions_counts_with_its_dead_letters() -> None:
    """Beside what kept its partitions; what was read is the source's offsets, once for both target partitions."""
    units = tuple(replace(unit_receipt(n, (5, 3), target_next=9), records=4, bytes=40, dead_letters=2) for n in (0, 1))
    kept = replace(RECEIPT, start=0, end=40, dead_letters=1)
    values = after_run({}, replace(report(1, 0), receipts=(kept, *units)), FLOW)
    for topic, records, letters in (("a.t", 8, 4), (RECEIPT.target.topic, 40, 1)):
        assert value(values, m.RECORD_COUNT, topic=topic) == records
        assert value(values, m.DEAD_LETTER_COUNT, topic=topic) == letters
    assert value(values, m.SOURCE_RECORD_POLL) == 40 + 5 + 3


def test_a_run_that_is_not_green_keeps_the_time_of_the_last_success_and_when_the_next_is_due() -> None:
    good = after_run({}, report(1, 1, started_ms=0), FLOW)
    bad = after_run(good, report(2, 1, refused=1, started_ms=400_000), FLOW)
    assert value(good, m.LAST_SUCCESS_TIME) == value(bad, m.LAST_SUCCESS_TIME) == 2
    assert value(good, m.SUCCESS_DUE_TIME) == value(bad, m.SUCCESS_DUE_TIME) == 900
    assert value(bad, m.LAST_RUN_TIME) == 402
    assert [value(bad, m.LAST_RUN_STATE, state=state) for state in ("success", "partial", "failed")] == [0, 1, 0]
    mended = after_run(bad, report(2, 2, started_ms=400_000), FLOW)
    assert (value(mended, m.SUCCESS_COUNT), value(mended, m.RUN_COUNT)) == (2, 2)
    assert value(after_run({}, report(1, 0, refused=1, started_ms=0), FLOW), m.SUCCESS_DUE_TIME) == 900


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("ferry.schedule = */5 * * * *", 900),
        ("ferry.schedule = @daily", 3 * 86_400),
        ("ferry.schedule = none", None),
        ("ferry.schedule = */5 * * * *\nferry.alert.late.intervals = 0", None),
    ],
)
def test_the_first_success_is_due_by_the_schedule_that_the_file_has_now(line: str, due: int | None) -> None:
    began = after_run({}, report(1, 0, refused=1, started_ms=0), FLOW)
    now = after_run(parse(exposition(began)), report(2, 0, refused=1, started_ms=400_000), flow(line))
    assert value(now, m.SUCCESS_DUE_TIME) == due, "counted from the first run"
    again = after_run(parse(exposition(now)), report(3, 0, refused=1, started_ms=500_000), FLOW)
    assert value(again, m.SUCCESS_DUE_TIME) == 900


def test_the_schedule_that_a_file_without_a_line_has_is_airflows_alone() -> None:
    """What else starts `ferry run` is not known."""
    silent = flow("ferry.rpo.seconds = 600")
    before = after_run({}, report(1, 1, started_ms=0), silent, in_airflow=True)
    assert value(before, m.SUCCESS_DUE_TIME) == 900
    by_hand = after_run(before, report(2, 1, started_ms=60_000), silent)
    assert value(by_hand, m.SUCCESS_DUE_TIME) is None
    assert value(after_run(by_hand, report(3, 1, started_ms=0), silent, in_airflow=True), m.SUCCESS_DUE_TIME) == 900


def test_runs_that_no_longer_verify_themselves_take_back_what_an_earlier_one_found() -> None:
    verifying = flow("ferry.verify = receipt", "ferry.verify.every.runs = 9")
    wrong = RunVerified(
        mode=VerifyMode.RECEIPT, generation=1, equal=False, partitions=1, records=1, bytes=1, seconds=0.0
    )
    values = after_run({}, replace(report(1, 1), verified=wrong), verifying)
    not_due = after_run(values, report(2, 1, started_ms=2_000_000), verifying)
    assert value(not_due, m.VERIFIED_EQUAL, by="run") == 0, "the next one has not compared anything"
    other = Verified(
        flow=Flow(source="a", target="b"), lane="live", partitions=1, records=1, bytes=1, seconds=0.1, differences=()
    )
    off = after_run(with_verification(not_due, other, 9_000), report(3, 1, started_ms=3_000_000), FLOW)
    assert {dict(at)["by"] for (name, at) in off if name.startswith("ferry_verification_")} == {"verify"}


def test_the_lag_of_a_topic_is_the_sum_and_the_oldest_and_topics_that_are_gone_are_not_told() -> None:
    def lag(topic: str, number: int, records: int | None, seconds: float | None) -> PartitionLag:
        return PartitionLag(
            source=place(topic, number),
            target=place(f"a.{topic}", number),
            position=0,
            source_end=records,
            records=records,
            bytes=records,
            seconds=seconds,
        )

    values = with_lag({}, FLOW, [lag("gone", 0, 1, 1.0)], 0)
    values = with_lag(values, FLOW, [lag("t", 0, 5, 30.0), lag("t", 1, 7, 20.0), lag("t", 2, None, None)], 5_000)
    assert value(values, m.LAG_RECORDS, topic="a.t") == 12
    assert value(values, m.LAG_SECONDS, topic="a.t") == 30
    assert value(values, m.LAG_UNKNOWN, topic="a.t") == 1
    assert value(values, m.LAG_TIME) == 5
    assert not [key for key in values if ("topic", "a.gone") in key[1]]


def test_gauges_of_lag_are_as_many_as_topics_unless_the_file_asks_for_partitions() -> None:
    lags = [lagging(number, records=2, seconds=30.0 + number) for number in range(500)]
    lags.append(replace(lagging(500, records=2, seconds=0.0), seconds=None))
    gauges = lag_gauges(FLOW, lags, 5_000)
    topic = labelled(COMMON, topic="a.t")
    assert {metric.word: value for (metric, labels), value in gauges.items() if labels == topic} == {
        "lag-records": 1_002,
        "lag-bytes": 1_002,
        "lag-seconds": 529.0,
        "lag-unknown-partitions": 1,
    }
    assert {metric.word: value for (metric, labels), value in gauges.items() if labels == COMMON} == {
        "lag-most-records": 2,
        "lag-timestamp-seconds": 5,
        "lag-limit-seconds": 600,
    }
    unknown = [replace(lags[0], records=None, bytes=None, seconds=None)]
    names = {metric for metric, _ in lag_gauges(FLOW, unknown, 0)}
    assert names == {m.LAG_UNKNOWN, m.LAG_TIME, m.LAG_LIMIT}, "0 would look like health"
    by_partition = lag_gauges(flow("ferry.metrics.per.partition = true"), lags, 0)
    assert sum(metric is m.LAG_RECORDS for metric, _ in by_partition) == len(lags)


@pytest.mark.parametrize(
    ("schedule", "intervals", "due"),
    [
        ("*/5 * * * *", 3, 900),
        ("@hourly", 2, 7_200),
        ("0 8-18 * * 1-5", 1, 8 * 3600),  # Thursday, 1 January 1970
        ("*/5 * * * *", 0, None),
        ("@continuous", 3, None),
        (None, 3, None),
    ],
)
def test_a_success_is_due_when_the_schedule_has_come_round_so_often(
    schedule: str | None, intervals: int, due: int | None
) -> None:
    assert due_ms(schedule, 2_000, intervals) == (None if due is None else due * 1000)


def test_every_schedule_that_the_file_may_have_has_times() -> None:
    for preset in set(SCHEDULE_PRESETS) - {"@once", "@continuous"}:
        due = due_ms(preset, 0, 1)
        assert due is not None
        assert datetime.fromtimestamp(due / 1000, UTC) <= datetime(1971, 1, 1, tzinfo=UTC)
    assert shortest_interval("*/5 8-18 * * *") == timedelta(minutes=5)


def test_what_somebody_should_hear_of_is_one_sentence_each(golden: Golden) -> None:
    behind = PartitionLag(
        source=place("t"), target=place("a.t"), position=0, source_end=9, records=9, bytes=9, seconds=700.0
    )
    gap = Gap(
        source=place("u"), start=0, end=9, why=RefusalKind.SOURCE_TRUNCATED, run="r", at_ms=1, how=Resolution.SKIP
    )
    found = report(1, 1)
    found = replace(
        found,
        plan=replace(found.plan, gaps=(gap,)),
        receipts=(replace(found.receipts[0], throttled=ThrottleTime(target=1_500)),),
        verified=RunVerified(
            mode=VerifyMode.RECEIPT,
            generation=1,
            equal=False,
            partitions=1,
            records=1,
            bytes=1,
            seconds=1.0,
            not_compared=("t-0 could not be read",),
        ),
    )
    alerts = alerts_of(FLOW, found, [behind])
    assert sorted(alert.kind for alert in alerts) == sorted(
        (AlertKind.LAG, AlertKind.GUARD, AlertKind.THROTTLED, AlertKind.VERIFICATION)
    )
    for alert in alerts:
        golden(alert.sentence, alert.kind)
    assert alerts_of(FLOW, report(1, 1), [replace(behind, seconds=600.0)]) == []
    assert alerts_of(FLOW, report(1, 1), [replace(behind, records=None, seconds=None)]), "unknown is not health"


def lagging(number: int, *, records: int, seconds: float) -> PartitionLag:
    return PartitionLag(
        source=place("t", number),
        target=place("a.t", number),
        position=0,
        source_end=records,
        records=records,
        bytes=records,
        seconds=seconds,
    )


def test_records_that_may_be_lost_are_a_limit_of_each_partition_and_so_are_seconds(golden: Golden) -> None:
    both = flow("ferry.rpo.seconds = 600", "ferry.rpo.records = 5")
    lags = [lagging(0, records=5, seconds=600.0), lagging(1, records=6, seconds=1.0)]
    assert alerts_of(both, report(1, 1), lags[:1]) == []
    (alert,) = alerts_of(both, report(1, 1), lags)
    golden(alert.sentence, "records")
    assert "t-1" in alert.sentence
    (alert,) = alerts_of(both, report(1, 1), [lagging(0, records=9, seconds=601.0)])
    golden(alert.sentence, "seconds and records")
    mute = replace(lagging(2, records=0, seconds=0.0), records=None, bytes=None, seconds=None)
    (alert,) = alerts_of(both, report(1, 1), [mute])
    golden(alert.sentence, "a lag that is not known")
    assert "record" not in alert.sentence.partition("allow")[2], "none was counted"
    (alert,) = alerts_of(both, report(1, 1), [mute, replace(lags[1], seconds=None)])
    golden(alert.sentence, "a lag that is not known, and an age")
    called = "ferry.alert.callback = tests.airflow.heard.hear"
    assert [wants_lag(flow(*lines)) for lines in ((called,), (called, "ferry.rpo.records = 5"))] == [False, True]
    told = with_lag(after_run({}, report(1, 1), both), both, lags, 5_000)
    assert (value(told, m.LAG_MOST_RECORDS), value(told, m.LAG_LIMIT_RECORDS)) == (6, 5)
    silent = with_lag(told, both, [replace(one, records=None, bytes=None, seconds=None) for one in lags], 6_000)
    assert value(silent, m.LAG_MOST_RECORDS) is None, "what was known before is old"
    assert value(with_lag(silent, both, [], 7_000), m.LAG_MOST_RECORDS) == 0


def test_a_lag_that_could_not_be_measured_at_all_is_an_alert(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    def silent(flow: FlowConfig, *, patience_s: float) -> list[PartitionLag]:
        raise Unreachable("cluster a does not answer")

    monkeypatch.setattr(acts, "measure_lag", silent)
    called = "ferry.alert.callback = tests.airflow.heard.hear"
    (alert,) = acts.publish_run(flow(called, "ferry.rpo.records = 5"), report(1, 1)).alerts
    assert (alert.kind, alert.run) == (AlertKind.LAG, report(1, 1).plan.run)
    golden(alert.sentence)
    assert acts.publish_run(flow(called), report(1, 1), lag=True).alerts == [], "the file sets no limit"


def test_a_comparison_of_nothing_tells_nothing() -> None:
    nothing = Verified(
        flow=Flow(source="a", target="b"), lane="live", partitions=1, records=0, bytes=0, seconds=0.1, differences=()
    )
    assert with_verification({}, nothing, 9_000) == {}
    some = with_verification({}, replace(nothing, records=1), 9_000)
    assert value(some, m.VERIFIED_EQUAL, by="verify") == 1
    assert with_verification(some, nothing, 10_000) == some, "and leaves what was compared before"
    own = RunVerified(mode=VerifyMode.CONTENT, generation=1, equal=True, partitions=0, records=0, bytes=0, seconds=0.0)
    assert value(after_run({}, replace(report(1, 1), verified=own), FLOW), m.VERIFIED_EQUAL, by="run") is None
    failed = replace(own, equal=False, not_compared=("t-0 could not be read",))
    assert value(after_run({}, replace(report(1, 1), verified=failed), FLOW), m.VERIFIED_EQUAL, by="run") == 0


def aged(generation: int, *receipts: Receipt) -> Report:
    return replace(report(generation, 0), receipts=receipts)


def old(number: int, topic: str, at_ms: int, ages: tuple[int, int, int, int] | None, read_ms: int = 0) -> Receipt:
    """A receipt whose records were so old when they went to the target, `read_ms` before it was written."""
    if ages is None:
        return replace(RECEIPT, target=place(topic, number), at_ms=at_ms)
    youngest, mean, oldest, records = ages
    return replace(
        RECEIPT,
        target=place(topic, number),
        at_ms=at_ms,
        records=records,
        ages=AgeStats(min=youngest, mean=mean, max=oldest, records=records),
        max_timestamp_ms=at_ms - read_ms - youngest,
        mean_timestamp_ms=at_ms - read_ms - mean,
        min_timestamp_ms=at_ms - read_ms - oldest,
    )


def test_ages_and_latencies_of_a_topic_are_those_of_all_its_records() -> None:
    found = aged(
        1,
        old(0, "a.t", 1_002_000, (100, 200, 300, 30), read_ms=50),
        old(1, "a.t", 1_004_000, (700, 800, 900, 10), read_ms=10),
        old(0, "a.u", 1_004_000, None),
    )
    values = after_run({}, found, FLOW)
    ages = [value(values, metric, topic="a.t") for metric in m.RECORD_AGE_MS.all]
    assert ages == [700, 100, 900, 350], "the last transaction's youngest, the least, the most, the mean of 40 records"
    latencies = [value(values, metric, topic="a.t") for metric in m.REPLICATION_LATENCY_MS.all]
    assert latencies == [710, 150, 910, 390]
    assert value(values, m.RECORD_RATE, topic="a.t") == 40 / 4
    assert value(values, m.SOURCE_RECORD_WRITE_RATE) == 80 / 4
    assert value(values, m.RECORD_AGE_MS.avg, topic="a.u") is None, "an earlier Ferry's receipt tells no ages"
    assert not [key for key in after_run(values, report(2, 0), FLOW) if key[0] == m.RECORD_RATE.name]


def test_what_was_read_counts_markers_and_aborted_records_and_no_holes() -> None:
    receipt = replace(RECEIPT, start=0, end=60, records=40, missing=5)
    values = after_run({}, aged(1, receipt, replace(RECEIPT, start=0, end=500, records=0, adopted="mm2")), FLOW)
    assert (value(values, m.SOURCE_RECORD_POLL), value(values, m.SOURCE_RECORD_WRITE)) == (55, 40)


def test_what_somebody_passed_by_hand_adds_up_and_is_none_of_a_runs() -> None:
    gap = Gap(source=place("orders"), start=10, end=20, why=RefusalKind.STUCK, run="skip-1", at_ms=1)
    values = with_skip(with_skip({}, FLOW, gap), FLOW, gap)
    values = after_run(values, report(3, 1), FLOW)
    values = with_skip(values, FLOW, gap)
    assert value(values, m.GUARD_COUNT, guard="stuck", outcome="skipped") == 3
    assert value(values, m.GAP_COUNT, kind="stuck") == 3
    last_run = (m.GUARD_COUNT.last_run, labelled(COMMON, guard="stuck", outcome="skipped"))
    assert values[last_run] == 0, "nobody is called for what was decided by hand"
    assert parse(exposition(values)) == values


def test_how_long_groups_took_is_told_of_the_flow() -> None:
    took = GroupOutcome(
        groups=2, offsets=9, unchanged=0, left=(), inexact={}, latency=AgeStats(min=20, mean=30, max=40, records=2)
    )
    values = after_run({}, replace(report(1, 1), groups=took), FLOW)
    assert [value(values, metric) for metric in m.CHECKPOINT_LATENCY_MS.all] == [30, 20, 40, 30]


def test_a_flow_that_turns_to_partitions_begins_those_counters_anew_and_keeps_the_others() -> None:
    per_partition = flow("ferry.schedule = */5 * * * *", "ferry.metrics.per.partition = true")
    first, second = old(0, "a.t", 1_002_000, (1, 2, 3, 30)), old(1, "a.t", 1_002_000, (1, 2, 3, 10))
    values = after_run({}, aged(1, first, second), FLOW)
    values = after_run(values, aged(2, first, second), per_partition)
    values = after_run(values, aged(3, first, second), per_partition)
    assert value(values, m.RECORD_COUNT, topic="a.t", partition="0") == 60
    assert value(values, m.RECORD_COUNT, topic="a.t", partition="1") == 20
    assert value(values, m.RECORD_COUNT, topic="a.t") is None
    assert value(values, m.RUN_COUNT) == 3
    lag = PartitionLag(
        source=place("t", 1), target=place("a.t", 1), position=0, source_end=9, records=9, bytes=9, seconds=7.0
    )
    behind = with_lag(values, per_partition, [lag], 0)
    assert value(behind, m.LAG_RECORDS, topic="a.t", partition="1") == 9
    assert parse(exposition(behind)) == behind


def failed_runs(count: int, began_ms: int) -> LedgerView:
    """So many runs that were never planned, a second apart."""
    runs = (run_record(replace(run_of(f"run-{at}"), started_ms=began_ms + at * 1000)) for at in range(count))
    return fold(lying(*runs), count)


def late(view: LedgerView, now_ms: int) -> str:
    alert = late_alert(FLOW, "run-x", view, now_ms)
    assert alert is not None
    return alert.sentence


def test_a_late_alert_says_no_more_than_the_runs_that_were_looked_at(golden: Golden) -> None:
    began, hour = 1_700_000_000_000, 3_600_000
    few, many = failed_runs(3, began), failed_runs(30, began)
    golden(late(few, began + 60_000), "all runs looked at")
    golden(late(many, began + hour), "none succeeded")
    told = late(many, began + 60_000)  # all twenty began since the interval did: the one before may have succeeded
    golden(told, "only the newest looked at")
    assert "no run of flow" not in told
