"""The public sink on real clusters: an attempt is opened, slots write, the batch is closed (ADR 41)."""
