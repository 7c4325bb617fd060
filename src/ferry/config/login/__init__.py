"""How clients prove who they are: JAAS, key stores, TLS, and Airflow's connections."""
