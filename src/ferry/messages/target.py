"""Why something is not copied because of the target, of foreign writers there, or of the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.messages.phrases import ANEW, BROKERS, UNCLEAN
from ferry.model import RefusalKind

K = RefusalKind

_OR_ADOPT = (
    "when MirrorMaker copied them, take over from it (ferry adopt); when the ledger was lost, write it again from an "
    "export (ferry ledger rebuild), or delete the copy to have it copied anew; when somebody else writes there, "
    f"{ANEW}, or copy behind these records with ferry.guard.foreign.writer = skip"
)
_AGAIN_AT_TARGET = (
    f"find out who did it, then {ANEW}; or copy again what it lost with ferry.guard.target.changed = restart"
)
_FIND_OUT = f"find out who did it, then {ANEW}"
_OR_SKIP = "or copy behind it, whatever comes of it, with ferry.guard.foreign.writer = skip"
_OPEN = "somebody else has a transaction open on {where}, from offset {start} on{whose}"
_END_IT = (
    "let its producer end it, or abort it with kafka-transactions.sh abort --topic {target} --partition {number} "
    "--start-offset {start}, and take the writer's right to write"
)

TARGET: Mapping[str, Entry] = {
    "target.no-leader": Entry(K.NO_LEADER, "target {place} has no leader", BROKERS),
    "target.unserved": Entry(None, "target {place} is left out, {why}; the next run copies to it"),
    "target.too-few-replicas": Entry(
        K.TOO_FEW_REPLICAS,
        "target {place} has {in_sync} replicas in sync where min.insync.replicas asks for {needed}",
        "bring its brokers back or ask for fewer, the next run copies it",
    ),
    "target.no-space": Entry(
        K.NO_SPACE,
        "broker {broker} of cluster {cluster} has {usable:size} of {total:size} left, and this run would write "
        "{wanted:size} there, among it {place}; {percent} % must stay free",
        "make room, lower ferry.run.max.bytes, or lower ferry.target.free.percent",
    ),
    "target.partition-count": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, source topic {topic} has {here}, and partition n is copied to "
        "partition n",
        "give the source as many, or delete the target topic so that Ferry creates it",
    ),
    "target.partition-count.copied": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, source topic {topic} has {here}, and partition n is copied to "
        "partition n",
        f"give the source as many, or {ANEW}",
    ),
    "target.partition-count.dealt": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, transform {transform} wants {wanted}, and Kafka takes none away",
        f"write ferry.transform.{{transform}}.partitions = {{there}}, or {ANEW}",
    ),
    "target.partition-count.dealt.empty": Entry(
        K.PARTITION_COUNT,
        "target topic {target} has {there} partitions, transform {transform} wants {wanted}, and Kafka takes none away",
        "write ferry.transform.{transform}.partitions = {there}, or delete the target topic so that Ferry creates it",
    ),
    "target.cluster-changed": Entry(
        K.CLUSTER_CHANGED,
        "the target alias {alias} now leads to cluster {now}, whose ledger was written on cluster {then}",
        "correct the bootstrap servers; if the cluster is a copy of the other one, move the ledger topic away and use "
        "a new alias for the source",
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
        "target {place} was written up to {end} by the last receipt, but its log was cut to {cut} since (leader epoch "
        f"{{epoch}} ends there; {UNCLEAN}), and others have filled it up again",
        f"it lost records; {_AGAIN_AT_TARGET}",
    ),
    "target.gone.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} is gone although records were dealt to {partitions} partition(s) of it",
        _FIND_OUT,
    ),
    "target.recreated.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} was deleted and created again since the last receipt",
        _FIND_OUT,
    ),
    "target.fewer.dealt": Entry(
        K.TARGET_CHANGED,
        "target topic {target} has {partitions} partition(s), fewer than were written",
        _FIND_OUT,
    ),
    "target.lost.dealt": Entry(
        K.TARGET_CHANGED,
        "target {place} was written up to {end} by the last receipt and has that up to {cut}",
        f"it lost records; {_FIND_OUT}",
    ),
    "target.gone.since-plan": Entry(
        K.TARGET_CHANGED,
        "target topic {target} on cluster {cluster} is gone since the plan of run {run}",
        "find out who did it, then run again",
    ),
    "target.recreated.since-plan": Entry(
        K.TARGET_CHANGED,
        "target topic {target} on cluster {cluster} was deleted and created again since the plan of run {run}",
        "find out who did it, then run again",
    ),
    "target.cut.at-work": Entry(
        K.TARGET_CHANGED,
        "target {place} on cluster {cluster} was written up to {end}, but its log was cut to {cut} since (leader epoch "
        f"{{epoch}} ends there; {UNCLEAN})",
        "it lost records, which the next plan tells; run again",
    ),
    "target.silent": Entry(
        K.NO_LEADER,
        "whether {place} on cluster {cluster} still has what was written to it is not known, for its leader does not "
        "answer",
        "bring its brokers back",
    ),
    "target.unseen": Entry(None, "{place} on cluster {cluster} could not be looked into before it is written, {why}"),
    "target.not-complete": Entry(
        K.NO_LEADER,
        "topic {target} on cluster {cluster} was created, but not all of its partitions have a leader yet",
        "look at the brokers' health; the next run copies it",
    ),
    "target.leaderless": Entry(K.NO_LEADER, "{why}", "bring its brokers back"),
    "target.answers": Entry(None, "{place} on cluster {cluster} answers {answer}"),
    "target.not-authorized": Entry(
        K.NOT_AUTHORIZED, "not allowed to {act} {place} on cluster {cluster}", "grant {grant}"
    ),
    "foreign.record": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to target {place}, at offset {offset}",
        f"find the writer and take its right to write, then {ANEW}; or leave its records where they are with "
        "ferry.guard.foreign.writer = skip",
    ),
    "foreign.record.behind": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to target {place}, at offset {offset}, behind our last record at {ours}",
        f"find the writer and take its right to write, then {ANEW}; or leave its records where they are with "
        "ferry.guard.foreign.writer = skip",
    ),
    "foreign.occupied": Entry(
        K.FOREIGN_WRITER,
        "target {place} already holds records, from offset {offset} on, of which the ledger has no receipt",
        _OR_ADOPT,
    ),
    "foreign.open": Entry(K.FOREIGN_WRITER, _OPEN, f"{_END_IT}; {_OR_SKIP}"),
    "foreign.open.dealt": Entry(K.FOREIGN_WRITER, _OPEN, _END_IT),
    "foreign.open.at-work": Entry(K.FOREIGN_WRITER, _OPEN, f"{_END_IT}; then run again"),
    "foreign.record.dealt": Entry(
        K.FOREIGN_WRITER,
        "target {place} has a record of somebody else at offset {offset}, behind our last record at {ours}",
        f"find the writer and take its right to write, then {ANEW}",
    ),
    "foreign.occupied.dealt": Entry(
        K.FOREIGN_WRITER,
        "target {place} has a record of somebody else at offset {offset}, where the ledger has no receipt of any",
        f"find the writer and take its right to write, then {ANEW}",
    ),
    "foreign.since-plan": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to {place} on cluster {cluster}, at offset {at}, after run {run} was planned",
        "find the writer and take its right to write, then run again",
    ),
    "foreign.at-work": Entry(
        K.FOREIGN_WRITER,
        "somebody else wrote to {place} on cluster {cluster} while it was being copied (at offset {at})",
        "find the writer, then run again",
    ),
    "foreign.merged": Entry(
        K.FOREIGN_WRITER,
        "offset {offset} of merged {place} was written by somebody else",
        "none of the ledgers of the flows that share it names it; grant READ on topics ferry-ledger.* at the target if "
        "one of them is hidden from this login, else find the writer and copy under a new target name",
    ),
    "ledger.lost": Entry(
        K.LEDGER_BEHIND,
        "target {place} was copied up to source offset {end}, as the lane's own position says, but the ledger has no "
        "receipt of it",
        "it was lost, or rebuilt from an older export; delete it and write it again from the newest export (ferry "
        "ledger rebuild); or, to copy all of the topic anew, delete the target topic",
    ),
    "ledger.behind": Entry(
        K.LEDGER_BEHIND,
        "target {place} was copied up to source offset {end}, as the lane's own position says, but the ledger has it "
        "up to {known}",
        "it was lost, or rebuilt from an older export; delete it and write it again from the newest export (ferry "
        "ledger rebuild); or, to copy all of the topic anew, delete the target topic",
    ),
    "ledger.newer-rule": Entry(
        K.LEDGER_BEHIND,
        "run {run} wrote records of topic {topic} to {place} by the rule of ledger offset {newer}, and the ledger has "
        "an older one in force, of offset {known}",
        f"an earlier version of Ferry wrote to it after this run. Upgrade Ferry wherever this flow runs, then {ANEW}",
    ),
}
