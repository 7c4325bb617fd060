"""The exactly-once protocol: it opens a run, seals its plan and copies its slots. It runs against ports (ADR 2)."""
