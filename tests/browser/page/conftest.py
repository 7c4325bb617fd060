"""The page without an Airflow around it, as in tests/airflow/page."""

from tests.airflow.page.conftest import desk, tables

__all__ = ["desk", "tables"]
