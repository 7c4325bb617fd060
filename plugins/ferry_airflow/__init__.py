"""The Airflow side of Ferry: operators, settings and the setup of an Airflow home."""
