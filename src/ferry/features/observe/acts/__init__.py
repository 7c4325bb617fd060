"""Numbers of runs handed to whoever watches: Prometheus's text format in a file."""
