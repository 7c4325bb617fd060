"""What an application has delivered through the public sink, and what is left of a batch; pure (ADR 41)."""
