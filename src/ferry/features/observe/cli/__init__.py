"""`ferry metrics`."""
