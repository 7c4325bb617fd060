"""A table of requests that meet error codes, lost and late answers.

`make test-all` runs each case: a request in each version of transactions, carried out or not, with all codes. In `make
test`, each kind of request meets one code before and one after it was carried out, one lost answer and one late answer.
Versions, codes and delays take turns. `make quick` has half of that: a code before or after, an answer that is lost or
late. Of the tables of administration, commands and identical offsets it has nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice, product

import pytest

from ferry.kafka.connect import codes
from tests.pure.scripted.faults import Fault
from tests.tiers import IN_PART

Judge = Callable[[int, str, Fault], None]
"""What tests a fault: given the version of transactions, the cluster, and the fault."""

UNNAMED = {-1, 13, 46, 52, 59, 105, 120, 999}
"""Codes that Ferry has no name for, as UNKNOWN_SERVER_ERROR, and one that no broker has yet (Kafka's `Errors`)."""
CODES = frozenset(
    {value for name, value in vars(codes).items() if name.isupper() and isinstance(value, int)} - {codes.NONE} | UNNAMED
)
FEW = {
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.NOT_LEADER_OR_FOLLOWER,
    codes.REQUEST_TIMED_OUT,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
    codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    codes.TOPIC_AUTHORIZATION_FAILED,
    codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
    codes.INVALID_PRODUCER_EPOCH,
    codes.INVALID_TXN_STATE,
    codes.CONCURRENT_TRANSACTIONS,
    codes.KAFKA_STORAGE_ERROR,
}
"""Of each group in `ferry.kafka.connect.codes` one or two."""
LATE_S = 0.2, 45.0
"""Seconds until a late answer comes; the second is after its client has given up."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A kind of request, and what tests a fault of it.

    `writes`: it changes something, so it matters whether it was carried out. `most`: how many codes it meets, carried
    out or not, where tables run in part. `versions`: of transactions. `lost`: how often in a row it has no answer.
    """

    judge: Judge
    fault: Fault
    side: str = "target"
    writes: bool = False
    codes: frozenset[int] = CODES
    most: int = 1
    versions: tuple[int, ...] = (1, 2)
    lost: tuple[int, ...] = (1, 3)
    quick: bool = True

    @property
    def applied(self) -> tuple[bool, ...]:
        """Whether the request is carried out: both, where that matters."""
        return (False, True) if self.writes else (False,)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request in a version of transactions, carried out or not, and the faults that it meets.

    `quick`: `make quick` has it, too.
    """

    name: str
    version: int
    applied: bool
    faults: tuple[Fault, ...]
    quick: bool = True

    def __str__(self) -> str:
        return f"{self.name}-{self.version}-{self.applied}"


@dataclass(frozen=True, slots=True)
class Table:
    """Requests by name."""

    requests: Mapping[str, Request]

    def judge(self, case: Case) -> None:
        """Test the faults of a case, one after the other."""
        one = self.requests[case.name]
        for fault in case.faults:
            one.judge(case.version, one.side, replace(fault))

    @property
    def coded(self) -> list[Case]:
        """The requests that are answered error codes."""
        if not IN_PART:
            return [self._coded(*case, sorted(self.requests[case[0]].codes)) for case in self._cases()]
        turns: dict[frozenset[int], Iterator[int]] = {}
        found = []
        for number, (name, one) in enumerate(self.requests.items()):
            turn = turns.setdefault(one.codes, cycle(in_turn(one.codes)))
            for applied in one.applied:
                version = one.versions[(number + applied) % len(one.versions)]
                case = self._coded(name, version, applied, [*islice(turn, one.most)])
                quick = one.quick and (applied == number % 2 if one.writes else number % 2 == 0)
                found.append(replace(case, quick=quick))
        return found

    @property
    def lost(self) -> list[Case]:
        """The requests that have no answer, once or several times."""
        if not IN_PART:
            return [self._lost(*case, self.requests[case[0]].lost) for case in self._cases()]
        found = []
        for number, (name, one) in enumerate(self.requests.items()):
            applied = one.applied[number % len(one.applied)]
            version = one.versions[number // 2 % len(one.versions)]
            case = self._lost(name, version, applied, (one.lost[number // 3 % len(one.lost)],))
            found.append(replace(case, quick=one.quick and number % 4 == 0))
        return found

    @property
    def late(self) -> list[Case]:
        """The requests whose answers come late: before their clients give up, or after that."""
        found = []
        for number, (name, one) in enumerate(self.requests.items()):
            versions = (one.versions[number % len(one.versions)],) if IN_PART else one.versions
            delays = (LATE_S[number // 2 % len(LATE_S)],) if IN_PART else LATE_S
            for version in versions:
                faults = tuple(replace(one.fault, late_s=late_s) for late_s in delays)
                quick = one.quick and number % 4 == 1
                found.append(Case(name=name, version=version, applied=False, faults=faults, quick=quick))
        return found

    def _cases(self) -> Iterator[tuple[str, int, bool]]:
        for name, one in self.requests.items():
            for version, applied in product(one.versions, one.applied):
                yield name, version, applied

    def _coded(self, name: str, version: int, applied: bool, numbers: list[int]) -> Case:
        fault = self.requests[name].fault
        faults = tuple(replace(fault, code=code, applied=applied) for code in numbers)
        return Case(name=name, version=version, applied=applied, faults=faults)

    def _lost(self, name: str, version: int, applied: bool, often: tuple[int, ...]) -> Case:
        fault = self.requests[name].fault
        faults = tuple(replace(fault, lost=True, applied=applied, times=times) for times in often)
        return Case(name=name, version=version, applied=applied, faults=faults)


def each(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Run a test with each case; `make quick` leaves some out."""
    marked = [pytest.param(one, marks=() if one.quick else pytest.mark.slow) for one in cases]
    return pytest.mark.parametrize("case", marked, ids=str)


def in_turn(numbers: frozenset[int]) -> list[int]:
    """All of these codes; each second one is of `FEW`, and these are met several times."""
    few, others = sorted(numbers & FEW), sorted(numbers - FEW)
    if not few or not others:
        return few or others
    pairs = [(few[number % len(few)], other) for number, other in enumerate(others)]
    # A request takes two in a row: what it meets before it is carried out comes first in one pair, last in the next.
    return [code for number, pair in enumerate(pairs) for code in (pair[::-1] if number % 2 else pair)]
