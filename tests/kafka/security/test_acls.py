"""What `ferry acls required` prints is what a flow needs: no less works, and what is missing is named."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AclPermissionType
from kafka import KafkaAdminClient

from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.readiness import check_readiness
from ferry.features.switch.rules.readiness import Rpo
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.groups.offsets import CommittedOffsets
from ferry.kafka.groups.offsets import commit_offsets as commit_offsets_of
from ferry.ledger.report import Report, RunState
from ferry.model import CommittedOffset, TopicPartition
from ferry.model.check import Check
from ferry.plan.rules.permissions import Acl, Resource, required_acls
from ferry.run.micro_run import local_origin
from tests.harness import Lab, commit_offsets, committed_offsets, grow_topic, numbered, producer, send, watermark
from tests.kafka.security.conftest import Pair
from tests.kafka.security.test_logins import RECORDS, fill, flow, plain, scram256, scram512
from tests.program import warm_ferry as ferry
from tests.tiers import ANSWER_S

MANY_GROUPS = 2_000
# Of each side and kind of resource, as the documents list them.
SOURCE_TOPIC = ("Read", "DescribeConfigs")
TARGET_TOPIC = ("Create", "Alter", "Write", "Read")
LEDGER = ("Create", "DescribeConfigs", "Write", "Read")


def guarded(secured: Pair, topic: str) -> tuple[Lab, list[Acl]]:
    """A flow and what it needs; nothing of that is granted."""
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic)
    return lab, [acl for acl in required_acls(lab.flow) if not acl.optional]


def grant(secured: Pair, acls: list[Acl]) -> None:
    secured.source.grant("User:scram512", [acl for acl in acls if acl.side == "source"])
    secured.target.grant("User:plain", [acl for acl in acls if acl.side == "target"])


def grown_run(secured: Pair, lab: Lab, topic: str) -> Report:
    """Two runs, with a partition more before the second: by then every request was made."""
    first = lab.micro_run()
    if first.state is not RunState.SUCCESS:
        return first
    grow_topic(secured.source.cluster, topic, 3)
    send(producer(secured.source.cluster), topic, numbered(RECORDS, partitions=3))
    return lab.micro_run()


def test_the_required_acls_are_enough(secured: Pair, topic: str) -> None:
    fill(secured, topic)
    lab, acls = guarded(secured, topic)
    grant(secured, acls)
    report = grown_run(secured, lab, topic)
    assert (report.state, report.refusals) == (RunState.SUCCESS, ())
    assert lab.assert_equal() == 2 * RECORDS


def test_nothing_is_asked_of_the_source_but_reading(secured: Pair) -> None:
    _, acls = guarded(secured, "t")
    assert {(acl.resource, acl.operation) for acl in acls if acl.side == "source"} == {
        (Resource(kind="topic", name="t"), operation) for operation in SOURCE_TOPIC
    }


IDENTICAL = {"ferry.offsets": "identical", "ferry.offsets.may.lose": "true"}


def test_identical_offsets_need_the_settings_of_the_target_and_nothing_else_more(
    secured: Pair, topic: str, tmp_path: Path
) -> None:
    """One after the other is granted; what is not is named, and nothing is written."""
    fill(secured, topic)
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic, **IDENTICAL)
    config, acls = lab.write(tmp_path), [acl for acl in required_acls(lab.flow) if not acl.optional]
    _, others = guarded(secured, topic)
    settings = [acl for acl in acls if acl.operation == "DescribeConfigs" and acl.side == "target"]
    more = [acl for acl in settings if not acl.resource.name.startswith("ferry-ledger.")]
    assert sorted(acl.resource.kind for acl in more) == ["cluster", "topic"]
    assert len(acls) == len(others) + len(more)
    grant(secured, [acl for acl in acls if acl not in more])
    for acl in more:
        answer = ferry("run", "--json", config=config)
        refusals = answer.json("run")["refusals"]
        assert (answer.code != 0, {one["kind"] for one in refusals}) == (True, {"not-authorized"})
        assert all("DESCRIBE_CONFIGS on the topic and " in one["message"] for one in refusals)
        grant(secured, [acl])
    assert ferry("run", config=config).code == 0
    grow_topic(secured.source.cluster, topic, 3)
    send(producer(secured.source.cluster), topic, numbered(RECORDS, partitions=3))
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == 2 * RECORDS


def test_a_copy_that_begins_with_empty_records_needs_delete_and_writes_nothing_without(
    secured: Pair, topic: str, tmp_path: Path
) -> None:
    fill(secured, topic)
    place = Place(topic, 0, 1)
    admin = secured.source.admin()
    assert admin.delete_records([place])[place].result(ANSWER_S).low_watermark == 1
    settings = {**IDENTICAL, "ferry.offsets.may.pass": "true"}
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic, **settings)
    config, acls = lab.write(tmp_path), [acl for acl in required_acls(lab.flow) if not acl.optional]
    deleting = [acl for acl in acls if acl.operation == "Delete"]
    assert [acl.resource for acl in deleting] == [Resource(kind="topic", name=lab.target_topic(topic))]
    grant(secured, [acl for acl in acls if acl not in deleting])
    answer = ferry("run", "--json", config=config)
    (refusal,) = answer.json("run")["refusals"]
    assert (answer.code != 0, refusal["kind"], refusal["partition"]) == (True, "not-authorized", 0)
    assert watermark(secured.target.cluster, lab.target_topic(topic), 0) == 0
    grant(secured, deleting)
    assert ferry("run", config=config).code == 0
    assert lab.assert_equal() == RECORDS - 1


def test_mirror_makers_topics_are_written_with_their_acls_and_named_without(secured: Pair, topic: str) -> None:
    """One after the other is granted; what is not stops neither the run nor the topics that are."""
    fill(secured, topic)
    mark = secrets.token_hex(4)
    settings = {"offset-syncs.topic.location": "source", "replication.policy.separator": f".{mark}."}
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic, **settings)
    acls = required_acls(lab.flow)
    grant(secured, [acl for acl in acls if not acl.optional])
    written = [acl for acl in acls if "MirrorMaker" in acl.why and acl.resource.name != "heartbeats"]
    assert [acl.operation for acl in written] == ["Create", "Write"] * 2
    beats = [acl for acl in acls if acl.resource.name == "heartbeats"]
    grant(secured, beats)  # other tests share the topic
    with lab.runs() as runs:
        plan = runs.open_run("first", local_origin())
        assert lab.copy(runs, plan).state is RunState.SUCCESS
        for number, acl in enumerate(written):
            checkpoint(runs, "first")
            waiting = sorted({acl.resource.name for acl in written[number:]})
            notes = sorted(note for note in runs.report("first").notes if "nothing else waits" in note)
            for name, note in zip(waiting, notes, strict=True):
                assert f"topic {name} on cluster" in note
            grant(secured, [acl])
        checkpoint(runs, "first")
        assert not [note for note in runs.report("first").notes if "nothing else waits" in note]


def test_groups_are_written_with_their_acls_and_named_without(secured: Pair, topic: str) -> None:
    """Two groups: first neither may be seen, then one may not be written, and in the end both are."""
    fill(secured, topic)
    mark = secrets.token_hex(4)
    groups = [f"one-{mark}", f"two-{mark}"]
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic, groups=", ".join(groups))
    for group in groups:
        commit_offsets(secured.source.cluster, group, {(topic, 0): 3})
    acls = required_acls(lab.flow)
    grant(secured, [acl for acl in acls if not acl.optional])
    seeing, writing = (
        [acl for acl in acls if acl.side == side and acl.resource.name in groups] for side in ("source", "target")
    )
    assert [(acl.resource.name, acl.operation) for acl in seeing] == [(group, "Describe") for group in groups]
    assert [(acl.resource.name, acl.operation) for acl in writing] == [(group, "Read") for group in groups]

    def failed() -> dict[str, str]:
        with lab.runs() as runs:
            plan = runs.open_run(f"run-{secrets.token_hex(4)}", local_origin())
            lab.copy(runs, plan)
            done = checkpoint(runs, plan.run)
            report = runs.report(plan.run)
        assert done is not None
        assert report.groups == done
        assert report.state is (RunState.PARTIAL if done.failed else RunState.SUCCESS)
        return {left.group: left.message for left in done.failed}

    for acls_of_side, said in ((seeing, "grant DESCRIBE on it"), (writing, "grant READ on it")):
        for number, acl in enumerate(acls_of_side):
            told = failed()
            assert set(groups[number:]) <= set(told)
            assert [told[group] for group in groups[number:] if said not in told[group]] == []
            grant(secured, [acl])
    assert failed() == {}
    for group in groups:
        assert committed_offsets(secured.target.cluster, group, lab.target_topic(topic), 2) == {0: 3}


def test_one_of_two_thousand_groups_that_may_not_be_written_is_named_and_the_others_are_done(
    secured: Pair, topic: str, tmp_path: Path
) -> None:
    fill(secured, topic)
    mark = f"many-{secrets.token_hex(4)}-"
    lab = flow(secured, scram512(secured.source), plain(secured.target), topic, groups=f"{mark}.*")
    groups = [f"{mark}{number:04}" for number in range(MANY_GROUPS)]
    stand_at(secured.source.cluster, groups, topic, 3)
    several = Resource(kind="group", name=mark, prefixed=True)
    acls = [acl for acl in required_acls(lab.flow) if not acl.optional]
    acls += [Acl(side=side, resource=several, operation="Read", why="") for side in ("source", "target")]
    grant(secured, acls)
    shut = Acl(side="target", resource=Resource(kind="group", name=groups[1234]), operation="Read", why="")
    secured.target.grant("User:plain", [shut], AclPermissionType.DENY)
    assert lab.micro_run().state is RunState.SUCCESS
    answer = ferry("groups", "sync", "--json", config=lab.write(tmp_path))
    assert answer.code == 1, answer.err
    (left,) = answer.json("groups-sync")["left"]
    assert (left["group"], left["why"]) == (groups[1234], "failed")
    assert f"group {groups[1234]}" in left["message"]
    assert "grant READ on it" in left["message"]
    with closing(KafkaAdminClient(bootstrap_servers=secured.target.cluster.bootstrap)) as admin:
        found = admin.list_group_offsets(dict.fromkeys(groups))
    there = {group: {at.offset for at in places.values()} for group, places in found.items() if places}
    assert there == {group: {3} for group in groups if group != groups[1234]}


def stand_at(cluster: RunningCluster, groups: Sequence[str], topic: str, offset: int) -> None:
    """Put very many groups at an offset of the first partition, by Ferry's own requests: many at a time."""
    at = {TopicPartition(topic=topic, partition=0): CommittedOffset(offset=offset)}
    loop = event_loop()
    brokers = Cluster(loop, "many", {"bootstrap_servers": cluster.bootstrap.split(",")})

    async def commit() -> CommittedOffsets:
        await brokers.open()
        return await commit_offsets_of(brokers, dict.fromkeys(groups, at))

    try:
        done = loop.run(commit)
        assert (done.failed, done.refused) == ({}, {})
    finally:
        brokers.close()
        loop.close()


