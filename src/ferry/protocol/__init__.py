"""The exactly-once protocol: a run is opened, its plan sealed, its slots copied. It runs against ports (ADR 2)."""
