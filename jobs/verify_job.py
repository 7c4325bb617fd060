"""spark-submit jobs/verify_job.py --flow A->B: compares both clusters, as `ferry verify` does, in Spark's tasks."""

import argparse
import secrets
import sys
from pathlib import Path

from ferry.run.verify.survey import Wanted
from ferry.spark.job import job_parser
from ferry.spark.verify_job import main

SEED_BITS = 32


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = job_parser("Compare the two clusters of a flow through its ledger.")
    parser.add_argument("--out", type=Path, help="file for the result as JSON")
    parser.add_argument("--topic", action="append", help="only this source topic; may be repeated")
    parser.add_argument("--partition", type=int, help="only this partition of the one topic")
    parser.add_argument("--from", type=int, dest="start", help="the first source offset of the partition")
    parser.add_argument("--to", type=int, dest="end", help="the source offset to end before")
    parser.add_argument("--run", help="only what this run has copied")
    parser.add_argument("--sample", type=int, help="only one of so many segments of each partition")
    parser.add_argument("--seed", type=int, default=secrets.randbits(SEED_BITS), help="which ones")
    parser.add_argument("--show-values", action="store_true", help="show keys and values of records that differ")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    given = parse(sys.argv[1:])
    sys.exit(
        main(
            config=given.config,
            clients=given.clients,
            flow=given.flow,
            wanted=Wanted(
                topics=frozenset(given.topic) if given.topic else None,
                partition=given.partition,
                start=given.start,
                end=given.end,
                run=given.run,
                sample=given.sample,
                seed=given.seed,
            ),
            values=given.show_values,
            out=given.out,
        )
    )