def missing(acls: list[Acl], what: str) -> Acl:
    """The ACL that a case's name tells: side, resource, operation."""
    where, operation = what.split(" ")
    places = {
        "source-topic": lambda acl: acl.side == "source",
        "target-topic": lambda acl: acl.side == "target" and acl.resource.kind == "topic",
        "ledger": lambda acl: acl.resource.name.startswith("ferry-ledger."),
        "group": lambda acl: acl.resource.kind == "group",
        "transactional-id": lambda acl: acl.resource.kind == "transactional-id",
    }
    [found] = [
        acl
        for acl in acls
        if acl.operation == operation
        and places[where](acl)
        and (where == "ledger") == acl.resource.name.startswith("ferry-ledger.")
    ]
    return found


CASES = [
    *(f"source-topic {operation}" for operation in SOURCE_TOPIC),
    *(f"target-topic {operation}" for operation in TARGET_TOPIC),
    *(f"ledger {operation}" for operation in LEDGER),
    "group Read",
    "transactional-id Write",
]


def test_every_required_acl_is_a_case(secured: Pair) -> None:
    _, acls = guarded(secured, "t")
    assert sorted(map(str, acls)) == sorted(str(missing(acls, case)) for case in CASES)


@pytest.mark.parametrize("case", CASES)
def test_a_missing_acl_is_named_with_resource_and_operation(secured: Pair, topic: str, case: str) -> None:
    fill(secured, topic)
    lab, acls = guarded(secured, topic)
    lacking = missing(acls, case)
    grant(secured, [acl for acl in acls if acl != lacking])
    try:
        report = grown_run(secured, lab, topic)
    except Refused as error:
        sentences = [str(error)]
    else:
        assert report.state is RunState.PARTIAL or report.state is RunState.FAILED
        sentences = [refusal.message for refusal in report.refusals]
    operation = {"DescribeConfigs": "DESCRIBE_CONFIGS"}.get(lacking.operation, lacking.operation.upper())
    assert sentences
    for sentence in sentences:
        assert lacking.resource.name.rstrip(".") in sentence, sentence
        assert "grant " in sentence, sentence
        assert operation in sentence.partition("grant ")[2], sentence
        assert "\n" not in sentence
    # Granted what is missing, the next run completes what this one left.
    grant(secured, [lacking])
    assert lab.micro_run().state is RunState.SUCCESS
    lab.assert_equal()


