"""The page without an Airflow around it, as in tests/airflow/page."""

from tests.airflow.page.conftest import application, desk, tables

__all__ = ["application", "desk", "tables"]
