"""Why a switch is refused, or one of its steps: who is still active, what has moved, and who does it instead."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

_BEGIN_AGAIN = "ferry switches abandon '{named}' {switch}, and begin again"
_NOTHING_DONE = "nothing was done: trigger the DAG again, or clear its task approve with those after it"

SWITCH: Mapping[str, Entry] = {
    # Clients that are still active, or active again. `partitions` and `groups` of the first have their names.
    "switch.not-quiet": Entry(None, "after {seconds} s cluster {cluster} is not quiet", "{why}"),
    "switch.grew.after-quiet": Entry(
        None,
        "{partitions:count partition} of {cluster} grew after they were quiet ({names})",
        f"stop the clients that write there, then {_BEGIN_AGAIN}",
    ),
    "switch.grew.after-drain": Entry(
        None,
        "{partitions:count partition} of {cluster} grew after the drain ({names}), so a producer still writes there",
        f"stop it, then {_BEGIN_AGAIN}",
    ),
    "switch.members": Entry(
        None,
        "{groups:agree group has/groups have} members on {cluster} again ({names})",
        "stop them, or abandon this switch and begin one with --leave-group",
    ),
    "switch.members.twice": Entry(
        None,
        "{groups:agree group has/groups have} members on {cluster} again ({names}), and would read twice what they "
        "read there now",
        f"stop them, then {_BEGIN_AGAIN}",
    ),
    "switch.group-open": Entry(
        None,
        "group {group} has an offset of {place} on {cluster} in a transaction that is still open",
        "end it, or wait for it to end, then continue",
    ),
    "switch.groups-stay": Entry(None, "{groups:count group} cannot be moved ({names}), so none is", "{why}"),
    # Whether the other cluster can take over.
    "switch.not-ready": Entry(None, "{cluster} cannot take over: {check}", "{why}{more}"),
    "switch.no-reverse": Entry(
        None,
        "the file has no flow back {back}",
        "add {back}.enabled = true and its topics, or omit it with --no-reverse",
    ),
    "switch.nothing-to-return": Entry(
        None,
        "clients were not switched along {flow}, or are back already",
        "there is nothing to fail back from; ferry switchover '{other}' moves them in any case",
    ),
    # Other switches, and other processes.
    "switch.unfinished": Entry(
        None,
        "{verb} {switch} of {named} is not finished, {left}",
        "continue it (ferry {verb} '{named}' --id {switch}), or abandon it with ferry switches abandon",
    ),
    "switch.unfinished.before": Entry(
        None,
        "{verb} {switch} of {named} is not finished, {left}",
        "finish it first with ferry {verb} '{named}' --id {switch}",
    ),
    "switch.ended": Entry(
        None,
        "{verb} {switch} is {outcome} already, by {who}",
        "give a new one another ID, or see ferry switches show '{named}' {switch}",
    ),
    "switch.snapshot-named": Entry(
        None,
        "{name}, the switch's id, is the name of a snapshot of {flow} that the switch did not take",
        "drop it with ferry groups snapshots drop '{flow}' {name} --yes, or begin a switch with another --id",
    ),
    "switch.opposite": Entry(
        None, "{verb} {switch} of {named} goes the other way and is not finished, {left}", "{remedy}"
    ),
    "switch.opposite.moved": Entry(
        None,
        "{verb} {switch} of {named} has moved clients to {cluster} since this one began",
        "give this one up with {remedy}",
    ),
    "switch.opposite.same-time": Entry(
        None,
        "{verb} {switch} of {named} was opened at the same time, the other way, by {who}",
        "check with ferry switches list which one continues, because both may have stopped; then begin the intended "
        "one",
    ),
    "switch.lost.ended": Entry(None, "switch {switch} was {outcome} by {who} meanwhile", "stop here"),
    "switch.lost.step": Entry(
        None,
        "step {step} of switch {switch} was begun again by {who}",
        "check ferry switches show, and let one of the two continue",
    ),
    # What the command line, or the approval, lacks.
    "switch.needs-approval": Entry(None, "a switch needs an approval", "name the person with --approve-by NAME"),
    "switch.needs-hook": Entry(
        None,
        "{verb} {switch} was begun with {options}, which the ledger does not keep",
        "give the same again, on the command line: {command}",
    ),
    "switch.other-verb": Entry(None, "{switch} is a {verb} of {named} already", "give this one another id"),
    # An approval that was given in Airflow.
    "approval.none": Entry(None, "there was no approval", _NOTHING_DONE),
    "approval.other": Entry(None, "{who} approved of other parameters than the run has now", _NOTHING_DONE),
    "approval.used": Entry(None, "the approval of {who} was used already, by {by}", _NOTHING_DONE),
    "approval.expired": Entry(
        None, "{who} approved {age_s} s ago, and an approval holds for {holds_s} s", _NOTHING_DONE
    ),
}
