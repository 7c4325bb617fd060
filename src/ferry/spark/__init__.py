"""A micro-run's copy step as a Spark job: slots become tasks, receipts come back as rows, record bytes stay outside."""
