"""The flows of the page, as the API server sees them: those that Airflow can have DAGs of."""

from __future__ import annotations

from ferry.config.settings import Settings
from ferry.reader.flows import Flows
from ferry_airflow.naming import refuse_same_ids


def _check(settings: Settings) -> None:
    refuse_same_ids(flow.flow for flow in settings.flows)


def page_flows() -> Flows:
    """Return the flows of the file that FERRY_CONFIG names."""
    return Flows(_check)
