"""The settings of switches: the hooks that move clients, and who approves in Airflow."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey

APPROVERS = FerryKey(
    name="ferry.approvers",
    default="",
    values="ids of Airflow's users (SimpleAuthManager: their names); empty: all users who may answer there",
    meaning="who may approve switches, and drills that touch production, in Airflow",
)
APPROVE_OWN = FerryKey(
    name="ferry.approve.own",
    default="false",
    values="`true` or `false`",
    meaning="whether the user who triggered a switch or a drill in Airflow may also [approve it](airflow.md#approvals)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchHook:
    """How a switch stops clients, or sends them to the new cluster: a command, an HTTP call, both, or neither."""

    command: str | None
    url: str | None = field(repr=False)
    timeout_seconds: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """Who approves in Airflow what moves clients or changes production.

    `users` are names or ids of Airflow's users; empty: all that may answer there. `own`: also the user who asked.
    """

    users: tuple[str, ...] = ()
    own: bool = False


def _command(which: str, meaning: str) -> FerryKey:
    text = "a command with its arguments, as a shell splits them; empty: none"
    return FerryKey(name=f"ferry.switch.{which}.command", default="", values=text, meaning=meaning)


def _url(which: str) -> FerryKey:
    meaning = f"the {which} hook as an HTTP call: POST, with the switch as JSON"
    text = "an `http` or `https` address; empty: none"
    return FerryKey(name=f"ferry.switch.{which}.url", default="", values=text, meaning=meaning)


def _timeout(which: str) -> FerryKey:
    text = "seconds, or a duration such as `15m`, at least 1"
    name = f"ferry.switch.{which}.timeout.seconds"
    return FerryKey(name=name, default="60", values=text, meaning=f"how long the {which} hook may take")


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSettings(FeatureSettings):
    """What the file says of a flow's switches."""

    stop_command: str | None = setting(
        _command(
            "stop",
            "the hook by which [a planned switch](failover.md#the-hooks) stops clients, before it waits for them",
        ),
        values.optional_text,
    )
    stop_url: str | None = setting(_url("stop"), values.optional_url, shown=False)
    stop_timeout_seconds: int = setting(_timeout("stop"), values.seconds(1))
    redirect_command: str | None = setting(
        _command("redirect", "the hook by which [a switch](failover.md#the-hooks) sends clients to the new cluster"),
        values.optional_text,
    )
    redirect_url: str | None = setting(_url("redirect"), values.optional_url, shown=False)
    redirect_timeout_seconds: int = setting(_timeout("redirect"), values.seconds(1))
    approver_users: tuple[str, ...] = setting(APPROVERS, values.items)
    approve_own: bool = setting(APPROVE_OWN, values.boolean)

    @property
    def stop(self) -> SwitchHook:
        """The hook that stops clients."""
        return SwitchHook(command=self.stop_command, url=self.stop_url, timeout_seconds=self.stop_timeout_seconds)

    @property
    def redirect(self) -> SwitchHook:
        """The hook that sends clients to the new cluster."""
        return SwitchHook(
            command=self.redirect_command, url=self.redirect_url, timeout_seconds=self.redirect_timeout_seconds
        )

    @property
    def approvers(self) -> Approvers:
        """The users who may approve switches and drills."""
        return Approvers(users=self.approver_users, own=self.approve_own)
