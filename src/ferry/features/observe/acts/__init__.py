"""Metrics of runs for monitoring, as a file in Prometheus's text format and over HTTP."""
