"""`ferry backfill` and `ferry lanes`."""
