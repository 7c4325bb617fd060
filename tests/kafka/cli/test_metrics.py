"""What a run leaves for Prometheus, on real clusters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.features.observe.acts.textfile import parse
from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.samples import Values, labelled
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send
from tests.program import warm_ferry as ferry


def test_runs_leave_their_metrics_with_lag_refusals_and_comparisons(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> None:
    good, bad = f"{topic}-good", f"{topic}-bad"
    alias = new_alias()
    settings = {"ferry.metrics.folder": str(tmp_path), "ferry.rpo.seconds": "900", "ferry.run.max.records": "60"}
    lab = Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(good, bad), settings=settings)
    config = tmp_path / "flow.properties"
    config.write_text(lab.text)
    began_ms = wall_ms()
    for name in (good, bad):
        create_topic(source_cluster, name)
        send(producer(source_cluster, batch_num_messages=10), name, numbered(100))
    create_topic(target_cluster, lab.target_topic(bad))
    send(producer(target_cluster), lab.target_topic(bad), numbered(1))  # somebody else's

    file = tmp_path / f"ferry__{alias}__t{alias}.prom"
    common = labelled((), source=alias, target=f"t{alias}", lane="live")

    def told() -> Values:
        return parse(file.read_text())

    def of(metric: m.Metric, **more: str) -> float | None:
        return told().get((metric.name, labelled(common, **more)))

    def there(metric: m.Metric) -> float:
        found = of(metric, topic=lab.target_topic(good))
        assert found is not None, metric.name
        return found

    first = ferry("run", config=config)
    assert first.code == 1, first.err
    copy = lab.target_topic(good)
    copied = of(m.RECORD_COUNT, topic=copy)
    assert copied
    assert copied + (of(m.LAG_RECORDS, topic=copy) or 0) == 100
    assert of(m.LAG_RECORDS, topic=lab.target_topic(bad)) == 100
    assert of(m.LAG_LIMIT) == 900
    assert of(m.SOURCE_RECORD_WRITE) == copied
    age, least, most, mean = (there(metric) for metric in m.RECORD_AGE_MS.all)
    latency, quickest, slowest, middle = (there(metric) for metric in m.REPLICATION_LATENCY_MS.all)
    assert 0 <= least <= mean <= most <= slowest <= wall_ms() - began_ms, "no record is older than this test"
    assert least <= quickest <= middle <= slowest
    assert least <= age
    assert quickest <= latency
    assert of(m.LAST_RUN_STATE, state="partial") == 1
    assert of(m.LAST_SUCCESS_TIME) is None
    assert of(m.GUARD_COUNT, guard="foreign-writer", outcome="refused") == 1

    later = {name: value for name, value in settings.items() if name != "ferry.run.max.records"}
    config.write_text(replace(lab, settings={**later, "ferry.guard.foreign.writer": "skip"}).text)
    second = ferry("run", config=config)
    assert second.code == 0, second.err
    assert of(m.RECORD_COUNT, topic=copy) == 100
    assert of(m.LAG_SECONDS, topic=copy) == 0
    assert of(m.LAST_SUCCESS_TIME) == of(m.LAST_RUN_TIME)
    assert (of(m.RUN_COUNT), of(m.SUCCESS_COUNT)) == (2, 1)
    assert ferry("verify", config=config).code == 0
    assert of(m.VERIFIED_TIME, by="verify")
