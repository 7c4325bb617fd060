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
    "passed.over": Entry(None, "{what}", "skipped, as {key} says"),
    "passed.left-out": Entry(None, "{what}", "left out, as {key} says"),
    "passed.copied-behind": Entry(None, "{what}", "copied after it, as {key} says"),
    "passed.skipped": Entry(None, "{what}", "skipped, as {key} says"),
    "passed.restarted": Entry(
        None, "{what}", "continues at source offset {start}, after what the target holds, as {key} says"
    ),
    "clock.skew": Entry(
        None,
        "the clock of this machine is {seconds} s {way} that of the broker that leads the ledger on cluster "
        "{cluster}; pauses, start times and deleted keys would be judged wrongly",
        "set both clocks by NTP; or continue with ferry.guard.clock.skew = skip",
    ),
    "passed.clock": Entry(None, "{what}", "ferry.guard.clock.skew allows it"),
    "passed.by-hand": Entry(None, "{source} continues at offset {end}: [{start}, {end}) is skipped by {who}: {reason}"),
    # How a run was opened, and runs that do something other than copying.
    "run.would-be-refused": Entry(None, "a run would be refused: {why}"),
    "run.took-over": Entry(None, "lane {lane} was taken over from deployment {deployment}"),
    "run.ledger-rebuilt": Entry(
        None,
        "the ledger was rebuilt by {who} at {at_ms:time} from {file}, an export of {exported_at_ms:time}; it "
        "does not have what was copied or written to groups in between",
    ),
    "run.of-switch": Entry(None, "opened by step {step} of {verb} {switch}"),
    "run.adopted": Entry(None, "{partitions:count partition} adopted from {predecessor} by {where}"),
    "run.handed-back": Entry(None, "{positions:count position} to hand back to MirrorMaker 2: {topic} ({connector})"),
    "run.lane-dropped": Entry(None, "the lane is dropped"),
    "run.superseded": Entry(
        None,
        "run {run} is superseded by run {newer} of lane {lane}, which began before this one was finished: that run, "
        "or the next one, copies the rest and moves the groups",
    ),
    # Positions, and records that the source holds back.
    "position.missing": Entry(
        None, "position of {place} was missing (deleted or expired); the ledger's receipt up to {end} is used"
    ),
    "position.moved": Entry(
        None,
        "position of {place} was {found}, but the ledger has {known} (another client moved it); the ledger's receipt "
        "up to {end} is used",
    ),
    "held.by-transaction": Entry(
        None,
        "records of {topic}-{partition} from offset {start} on wait for an open transaction of producer id "
        "{producer}, whose last record is of {last}; the records before it are copied",
        _END_IT,
    ),
    "held.ledger": Entry(
        None,
        f"ledger {{topic}} has an open transaction from offset {{start}} on, of producer id {{producer}} "
        f"({{writer}}), whose last record is of {{last}}: each run reads the ledger from there again, each report "
        f"waits for it without effect, and compaction stops there; {_END_IT}",
    ),
    "held.first-copy": Entry(
        None,
        "the first copy of compacted topics ({topics}) may not end in this run",
        "a partition whose end is not reached within delete.retention.ms ({shortest_ms} ms of {shortest}) is refused "
        "then, because keys that were deleted meanwhile may remain; raise that setting at the source first, or the "
        "budget of a run",
    ),
    "topics.idle": Entry(None, "flow {flow} finds no topic to copy, which may be right", "{why}"),
    # Topics of the target.
    "topic.fewer-replicas": Entry(
        None,
        "{topics}: {replicas:count replica} instead of {wanted}, because cluster {cluster} has no more brokers",
        "add some, or lower replication.factor",
    ),
    "topic.settings-of-target": Entry(
        None,
        "{topics}: settings of the target, because cluster {cluster} does not show its own",
        "grant DESCRIBE_CONFIGS on the source topics",
    ),
    "topic.settings-not-compared": Entry(
        None,
        "the settings of {topics} are not compared with the source's",
        "grant DESCRIBE_CONFIGS on the topics at {source} and at {target}, or set sync.topic.configs.enabled = false",
    ),
    "topic.settings-refused": Entry(None, "{why}, or set sync.topic.configs.enabled = false"),
    "topic.setting-unknown": Entry(
        None,
        "{setting} is not copied to {topics}, because Kafka of cluster {cluster} has no such setting",
        "name it in config.properties.exclude, after the defaults of that key, and this note ends",
    ),
    "topic.narrower": Entry(None, "{setting} is {here} on {topics} but {there} at the source, so {cost}", "{remedy}"),
    "topic.deleted": Entry(
        None,
        "source topic {topic} was deleted, and so was its copy {copy}, as ferry.sync.topic.deletes.enabled says",
    ),
    "topic.forgotten": Entry(
        None,
        "topic {topic} was deleted after its source by run {run} at {at_ms:time}, and the ledger has forgotten its "
        "receipts: what this run copied of it is not counted",
    ),
    "space.not-known": Entry(
        None,
        "cluster {cluster} does not show the disk usage of {silent} of {brokers:count broker}, so no run checks "
        "whether the copies fit",
        "this needs Kafka 3.3 and DESCRIBE on the cluster",
    ),
    "space.short": Entry(
        None,
        "broker {broker}{more} of cluster {cluster} has {usable:size} of {total:size} left, and everything still to "
        "be copied needs {wanted:size} there",
        "a later run will be refused when less than {percent} % is free; free disk space before, or shorten retention",
    ),
    # Transforms, and what they made of records.
    "transform.idle": Entry(
        None,
        "transform {transform} names none of the {topics:count topic} that the flow has found on {source}, so it "
        "changes none: correct ferry.transform.{transform}.topics, or leave {transform} out of "
        "{flow}.ferry.transforms",
    ),
    "transform.not-known": Entry(
        None, "it is not known here whether a run can execute the transforms ({names}): PySpark is not installed"
    ),
    "transform.finishing": Entry(
        None,
        "topic {topic}: transform {transform} has changed, and the new rule applies once all {partitions} are at the "
        "same position; until then this run copies by the old rule",
    ),
    "transform.begun": Entry(
        None,
        "topic {topic}: the new rule of transform {transform} applies from here on, for {partitions}; records copied "
        "before stay unchanged",
    ),
    "transform.counts": Entry(
        None,
        "ferry.transform.{transform}: {offsets:count offset} read, {records:count record} written, "
        "{letters:count dead letter}; the other {others} needed no writing",
    ),
    "transform.sifted": Entry(
        None, "topic {topic}: {records:count record} read, {left_out} of them left out by its transform"
    ),
    "transform.dealt": Entry(
        None,
        "topic {topic}: {offsets:count offset} read, {records:count record} repartitioned into "
        "{partitions:count partition} of {target}, {letters:count dead letter}",
    ),
    "letters.topic-wanted": Entry(None, "topic {topic} would be created for dead letters"),
    "letters.topic-created": Entry(None, "topic {topic} was created for dead letters"),
    "copy.holes": Entry(
        None,
        "{place} has no record at {missing} of its offsets from {start} to {last}, although its topic's "
        "cleanup.policy is not compact",
        "if it was never compacted, compare the source's replicas with kafka-dump-log.sh",
    ),
    # ACLs.
    "acls.none": Entry(None, "no ACLs are copied", "{why}, or set sync.topic.acls.enabled = false"),
    "acls.not-synced": Entry(None, "ACLs are not synced", "{why}"),
    "acls.no-authorizer": Entry(
        None, "cluster {cluster} has no authorizer", "set authorizer.class.name on its brokers"
    ),
    "acls.unread": Entry(None, "ACLs of cluster {cluster} cannot be read", "{why}"),
    "acls.permissions-unread": Entry(None, "permissions on cluster {cluster} cannot be read", "{why}"),
    "acls.not-permitted": Entry(
        None, "not allowed to change ACLs on cluster {cluster}", "grant ALTER on the cluster (ferry acls required)"
    ),
    "acls.not-changed": Entry(None, "ACL {acl} was not {done} on cluster {cluster}", "{why}"),
    "acls.in-doubt": Entry(None, "it is not known whether ACL {acl} was {done} on cluster {cluster}", "{why}"),
    "acls.more-failed": Entry(None, "{more} more ACLs could not be changed for similar reasons"),
    "acls.left-out": Entry(None, "not copied: {acl} ({why})"),
    "acls.unmapped": Entry(
        None,
        "ACLs of {principals} are not copied",
        "no rule of ferry.sync.acls.principal.mapping matches them; add one, such as {first} => {first}",
    ),
    "acls.wide": Entry(
        None,
        "ACLs with a prefix or for all topics also apply on cluster {cluster} to {count:count topic} that flow {flow} "
        "did not copy ({topics}): {acls}; if that is too much, use DefaultReplicationPolicy, or exclude their "
        "principals (ferry.sync.acls.principal.mapping)",
    ),
    "acls.made-again": Entry(
        None, "ACLs that the ledger has as Ferry's were not on cluster {cluster}, and are created: {acls}"
    ),
    "acls.kept": Entry(
        None,
        "ACLs on cluster {cluster} that Ferry created and the settings no longer require stay, because only ACLs that "
        "the source lost are deleted: {acls}; delete unwanted ones by hand (ferry acls diff lists all)",
    ),
    "acls.foreign": Entry(
        None,
        "ACLs on cluster {cluster} are Ferry's according to the ledger alone; nothing else shows that they belong "
        "to copies of this flow, so they stay: {acls}; delete unwanted ones by hand, and check who may write to the "
        "ledger (kafka-acls.sh --list)",
    ),
    "acls.bereft": Entry(
        None,
        "cluster {source} no longer shows any of the ACLs that Ferry copied, so their copies on cluster {cluster} "
        "stay: {acls}; restore them at the source, or, if they were removed on purpose, delete the copies with "
        "kafka-acls.sh --remove (ferry acls diff lists all)",
    ),
    # MirrorMaker 2's own topics.
    "mirror.no-checkpoint": Entry(None, "no checkpoint: {why}"),
    "mirror.more-missed": Entry(None, "no checkpoint: {more} more offsets or groups could not be translated"),
}
