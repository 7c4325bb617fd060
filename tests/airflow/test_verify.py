"""Runs that verify themselves and the DAG that compares everything, by a real Airflow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import BadInput
from ferry.features.observe.rules.samples import VERIFIED_EQUAL
from ferry_airflow.steps import verify_arguments, wanted_of
from tests.airflow.conftest import Flows
from tests.golden import Golden
from tests.harness import create_topic, numbered, producer, read_topics, send
from tests.kafka.run.test_verify import AT, flipped, messages, rewrite


def test_what_was_copied_is_verified_by_the_run_and_by_hand(flows: Flows) -> None:
    topic, copy = "verified-orders", "verified.verified-orders"
    create_topic(flows.source, topic, 2)
    client = producer(flows.source)
    send(client, topic, messages())
    send(client, topic, [one for one in numbered(100, partitions=2) if one.partition == 1])
    dag, by_hand = flows.dag("verified"), flows.verify_dag("verified")
    run, state = flows.run("verified")
    assert state == "success", flows.rest.log(dag, run, "report")
    assert set(flows.rest.states(dag, run)) == {"plan", "copy", "checkpoint", "verify", "report"}
    for task in ("verify", "report"):
        assert " receipt: equal; 2 partitions, 170 records" in flows.rest.log(dag, run, task)

    rows = read_topics(flows.target.bootstrap, [copy])[copy]
    rewrite(flows.target, {copy: {**rows, **flipped(rows)}})
    flows.rest.clear(dag, run)
    flows.rest.wait_run(dag, run, states=("queued", "running"))
    assert flows.rest.wait_run(dag, run) == "failed"
    assert flows.rest.states(dag, run)["verify"] == "success"
    where = f"value in {topic}-0 [{AT}, {AT + 1}]"
    said = flows.rest.log(dag, run, "report", 2)
    assert "is not equal: " + where in said
    assert "not copied" not in said
    (alert,) = flows.told("verified")
    assert (alert["kind"], alert["run"]) == ("verification", run)
    assert f"did not verify: {where}" in alert["said"]
    told = {value for (name, _), value in flows.metrics_of("verified").items() if name == VERIFIED_EQUAL.name}
    assert told == {0}, "what the rule FerryVerificationFailed looks at"

    everything = flows.rest.trigger(by_hand)
    assert flows.rest.wait_run(by_hand, everything) == "failed"
    said = flows.rest.log(by_hand, everything, "verify")
    assert f"1 differences, first: {where}; 2 partitions, 170 records" in said
    assert f"value {AT}" not in said, "values are not shown"
    (found,) = flows.rest.returned(by_hand, everything, "verify")["differences"]
    assert (found["kind"], found["source_range"], len(found["source_records"])) == ("value", [AT, AT + 1], 1)

    form = {"topics": [topic], "partition": 0, "from": str(AT + 1), "to": "120"}
    behind = flows.rest.trigger(by_hand, form)
    assert flows.rest.wait_run(by_hand, behind) == "success", flows.rest.log(by_hand, behind, "verify")
    returned = flows.rest.returned(by_hand, behind, "verify")
    assert (returned["equal"], returned["records"]) == (True, 120 - AT - 1)


def test_the_form_says_what_the_job_is_told(golden: Golden) -> None:
    form = {"topics": ["b", "a"], "partition": None, "from": "2026-01-31T06:00:00+01:00", "to": "", "mode": "full"}
    wanted = wanted_of({**form, "sample": 10})
    assert (wanted.topics, wanted.since_ms, wanted.until_ms, wanted.sample) == (
        {"a", "b"},
        1_769_835_600_000,
        None,
        None,
    )
    arguments = verify_arguments(replace(wanted, seed=7))
    assert arguments == ["--topic", "a", "--topic", "b", "--from", "2026-01-31T05:00:00.000Z", "--seed", "7"]
    sampled = wanted_of({"mode": "sample", "sample": 5, "topics": ["a"], "partition": 3, "from": "17"})
    assert (sampled.sample, sampled.start, sampled.partition) == (5, 17, 3)
    assert verify_arguments(wanted_of({"mode": "compacted"}))[-1] == "--compacted"
    assert verify_arguments(wanted_of({"without_ledger": True}))[-1] == "--without-ledger"
    with pytest.raises(BadInput, match=r"--from .*\d s .*future"):
        wanted_of({"from": "2999-01-01T00:00:00Z"}).check()
    for case, wrong in (
        ("a sample without ledger", {"without_ledger": True, "mode": "sample", "sample": 5}),
        ("no time", {"from": "yesterday"}),
        ("an offset of no partition", {"from": "12"}),
        ("the end first", {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
    ):
        with pytest.raises(BadInput) as refused:
            wanted_of(wrong).check()
        golden(refused.value, case)
