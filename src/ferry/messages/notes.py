"""What else an operator should know of a run: the notes of plans and reports."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

_END_IT = (
    "end it with its producer, or kafka-transactions.sh abort --topic {topic} --partition {partition} "
    "--start-offset {start}"
)

NOTES: Mapping[str, Entry] = {
    # A guard lets a run continue. `what` is what the refusal would have reported, `of` its code.
    "passed.over": Entry(None, "{what}", "passed over, as {key} says"),
    "passed.left-out": Entry(None, "{what}", "left out, as {key} says"),
    "passed.copied-behind": Entry(None, "{what}", "copied behind it, as {key} says"),
    "passed.skipped": Entry(None, "{what}", "skipped, as {key} says"),
    "passed.restarted": Entry(
        None, "{what}", "goes on at source offset {start}, behind what the target holds, as {key} says"
    ),
    "clock.skew": Entry(
        None,
        "the clock of this machine is {seconds} s {way} that of the broker that leads the ledger on cluster {cluster}, "
        "by which pauses, start times and deleted keys would be judged wrongly",
        "set both clocks by NTP; or go on with ferry.guard.clock.skew = skip",
    ),
    "passed.clock": Entry(None, "{what}", "ferry.guard.clock.skew says to go on"),
    "passed.by-hand": Entry(None, "{source} goes on at offset {end}: [{start}, {end}) is skipped by {who}: {reason}"),
    # How a run was opened, and runs that do something other than copying.
    "run.would-be-refused": Entry(None, "a run would be refused: {why}"),
    "run.took-over": Entry(None, "lane {lane} was taken over from deployment {deployment}"),
    "run.ledger-rebuilt": Entry(
        None,
        "the ledger was rebuilt by {who} at {at_ms:time} from {file}, an export of {exported_at_ms:time}, and does not "
        "have what was copied or written of groups between",
    ),
    "run.of-switch": Entry(None, "opened by step {step} of {verb} {switch}"),
    "run.adopted": Entry(None, "{partitions:count partition} adopted from {predecessor} by {where}"),
    "run.handed-back": Entry(None, "{positions} position(s) handed back to MirrorMaker 2: {topic} ({connector})"),
    "run.lane-dropped": Entry(None, "the lane is dropped"),
    "run.superseded": Entry(
        None,
        "run {run} is superseded by run {newer} of lane {lane}, which began before it was finished: that run, or the "
        "next one, copies the rest and moves the groups",
    ),
    # Positions, and records that the source holds back.
    "position.missing": Entry(
        None, "position of {place} was missing (deleted or expired); the ledger's receipt up to {end} decides"
    ),
    "position.moved": Entry(
        None,
        "position of {place} was {found} where the ledger says {known} (somebody moved it); the ledger's receipt up to "
        "{end} decides",
    ),
    "held.by-transaction": Entry(
        None,
        "records of {topic}-{partition} from offset {start} on wait for a transaction of producer id {producer} that "
        "is still open, and whose last record is of {last}; what lies before is copied",
        _END_IT,
    ),
    "held.ledger": Entry(
        None,
        "ledger {topic} has an open transaction from offset {start} on, of producer id {producer} ({writer}), whose "
        "last record is of {last}: each look at the ledger reads from there again, each report waits for it in vain, "
        f"and compaction stops there; {_END_IT}",
    ),
    "held.first-copy": Entry(
        None,
        "the first copy of compacted topics ({topics}) may not end in this run",
        "a partition whose end is not reached within delete.retention.ms ({shortest_ms} ms of {shortest}) is refused "
        "then, for keys that were deleted meanwhile may live on; raise that setting at the source first, or the budget "
        "of a run",
    ),
    "topics.idle": Entry(None, "flow {flow} finds no topic to copy, which may be right", "{why}"),
    # Topics of the target.
    "topic.fewer-replicas": Entry(
        None,
        "{topics}: {replicas} replica(s) instead of {wanted}, for cluster {cluster} has no more brokers",
        "add some, or lower replication.factor",
    ),
    "topic.settings-of-target": Entry(
        None,
        "{topics}: settings of the target, for cluster {cluster} does not show its own",
        "grant DESCRIBE_CONFIGS on the source topics",
    ),
    "topic.settings-not-compared": Entry(
        None,
        "the settings of {topics} are not compared with the source's",
        "grant DESCRIBE_CONFIGS on the topics at {source} and at {target}, or set sync.topic.configs.enabled = false",
    ),
    "topic.settings-refused": Entry(None, "{why}, or set sync.topic.configs.enabled = false"),
    "topic.narrower": Entry(None, "{setting} is {here} on {topics} and {there} at the source, so {cost}", "{remedy}"),
    "topic.deleted": Entry(
        None,
        "source topic {topic} was deleted: so was its copy {copy}, as ferry.sync.topic.deletes.enabled says",
    ),
    "topic.forgotten": Entry(
        None,
        "topic {topic} was deleted after its source by run {run} at {at_ms:time}, and the ledger has forgotten its "
        "receipts: what this run copied of it is not counted",
    ),
    "space.not-known": Entry(
        None,
        "{silent} of {brokers} broker(s) of cluster {cluster} do not say what their disks hold, so nobody looks "
        "whether the copies fit",
        "it takes Kafka 3.3 and DESCRIBE on the cluster",
    ),
    "space.short": Entry(
        None,
        "broker {broker}{more} of cluster {cluster} has {usable:size} of {total:size} left, and all that lies ahead "
        "takes {wanted:size} there",
        "a later run will be refused when less than {percent} % is free; make room before, or shorten retention",
    ),
    # Transforms, and what they made of records.
    "transform.not-known": Entry(
        None, "whether a run can carry out transforms ({names}) is not known here: no PySpark is installed"
    ),
    "transform.finishing": Entry(
        None,
        "topic {topic}: transform {transform} has changed, and counts once all {partitions} stand at one place; this "
        "run finishes by the rule of before what some of them have",
    ),
    "transform.begun": Entry(
        None,
        "topic {topic}: transform {transform} counts as it is now from here on, for {partitions}; what was copied "
        "before stays where it is",
    ),
    "transform.counts": Entry(
        None,
        "ferry.transform.{transform}: {offsets:count offset} read, {records:count record} written, "
        "{letters:count dead letter}; nothing was to be written of the other {others}",
    ),
    "transform.sifted": Entry(
        None, "topic {topic}: {records:count record} read, {left_out} of them left out by its transform"
    ),
    "transform.dealt": Entry(
        None,
        "topic {topic}: {offsets:count offset} read, {records:count record} dealt to {partitions:count partition} of "
        "{target}, {letters:count dead letter}",
    ),
    "letters.topic-wanted": Entry(None, "topic {topic} would be created for dead letters"),
    "letters.topic-created": Entry(None, "topic {topic} was created for dead letters"),
    "copy.holes": Entry(
        None,
        "{place} has no record at {missing} of its offsets from {start} to {last}, though its topic's cleanup.policy "
        "does not show compact",
        "if it was never compacted, compare the source's replicas with kafka-dump-log.sh",
    ),
    # ACLs.
    "acls.none": Entry(None, "no ACLs are taken over", "{why}, or say sync.topic.acls.enabled = false"),
    "acls.not-synced": Entry(None, "ACLs are not synced", "{why}"),
    "acls.more-failed": Entry(None, "{more} more ACLs could not be changed for like reasons"),
    "acls.left-out": Entry(None, "not taken over: {acl} ({why})"),
    "acls.unmapped": Entry(
        None,
        "ACLs of {principals} are not taken over",
        "no rule of ferry.sync.acls.principal.mapping is about them; add one, such as {first} => {first}",
    ),
    "acls.wide": Entry(
        None,
        "ACLs with a prefix or for all topics hold on cluster {cluster} for {count} topic(s) that flow {flow} did not "
        "bring, too ({topics}): {acls}; where that is too much, take DefaultReplicationPolicy, or leave their "
        "principals out (ferry.sync.acls.principal.mapping)",
    ),
    "acls.made-again": Entry(
        None, "ACLs that Ferry had made on cluster {cluster} were gone, and are made again: {acls}"
    ),
    "acls.kept": Entry(
        None,
        "ACLs on cluster {cluster} that Ferry made and the settings ask for no more stay, for only what the source "
        "lost is deleted: {acls}; delete by hand what is too much (ferry acls diff has all)",
    ),
    "acls.foreign": Entry(
        None,
        "ACLs on cluster {cluster} are Ferry's by the ledger alone, and nothing else shows that they are of copies of "
        "this flow, so they stay: {acls}; delete by hand what is too much, and look at who may write to the ledger "
        "(kafka-acls.sh --list)",
    ),
    "acls.bereft": Entry(
        None,
        "cluster {source} shows none of the ACLs any more that Ferry took over, so their copies on cluster {cluster} "
        "stay: {acls}; bring them back at the source, or, when they were taken away on purpose, delete the copies with "
        "kafka-acls.sh --remove (ferry acls diff has all)",
    ),
    # MirrorMaker 2's own topics.
    "mirror.no-checkpoint": Entry(None, "no checkpoint: {why}"),
    "mirror.more-missed": Entry(None, "no checkpoint: {more} more offsets or groups could not be translated"),
}
