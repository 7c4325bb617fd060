"""Who approves in Airflow what moves clients or changes production."""

from __future__ import annotations

from dataclasses import dataclass

APPROVERS = "ferry.approvers"
OWN = "ferry.approve.own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """`users` are names or ids of Airflow's users; empty: all that may answer there. `own`: also the user who asked."""

    users: tuple[str, ...] = ()
    own: bool = False
