"""The demo: about 1 GB between two clusters by Airflow and Spark while producers go on, then compared."""
