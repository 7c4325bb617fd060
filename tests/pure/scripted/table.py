"""A table of requests that meet error codes, lost and late answers. In part in `make quick` and `make test`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.pure.scripted.test_every_answer import Request, cases
from tests.tiers import share

Case = tuple[str, int, bool]
"""A request's name, the version of transactions, and whether the request is carried out."""


@dataclass(frozen=True, slots=True)
class Table:
    """Requests by name. Each of them is judged by its own function."""

    requests: Mapping[str, Request]

    @property
    def cases(self) -> list[Case]:
        """Each request in each version, carried out or not."""
        return [(name, *case) for name, one in self.requests.items() for case in cases(one)]

    @property
    def versions(self) -> list[tuple[str, int]]:
        """Each request in each version."""
        return [(name, version) for name, version, applied in self.cases if not applied]

    def meet_codes(self, case: Case) -> None:
        """The request is answered with error codes."""
        one, turn = self._of(case)
        for code in share(sorted(one.codes), turn, len(one.codes)):
            one.judge(case[1], one.side, replace(one.fault, code=code, applied=case[2]))

    def lose_answers(self, case: Case) -> None:
        """The request has no answer, once or several times."""
        one, turn = self._of(case)
        for times in share((1, 3), turn, 2):
            one.judge(case[1], one.side, replace(one.fault, lost=True, applied=case[2], times=times))

    def delay_answers(self, name: str, version: int) -> None:
        """The request is answered late: before its client gives up, or after that."""
        one, turn = self._of((name, version, False))
        for late_s in share((0.2, 45.0), turn, 4):
            one.judge(version, one.side, replace(one.fault, late_s=late_s))

    def _of(self, case: Case) -> tuple[Request, int]:
        return self.requests[case[0]], self.cases.index(case)
