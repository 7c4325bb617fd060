"""Reports as evidence: canonical, chained, signed and kept."""
