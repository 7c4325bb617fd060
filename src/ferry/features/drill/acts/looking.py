"""The checks that drills share: where groups continue after the copying, and whether the content is equal."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.drill.acts.report import Found
from ferry.features.drill.acts.scratch_groups import Rehearsed, ScratchGroups
from ferry.features.drill.acts.timeline import Entry, Timeline
from ferry.features.evidence.rules.figures import compared_of
from ferry.features.identical.rules.evidence import offsets_checks
from ferry.features.switch.acts.application import first_record_of
from ferry.features.switch.rules.report import FIRST_RECORD_MEANS
from ferry.features.verify.acts.survey import Survey
from ferry.features.verify.acts.verifier import Verifier
from ferry.features.verify.acts.wanted import Wanted
from ferry.model import NotComparedKind, RecordContent, TopicPartition
from ferry.model.evidence import GroupMoved
from ferry.model.verified import Verified
from ferry.words import count_of


def compare_content(flow: FlowConfig, wanted: Wanted, entry: Entry, found: Found, *, patience_s: float) -> None:
    """Compare both clusters in this process, and note the result. The errors of a `Verifier` are raised.

    Copies that a transform made are not compared; a note says so. Whether identical offsets are equal is a check.
    """
    with Verifier(flow, wanted, patience_s=patience_s) as verifier:
        survey = verifier.survey()
        found.notes += left_to_spark(survey)
        verified = verifier.sum_up(survey, verifier.compare(survey))
    found.verification = one = compared_of(verified)
    found.checks += offsets_checks(kept_of(survey, verified))
    same = "equal" if one.records else "nothing to compare"
    word = same if one.equal else f"{one.differences} differences"
    entry.detail = f"{one.records} records: {word}"


def kept_of(survey: Survey, verified: Verified) -> list[tuple[int, bool]]:
    """Return how many records with identical offsets were compared, and whether they are equal; empty: none has them.

    They are equal if nothing of their partitions differs, and all of it was compared.
    """
    if verified.identical is None:
        return []
    kept = {span.source for span in survey.spans if span.identical}
    wrong = {one.source for one in verified.differences}
    wrong |= {one.source for one in verified.not_compared if one.asked}
    return [(verified.identical, verified.is_equal or not (verified.more or kept & wrong))]


def split_transformed(flow: FlowConfig, topics: Collection[str], *, named: bool) -> tuple[frozenset[str], list[str]]:
    """Return the topics that a drill can rehearse in its own process, and a sentence for each other one.

    Raises Refused if the operator named such a topic (`named`).
    """
    transformed = sorted(name for name in topics if flow.transform_of(name) is not None)
    why = "a transform makes its copy, which Spark alone can carry out, and this drill copies and compares without it"
    if named and transformed:
        raise Refused(
            f"topic {transformed[0]} cannot be rehearsed this way: {why}; exclude it, or use ferry drills full"
        )
    notes = [f"topic {name} was not rehearsed: {why}" for name in transformed]
    return frozenset(topics) - frozenset(transformed), notes


def left_to_spark(survey: Survey) -> list[str]:
    """Remove from a survey what only Spark can compare, and what cannot be compared.

    Return a sentence for each topic.
    """
    topics = sorted({one.source.topic for one in survey.transformed})
    survey.transformed.clear()
    repartitioned = [one for one in survey.not_compared if one.why is NotComparedKind.DEALT]
    survey.not_compared[:] = [one for one in survey.not_compared if one not in repartitioned]
    return [
        *(
            f"what a transform made of {topic} was not compared: ferry verify --spark --topic {topic} does"
            for topic in topics
        ),
        *(one.message for one in repartitioned),
    ]


def read_groups(
    diary: Timeline,
    found: Found,
    groups: ScratchGroups,
    done: Rehearsed,
    drill: str,
    *,
    began_ms: int,
    patience_s: float,
) -> None:
    """Read where the groups continue on the target: a step of its own. The times count from `began_ms`."""
    connections = groups.connections
    with diary.step("read", "Read where they continue") as entry:
        there = connections.run(lambda: groups.read(done))
        found.rto_s = (wall_ms() - began_ms) / 1000 if done.committed else None
        _measure_first_record(found, groups, drill, there, began_ms=began_ms, patience_s=patience_s)
        found.groups = connections.run(lambda: groups.compared(done, there))
        _note_next_records(found.groups, entry)


def _note_next_records(groups: Iterable[GroupMoved], entry: Entry) -> None:
    """Record in how many of the groups' partitions that were compared the next record is the source's."""
    exact = committed = 0
    for group in groups:
        if group.exact is not None:
            exact += group.exact
            committed += group.committed
    entry.detail = f"in {exact} of {count_of(committed, 'partition')} the next record is the source's"


def _measure_first_record(
    found: Found,
    groups: ScratchGroups,
    drill: str,
    there: Mapping[TopicPartition, Mapping[int, RecordContent | None]],
    *,
    began_ms: int,
    patience_s: float,
) -> None:
    """Measure when a consumer of the target has its first record, from where the groups continue there.

    `there` has the groups' next records by partition and offset. The consumer is in a group of its own.
    """
    starts = {
        place: min(at for at, record in rows.items() if record is not None)
        for place, rows in there.items()
        if any(record is not None for record in rows.values())
    }
    if not starts:
        found.first_record_means = "not known: no group has a record to read at the target"
        return
    first = first_record_of(groups.flow, groups.connections, drill, starts, patience_s=patience_s)
    if first.at_ms is None:
        found.first_record_means = f"not known: {first.why}"
        return
    found.first_record_s = (first.at_ms - began_ms) / 1000
    found.first_record_means = FIRST_RECORD_MEANS
