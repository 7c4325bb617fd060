"""The record path at work: a cluster is asked, its records are read."""
