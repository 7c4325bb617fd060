"""Why no run is opened, or a run ended or must not continue: its ledger, its clusters, its tasks, a newer run."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.messages.phrases import WORTH

RUNS: Mapping[str, Entry] = {
    # A ledger whose topic would not keep receipts.
    "ledger.partitions": Entry(
        None,
        "ledger {ledger} on cluster {cluster} has {partitions} partitions where one is needed",
        "move it away and let Ferry create it",
    ),
    "ledger.replicas": Entry(
        None,
        "ledger {ledger} on cluster {cluster} has replication factor {replicas} where {wanted} is needed",
        "add replicas with kafka-reassign-partitions.sh, or set ferry.ledger.replication.factor to {replicas} to do "
        "with less",
    ),
    "ledger.may-lose": Entry(
        None,
        "ledger {ledger} on cluster {cluster} has {setting}={found}, which can lose receipts",
        "set it to {needed}",
    ),
    # The writers of a ledger.
    "ledger.writers": Entry(
        None, "{who} may write to {topic}, " + WORTH, "take it from others (kafka-acls.sh --remove){whose}"
    ),
    "ledger.writers.all": Entry(None, "any client of the cluster may write to {topic}, " + WORTH, "{why}"),
    "ledger.writers.not-known": Entry(None, "who else may write to {topic} is not known", "{why}"),
    # Clusters that are not the two of the flow.
    "clusters.same": Entry(
        None,
        "source {source} and target {target} are the same cluster ({cluster})",
        "correct one of the bootstrap servers ({source_line}, {target_line})",
    ),
    "clusters.swapped": Entry(
        None,
        "aliases {source} and {target} are swapped: the cluster that {source} leads to has this flow's ledger "
        "{ledger}, written from the one that {target} leads to now",
        "correct the bootstrap servers ({source_line}, {target_line}), or use other aliases",
    ),
    "pause.of-switch": Entry(
        None,
        "{flow} is paused by {verb} {switch} already, without an end",
        "keep that pause, because a switch starts the flow again",
    ),
    "resume.of-switch": Entry(
        None,
        "{verb} {switch} had paused {flow}, because it moves clients away from {old}",
        "pause the flow again, unless it is to copy what is still written to {old}",
    ),
    "run.at-work": Entry(None, "run {run} is active on lane {lane}, or was killed", "{remedy}"),
    # What ended a task, a driver, or the attempt at a run.
    "slot.fenced": Entry(None, "slot {slot} of run {run} was fenced", "{why}"),
    "slot.stopped": Entry(None, "slot {slot} of run {run} stopped, failure {failures}", "{why}"),
    "driver.stopped": Entry(None, "run {run} of {flow} (lane {lane}) stopped, failure {failures}", "{why}"),
    "driver.fenced": Entry(
        None,
        "the driver of run {run} of {flow} (lane {lane}) was fenced {times} times, and the ledger has no newer run "
        "({why})",
        "end the other drivers of the flow, then run again",
    ),
    "run.tasks-failed": Entry(None, "run {run} of {flow}: {failed} of {tasks} tasks failed", "{why}"),
    # A newer run of the lane, a newer attempt, or a switch has taken over.
    "superseded.driver": Entry(
        None,
        "run {run} of {flow} (lane {lane}) is superseded by {newer}, which has opened the lane since",
        "let it finish; it, or the next run, copies the rest",
    ),
    "superseded.slot": Entry(
        None,
        "run {run} of {flow} (lane {lane}) is superseded by {newer}",
        "what {run} committed stays, and {newer}, or the next run, copies the rest",
    ),
    "superseded.unplanned": Entry(
        None,
        "run {run} of {flow} (lane {lane}) was never planned and is superseded by {newer}",
        "nothing of it can be copied, so start a new run",
    ),
    "superseded.unfinished": Entry(
        None,
        "run {run} of {flow} is superseded by {newer}, and did not finish {slices:count slice}",
        "resume {newer}, or start a new run, which copies the rest",
    ),
    "superseded.attempt": Entry(
        None,
        "attempt {attempt} at run {run} of {flow} (lane {lane}) is superseded by attempt {newer} from {host}",
    ),
    "superseded.ended": Entry(None, "attempt {attempt} at run {run} of {flow} (lane {lane}) was ended from {host}"),
    "superseded.draining": Entry(
        None,
        "run {run} does not copy: {verb} {switch} copies the rest of {flow} itself, until {until_ms:time} at most; let "
        "it end, or abandon it with ferry switches abandon '{named}' {switch}",
    ),
    "superseded.drill": Entry(
        None, "the drill in lane {lane} writes no groups, because {what} meanwhile", "start it again"
    ),
    "superseded.delivery": Entry(
        None,
        "{delivery} is superseded by a newer attempt of the application",
        "let that finish",
    ),
}
