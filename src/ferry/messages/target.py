"""Why something is not copied because of the target, of foreign writers there, or of the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.messages.phrases import ANEW, BROKERS, UNCLEAN
from ferry.model import RefusalKind

K = RefusalKind

_OR_ADOPT = (
    "if MirrorMaker copied them, take over from it (ferry migrate); if the ledger was lost, rebuild it from an export "
    f"(ferry ledger rebuild), or delete the copy so that it is copied again; if another client writes there, {ANEW}, "
    "or copy after these records with ferry.guard.foreign.writer = skip"
)
_AGAIN_AT_TARGET = (
    f"find out who did it, then {ANEW}; or copy again what it lost with ferry.guard.target.changed = restart"
)
_FIND_OUT = f"find out who did it, then {ANEW}"
_OR_SKIP = "or copy after it, however it ends, with ferry.guard.foreign.writer = skip"
_OPEN = "another client has a transaction open on {where}, from offset {start} on{whose}"
_END_IT = (
    "let its producer end it, or abort it with kafka-transactions.sh abort --topic {target} --partition {number} "
    "--start-offset {start}, and remove the writer's WRITE permission"
)

TARGET: Mapping[str, Entry] = {
    "target.no-leader": Entry(K.NO_LEADER, "target {place} has no leader", BROKERS),
    "target.unserved": Entry(None, "target {place} is not copied to, {why}; the next run copies to it"),
    "target.too-few-replicas": Entry(
        K.TOO_FEW_REPLICAS,
        "target {place} has {in_sync} in-sync replicas, min.insync.replicas requires {needed}",
        "bring its brokers back, or lower min.insync.replicas; the next run copies it",
    ),
    "target.no-space": Entry(
        K.NO_SPACE,
        "broker {broker} of cluster {cluster} has {usable:size} of {total:size} left, and this run would write "
        "{wanted:size} there, including {place}; {percent} % must stay free",
        "free disk space, lower ferry.run.max.bytes, or lower ferry.target.free.percent",
    ),
    "target.partition-count": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, source topic {topic} has {here}, and partition n is copied to "
        "partition n",
        "give the source topic as many partitions, or delete the target topic so that Ferry creates it",
    ),
    "target.partition-count.copied": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, source topic {topic} has {here}, and partition n is copied to "
        "partition n",
        f"give the source topic as many partitions, or {ANEW}",
    ),
    "target.partition-count.dealt": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, transform {transform} needs {wanted}, and Kafka cannot remove "
        "partitions",
        f"write ferry.transform.{{transform}}.partitions = {{there}}, or {ANEW}",
    ),
    "target.partition-count.dealt.empty": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, transform {transform} needs {wanted}, and Kafka cannot remove "
        "partitions",
        "write ferry.transform.{transform}.partitions = {there}, or delete the target topic so that Ferry creates it",
    ),
    "target.cluster-changed": Entry(
        K.CLUSTER_CHANGED,
        "the target alias {alias} now leads to cluster {now}, but its ledger was written on cluster {then}",
        "correct the bootstrap servers; if the cluster is a copy of the other one, remove the ledger topic and use a "
        "new alias for the source",
    ),
    "target.hidden": Entry(
        K.NOT_AUTHORIZED,
        "target topic {target} on cluster {cluster} is hidden from this login",
        "grant DESCRIBE on it",
    ),
    "target.gone": Entry(
        K.TARGET_CHANGED,
        "target topic {target} is gone although {end} source offsets were copied into it",
        _AGAIN_AT_TARGET,
    ),
    "target.recreated": Entry(
        K.TARGET_CHANGED,
        "target topic {target} was deleted and created again since the last receipt",
        _AGAIN_AT_TARGET,
    ),
    "target.shorter": Entry(
        K.TARGET_CHANGED,
        "target {place} ends at offset {log_end} but the last receipt wrote up to {end}",
        f"it lost records; {_AGAIN_AT_TARGET}",
    ),
    "target.cut": Entry(
        K.TARGET_CHANGED,
        f"target {{place}} was written up to {{end}} by the last receipt, but its log was since truncated to {{cut}} "
        f"(leader epoch {{epoch}} ends there; {UNCLEAN}), and other clients wrote to it since",
        f"it lost records; {_AGAIN_AT_TARGET}",
    ),
    "target.gone.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} is gone although records were repartitioned into {partitions:count partition} of it",
        _FIND_OUT,
    ),
    "target.recreated.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} was deleted and created again since the last receipt",
        _FIND_OUT,
    ),
    "target.fewer.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} has {partitions:count partition}, fewer than were written",
        _FIND_OUT,
    ),
    "target.lost.dealt": Entry(
        K.TARGET_CHANGED,
        "target {place} was written up to {end} by the last receipt, but its log has that only up to {cut}",
        f"it lost records; {_FIND_OUT}",
    ),
    "target.gone.since-plan": Entry(
        K.TARGET_CHANGED,
        "target topic {target} on cluster {cluster} was deleted after run {run} was planned",
        "find out who did it, then run again",
    ),
    "target.recreated.since-plan": Entry(
        K.TARGET_CHANGED,
        "target topic {target} on cluster {cluster} was deleted and created again after run {run} was planned",
        "find out who did it, then run again",
    ),
    "target.cut.at-work": Entry(
        K.TARGET_CHANGED,
        f"target {{place}} on cluster {{cluster}} was written up to {{end}}, but its log was since truncated to "
        f"{{cut}} (leader epoch {{epoch}} ends there; {UNCLEAN})",
        "it lost records; run again, and the next plan shows which",
    ),
    "target.silent": Entry(
        K.NO_LEADER,
        "it is not known whether {place} on cluster {cluster} still has the records written to it, because its leader "
        "does not answer",
        "bring its brokers back",
    ),
    "target.unseen": Entry(None, "{place} on cluster {cluster} could not be checked before writing, {why}"),
    "target.not-complete": Entry(
        K.NO_LEADER,
        "topic {target} on cluster {cluster} was created, but not all of its partitions have a leader yet",
        "check the brokers' health; the next run copies it",
    ),
    "target.leaderless": Entry(K.NO_LEADER, "{why}", "bring its brokers back"),
    "target.answers": Entry(None, "{place} on cluster {cluster} answers {answer}"),
    "target.fails": Entry(
        K.NO_LEADER, "{place} on cluster {cluster} answers {answer}", "look at the log of its leader"
    ),
    "target.not-authorized": Entry(
        K.NOT_AUTHORIZED, "not allowed to {act} {place} on cluster {cluster}", "grant {grant}"
    ),
    "foreign.record": Entry(
        K.FOREIGN_WRITER,
        "another client wrote to target {place} at offset {offset}",
        f"find the writer and remove its WRITE permission, then {ANEW}; or keep its records with "
        "ferry.guard.foreign.writer = skip",
    ),
    "foreign.record.behind": Entry(
        K.FOREIGN_WRITER,
        "another client wrote to target {place} at offset {offset}, after Ferry's last record at {ours}",
        f"find the writer and remove its WRITE permission, then {ANEW}; or keep its records with "
        "ferry.guard.foreign.writer = skip",
    ),
    "foreign.occupied": Entry(
        K.FOREIGN_WRITER,
        "target {place} already holds records, from offset {offset} on, that have no receipt in the ledger",
        _OR_ADOPT,
    ),
    "foreign.open": Entry(K.FOREIGN_WRITER, _OPEN, f"{_END_IT}; {_OR_SKIP}"),
    "foreign.open.dealt": Entry(K.FOREIGN_WRITER, _OPEN, _END_IT),
    "foreign.open.at-work": Entry(K.FOREIGN_WRITER, _OPEN, f"{_END_IT}; then run again"),
    "foreign.record.dealt": Entry(
        K.FOREIGN_WRITER,
        "target {place} has a record of another client at offset {offset}, after Ferry's last record at {ours}",
        f"find the writer and remove its WRITE permission, then {ANEW}",
    ),
    "foreign.occupied.dealt": Entry(
        K.FOREIGN_WRITER,
        "target {place} has a record of another client at offset {offset}, and the ledger has no receipt of any "
        "record there",
        f"find the writer and remove its WRITE permission, then {ANEW}",
    ),
    "foreign.since-plan": Entry(
        K.FOREIGN_WRITER,
        "another client wrote to {place} on cluster {cluster}, at offset {at}, after run {run} was planned",
        "find the writer and remove its WRITE permission, then run again",
    ),
    "foreign.at-work": Entry(
        K.FOREIGN_WRITER,
        "another client wrote to {place} on cluster {cluster} while it was being copied (at offset {at})",
        "find the writer, then run again",
    ),
    "foreign.merged": Entry(
        K.FOREIGN_WRITER,
        "offset {offset} of merged {place} was written by another client",
        "no ledger of the flows that share it has a receipt of it; if one of them is hidden from this login, grant "
        "READ on topics ferry-ledger.* at the target; else find the writer and copy under a new target name",
    ),
    "ledger.lost": Entry(
        K.LEDGER_BEHIND,
        "target {place} was copied up to source offset {end}, according to the lane's own position, but the ledger "
        "has no receipt of it",
        "the ledger was lost, or rebuilt from an older export; delete it and rebuild it from the newest export (ferry "
        "ledger rebuild); or, to copy the whole topic again, delete the target topic",
    ),
    "ledger.behind": Entry(
        K.LEDGER_BEHIND,
        "target {place} was copied up to source offset {end}, according to the lane's own position, but the ledger "
        "has it only up to {known}",
        "the ledger was lost, or rebuilt from an older export; delete it and rebuild it from the newest export (ferry "
        "ledger rebuild); or, to copy the whole topic again, delete the target topic",
    ),
    "ledger.newer-rule": Entry(
        K.LEDGER_BEHIND,
        "run {run} wrote records of topic {topic} to {place} by the transform rule at ledger offset {newer}; the "
        "ledger's current rule is older, at offset {known}",
        "an earlier version of Ferry wrote to the ledger after this run. Upgrade Ferry wherever this flow runs, then "
        f"{ANEW}",
    ),
}
