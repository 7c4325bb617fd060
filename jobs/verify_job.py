"""spark-submit jobs/verify_job.py --flow A->B: compares both clusters, as `ferry verify` does, in Spark's tasks."""

import argparse
import secrets
import sys
from pathlib import Path

from ferry.features.verify.acts.wanted import Wanted, bound
from ferry.features.verify.spark.job import main
from ferry.run.spark.job import job_parser

SEED_BITS = 32


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = job_parser("Compare the two clusters of a flow through its ledger.")
    parser.add_argument("--out", type=Path, help="file for the result as JSON")
    parser.add_argument("--topic", action="append", help="only this source topic; may be repeated")
    parser.add_argument("--partition", type=int, help="only this partition of the topic")
    parser.add_argument(
        "--from", dest="begin", help="begin at this source offset of the partition, or at this time for all partitions"
    )
    parser.add_argument("--to", dest="until", help="end before this source offset, or before this time")
    parser.add_argument("--run", help="only what this run copied")
    parser.add_argument(
        "--one-in", dest="sample", type=int, metavar="N", help="compare only one in N segments of each partition"
    )
    parser.add_argument("--sample", type=int, help=argparse.SUPPRESS)  # another spelling of --one-in
    parser.add_argument(
        "--seed",
        type=int,
        default=secrets.randbits(SEED_BITS),
        help="with --one-in: choose by this seed, as an earlier comparison printed it",
    )
    parser.add_argument("--compacted", action="store_true", help="compare all topics like compacted ones")
    parser.add_argument(
        "--without-ledger", action="store_true", help="compare by content, for topics that MirrorMaker 2 copied"
    )
    parser.add_argument("--keep", action="store_true", help="keep the outcome in the ledger, as that of --run")
    parser.add_argument("--end", type=Path, help="file to leave the job's error in")
    parser.add_argument("--show-values", action="store_true", help="show keys and values of records that differ")
    return parser.parse_args(arguments)


def wanted(given: argparse.Namespace) -> Wanted:
    """Return what the arguments ask for; raises BadInput."""
    (start, since_ms), (end, until_ms) = bound("--from", given.begin), bound("--to", given.until)
    return Wanted(
        topics=frozenset(given.topic) if given.topic else None,
        partition=given.partition,
        start=start,
        end=end,
        since_ms=since_ms,
        until_ms=until_ms,
        run=given.run,
        sample=given.sample,
        seed=given.seed,
        compacted=given.compacted,
        without_ledger=given.without_ledger,
    )


if __name__ == "__main__":
    given = parse(sys.argv[1:])
    sys.exit(
        main(
            config=given.config,
            clients=given.clients,
            end=given.end,
            flow=given.flow,
            wanted=lambda: wanted(given),
            values=given.show_values,
            keep=given.keep,
            out=given.out,
        )
    )
