"""The asset of a copied topic, for DAGs that run on copied data."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import Asset

from ferry_airflow.assets import topic_asset
from ferry_airflow.cluster_settings import flow_of_names
from ferry_airflow.task_group import config_path


def copied_asset(flow: str, topic: str, config: Path | str | None = None) -> Asset:
    """Return the asset that a flow's runs update when they copy records of a source topic.

    `flow` is `source->target`, of the file `config`, or else of the one that FERRY_CONFIG names. The asset leads to the
    flow's page. A DAG that names it by its address alone takes that link from it.

    No secret is resolved. Of an Airflow connection of the target its servers are read, because they are in the name.

    Raises BadInput without such a file or flow, or if the file holds an error. Raises it also if the target's
    `bootstrap.servers` refer to what is missing here, or its connection is missing or names no servers. Raises
    Refused if Airflow denies access to that connection, and Retryable for Airflow's other errors. Airflow shows each
    as an import error.
    """
    found = flow_of_names(config_path(config), flow)
    return topic_asset(found, "target", found.copy_of(topic))
