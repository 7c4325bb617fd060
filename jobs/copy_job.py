"""spark-submit jobs/copy_job.py --flow A->B --run RUN: copies by the run's plan in the ledger."""

import argparse
import sys
from pathlib import Path

from ferry.features.records.spark.copy_job import main
from ferry.model import Origin
from ferry.run.spark.job import job_parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = job_parser("Copy what a run's plan in the ledger says.")
    parser.add_argument("--end", type=Path, help="file to leave the job's error in")
    parser.add_argument("--run", required=True, help="run id whose plan is in the ledger")
    parser.add_argument("--lane", help="lane of the run; else the flow's own")
    parser.add_argument("--dag-id", default="", help="goes into the receipts")
    parser.add_argument("--dag-run-id", default="", help="goes into the receipts")
    parser.add_argument("--try-number", type=int, default=0, help="goes into the receipts")
    parser.add_argument("--host", default="", help="goes into the receipts")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    given = parse(sys.argv[1:])
    sys.exit(
        main(
            config=given.config,
            clients=given.clients,
            end=given.end,
            flow=given.flow,
            run=given.run,
            lane=given.lane,
            origin=Origin(
                host=given.host, dag_id=given.dag_id, dag_run_id=given.dag_run_id, try_number=given.try_number
            ),
        )
    )
