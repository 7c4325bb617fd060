"""The sink in a process of its own: `python -m tests.spark.unit_program IN OUT` with a pickled plan, specs and SQL."""

from __future__ import annotations

import pickle
import sys
from functools import partial
from pathlib import Path

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import TransformSpec
from ferry.config.text.filters import PatternList
from ferry.decide.records.letters import PoisonRule
from ferry.model import Plan
from ferry.spark.records.sink import Stream, write_rows
from ferry.spark.records.transform import prepare, transformed
from ferry.spark.session import session


def main(given: Path, taken: Path) -> None:
    plan: Plan
    plan, specs, sql = pickle.loads(given.read_bytes())
    spark = session("units")
    prepare(spark)
    ((topic, target),) = {(unit.source_topic, unit.target.topic) for unit in plan.units}
    wish = TransformSpec(name="t", topics=PatternList(items=(topic,)), sql=sql)
    rule = PoisonRule(transform="t", poison=wish.poison, letters=DeadLetters(topic="dead"))
    change = partial(transformed, spec=wish, targets={topic: target})
    ends = write_rows(spark, plan, specs, [Stream(change=change, rule=rule, pieces=plan.units)])
    taken.write_bytes(pickle.dumps([(end.slot, len(end.units), str(end.failure)) for end in ends]))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
