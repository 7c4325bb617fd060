"""The public sink on real clusters: open an attempt, let slots write, close the batch (ADR 41)."""
