"""Who approves in Airflow of what moves clients or touches production."""

from __future__ import annotations

from dataclasses import dataclass

APPROVERS = "ferry.approvers"
OWN = "ferry.approve.own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """`users` are names or ids of Airflow's users, empty: whoever may answer there; `own`: also who has asked."""

    users: tuple[str, ...] = ()
    own: bool = False