def test_groups_that_the_login_may_not_see_are_not_known_until_it_may_describe_the_cluster(
    secured: Pair, topic: str
) -> None:
    """A broker leaves them out of its list without an error."""
    fill(secured, topic)
    mark = secrets.token_hex(4)
    settings = {"groups": f"billing-{mark}"}
    lab = flow(secured, scram256(secured.source), plain(secured.target), topic, **settings)
    for group in ("billing", "fraud"):
        commit_offsets(secured.source.cluster, f"{group}-{mark}", {(topic, 0): 3})
    acls = required_acls(lab.flow)
    cluster = [acl for acl in acls if acl.resource.kind == "cluster" and acl.operation == "Describe"]
    needed = [acl for acl in acls if not acl.optional or acl.resource.kind == "group"]
    secured.target.grant("User:plain", [acl for acl in needed if acl.side == "target"])
    own = scram256(secured.source).principal
    secured.source.grant(own, [acl for acl in needed if acl.side == "source"])
    assert lab.micro_run().state is RunState.SUCCESS

    def checked() -> tuple[Check, Check]:
        found = {one.name: one for one in check_readiness(lab.flow, Rpo(), back=True).checks}
        return found["outside"], found["acls"]

    with lab.runs() as runs:  # a request that brokers answer to logins without the right, too
        (users,) = [one for one in runs.preview().not_copied if one.what == "scram-users"]
    assert (users.count, "grant DESCRIBE on the " in users.message) == (None, True)
    before, acls_before = checked()
    assert (before.ok, before.known, mark in before.message) == (True, False, False)
    assert (acls_before.ok, "grant DESCRIBE on the " in acls_before.message) == (False, True)
    assert "grant DESCRIBE on the " in before.message
    secured.source.grant(own, [acl for acl in cluster if acl.side == "source"][:1])  # two features ask for it
    after, _ = checked()
    assert (after.ok, after.known, f"fraud-{mark}" in after.message) == (True, True, True)
