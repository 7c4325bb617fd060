"""A micro-run from the outside, in processes of this machine: plan, copy, report."""
