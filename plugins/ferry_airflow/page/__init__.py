"""The page of Ferry in Airflow's own interface (docs/page.md)."""
