"""The connection type "Kafka cluster": Airflow keeps a cluster's settings, and its button "Test" connects to it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook

from ferry.config.flow.clients import kafka_python_options
from ferry.config.login.connection import TYPE
from ferry.config.text.secrets import ClientProperties
from ferry.errors import FerryError
from ferry_airflow.cluster_settings import settings_of

TEST_SECONDS = 10.0
"""How long the Test button waits for an answer; the web server's worker waits with it."""


class KafkaClusterHook(BaseHook):
    """A Kafka cluster by an Airflow connection."""

    conn_name_attr = "conn_id"
    default_conn_name = "kafka_cluster_default"
    conn_type = TYPE
    hook_name = "Kafka cluster"

    def __init__(self, conn_id: str = default_conn_name, **kwargs: Any) -> None:
        """`conn_id` names the connection, which is read when it is used."""
        super().__init__(**kwargs)
        self.conn_id = conn_id

    def get_conn(self) -> ClientProperties:
        """Return the cluster's settings by Java's names; raises BadInput when the connection is missing or wrong."""
        return settings_of(self.conn_id)

    def test_connection(self) -> tuple[bool, str]:
        """Connect as a run would; return the cluster's id and brokers, or why it cannot be reached, in one sentence."""
        from ferry.kafka.connect.cluster import Cluster, event_loop  # noqa: PLC0415 - Kafka's libraries only where used
        from ferry.lane.connections import manager_options  # noqa: PLC0415 - as above

        try:
            options = manager_options(kafka_python_options(self.get_conn()))
            loop = event_loop()
            cluster = Cluster(loop, "of this connection", options, patience_s=TEST_SECONDS)
            try:
                loop.run(cluster.open)
                return True, f"cluster {cluster.cluster_id}, brokers {', '.join(cluster.addresses)}"
            finally:
                cluster.close()
                loop.close()
        except FerryError as error:
            return False, str(error)
