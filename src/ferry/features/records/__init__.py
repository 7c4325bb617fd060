"""The record path: records are read, changed, sent to other partitions and written."""
