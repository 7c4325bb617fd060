"""Consumer groups: their offsets translated, committed, kept and taken back."""
