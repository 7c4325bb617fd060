"""A micro-run's copy step as a Spark job: slots become tasks, receipts return as rows, records stay outside."""
