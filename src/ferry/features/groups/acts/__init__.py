"""Consumer groups: translated, written, kept, taken back and shown."""
