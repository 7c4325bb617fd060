"""How clients prove their identity: JAAS, key stores, TLS, and Airflow's connections."""
