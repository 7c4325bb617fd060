"""Consumer groups, many at once, and their offsets."""
