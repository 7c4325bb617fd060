"""The demo: Airflow and Spark copy about 1 GB between two clusters while producers run, then both are compared."""
