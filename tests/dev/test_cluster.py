"""Local clusters: what is started is found, survives a kill with its data, and is all that is stopped."""

from ferry.dev import RunningCluster


def test_pair_runs(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> None:
    assert source_cluster.bootstrap != target_cluster.bootstrap
    print(topic)
