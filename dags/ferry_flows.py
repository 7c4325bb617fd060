"""The DAGs of each enabled flow of the configuration file that FERRY_CONFIG names."""

from ferry_airflow.dags import flow_dags

globals().update(flow_dags())
