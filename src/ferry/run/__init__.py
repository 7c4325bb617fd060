"""A micro-run from the outside: plan, copy in processes of this machine or in Spark (`spark`), report."""
