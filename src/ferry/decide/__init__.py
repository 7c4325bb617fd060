"""Decisions: pure functions from facts to values. No socket, no clock, no Airflow, no Spark."""
