"""`ferry doctor`."""
