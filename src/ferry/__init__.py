"""Ferry copies Kafka topics between clusters in bounded, audited, exactly-once micro-runs."""

__version__ = "0.1.0"
