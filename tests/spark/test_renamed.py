"""Copies that a transform names, by the command line: kept and dealt topics, and then another chain of names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferry.dev import RunningCluster
from ferry.ledger.unit_codec import last_units
from tests.harness import Lab, create_topic, new_alias, producer, read_topic, send, settled
from tests.program import ferry
from tests.pure.run.unit_flows import messages
from tests.spark.test_transformed import there

SOURCES, TARGETS, RECORDS = 5, 3, 300
CONNECT = "org.apache.kafka.connect.transforms"


def by_place(cluster: RunningCluster, topic: str) -> list[list[tuple[object, ...]]]:
    """Records of each partition without their offsets."""
    return [[row[1:] for row in rows] for _, rows in sorted(read_topic(cluster.bootstrap, topic).items())]


def test_copies_have_the_names_that_transforms_give_them(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    kept, dealt, plain = (f"{topic}-{name}" for name in ("kept", "dealt", "plain"))
    for name in (kept, dealt, plain):
        create_topic(source_cluster, name, SOURCES)
        send(producer(source_cluster), name, messages(RECORDS))
    settings = {
        "ferry.transforms": "eu, fewer",
        "ferry.transform.eu.topics": kept,
        "ferry.transform.eu.target": "regexp_replace(concat('us.', topic), '^us', 'eu')",
        "ferry.transform.eu.redact": "$.card",  # what is no JSON is poison, and goes there as well
        "ferry.transform.eu.poison": "pass",
        "ferry.transform.fewer.topics": dealt,
        "ferry.transform.fewer.partitions": str(TARGETS),
        "ferry.transform.fewer.target": "target || '-fewer'",
    }
    one = Lab(
        source=source_cluster,
        target=target_cluster,
        alias=new_alias(),
        topics=(kept, dealt, plain),
        settings=settings,
    )
    told = ferry("run", "--id", "r-1", "--spark", "--json", config=one.write(tmp_path))
    assert (told.code, told.json("run")["refusals"]) == (0, []), told.err
    fewer = f"{one.target_topic(dealt)}-fewer"
    assert {name for name in there(one) if topic in name} == {fewer, f"eu.{kept}", one.target_topic(plain)}
    source = by_place(source_cluster, kept)
    assert by_place(target_cluster, f"eu.{kept}") == source
    assert sum(map(len, by_place(target_cluster, fewer))) == RECORDS
    with one.runs() as runs:
        assert {place.topic for place in last_units(settled(runs), runs.lane)} == {fewer}
    assert ferry("lag", "--json", config=one.write(tmp_path)).json("lag")["total"]["records"] == 0
    shown = ferry("plan", "--json", config=one.write(tmp_path)).json("plan")
    assert (shown["slices"], shown["changes"], shown["refusals"], "units" in shown) == ([], [], [], False)

    chain = {
        "transforms": "bare, west",
        "transforms.bare.type": f"{CONNECT}.RegexRouter",
        "transforms.bare.regex": r".*\\.(.*)",
        "transforms.bare.replacement": "$1",
        "transforms.west.type": f"{CONNECT}.RegexRouter",
        "transforms.west.regex": f"({kept})",
        "transforms.west.replacement": "west_$1",
        "transforms.west.predicate": "kept",
        "predicates": "kept",
        "predicates.kept.type": f"{CONNECT}.predicates.TopicNameMatches",
        "predicates.kept.pattern": kept,
    }
    other = replace(one, topics=(kept, plain), settings=chain)
    told = ferry("run", "--id", "r-2", "--spark", "--json", config=other.write(tmp_path))
    assert (told.code, told.json("run")["refusals"]) == (0, []), told.err
    assert by_place(target_cluster, f"west_{kept}") == source
    assert by_place(target_cluster, plain) == by_place(source_cluster, plain)
    assert by_place(target_cluster, f"eu.{kept}") == source, "the old copy stays"
    assert {one.target.topic for one in other.receipts()} >= {f"eu.{kept}", f"west_{kept}", plain}
