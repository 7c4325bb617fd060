"""Why records cannot have identical offsets."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry
from ferry.model import RefusalKind as K

_TRANSLATED = "set ferry.offsets.topics to a list without the topic, so that it is translated"
_TRANSLATED_ONCE_BEGUN = (
    "copy the topic with translated offsets: by a list in ferry.offsets.topics without it; once its copy has records, "
    "in a flow with another alias for the source"
)
_ELSEWHERE = "copy the topic to another target topic, in a flow with another alias for the source"
_BACK = (
    "copy the topics back with translated offsets, under other names; or create the old cluster's topics again, empty, "
    "and copy them from offset 0 with identical offsets"
)
_AGAIN = f"save what only one side has, and {_ELSEWHERE}; late requests of this lane cannot reach it there"

IDENTICAL: Mapping[str, Entry] = {
    # When the file is read.
    "identical.file.topics": Entry(
        None,
        "no topic keeps its offsets, because the list is empty",
        "list patterns of topics, or use ferry.offsets = translated",
    ),
    "identical.file.transforms": Entry(
        None,
        "records with identical offsets are copied as they are, and this flow has transforms ({names})",
        "remove them, or copy their topics in another flow",
    ),
    "identical.file.merged": Entry(
        None,
        "merged topics ({topics}) get records of several sources, which cannot all keep their offsets",
        "remove ferry.merge.topics, or use ferry.offsets = translated",
    ),
    "identical.file.guards": Entry(
        None,
        "{guards} would pass offsets over or copy records again, so others would get their offsets",
        "set these guards to fail, or use ferry.offsets = translated",
    ),
    "identical.file.deletes": Entry(
        None,
        "ferry.sync.topic.deletes.enabled = true deletes copies, and a late request could write into the next topic of "
        "that name",
        "set it to false, or use ferry.offsets = translated",
    ),
    "identical.file.isolation": Entry(
        None,
        "isolation.level = read_uncommitted copies aborted records, so another run could write other records at their "
        "offsets",
        "set it to read_committed, or use ferry.offsets = translated",
    ),
    # When a command begins.
    "identical.command": Entry(
        None,
        "{act} does not support identical offsets yet, which flow {flow} has ({where})",
        "use a flow with translated offsets",
    ),
    "identical.back": Entry(
        None,
        "{act} is for moves of clients along flow {flow}, and they could not return along flow {back}, which keeps "
        "other offsets ({where})",
        "give both flows the same ferry.offsets and ferry.offsets.topics, or disable {back}",
    ),
    "identical.written": Entry(
        None,
        "{act} does not support identical offsets yet, which lane {lane} of flow {flow} has written to {place}",
        f"{_ELSEWHERE}",
    ),
    "identical.written.moves": Entry(
        None,
        "{act} needs what the file said when lane {lane} of flow {flow} wrote identical offsets to {place}",
        "set ferry.offsets = identical for {flow} until clients are moved",
    ),
    "identical.return": Entry(
        None,
        "{act} would bring clients back along flow {back}, which does not keep offsets of the same topics as {flow} "
        "({where})",
        "give both flows the same ferry.offsets and ferry.offsets.topics",
    ),
    "identical.return.written": Entry(
        None,
        "the lane of flow {flow} has written identical offsets to {place}, and no flow with other offsets follows it: "
        "a copy that has records of clients is refused",
        _BACK,
    ),
    "identical.return.again": Entry(
        None,
        "{cluster} does not have the other cluster's records up to the cut-over, so those after it could not get the "
        "same offsets there: {places}. The flow has copied to these topics before, so they cannot be made again",
        "if a run was killed, run the flow and continue; otherwise save what is only there, and copy with translated "
        "offsets to other topics",
    ),
    "identical.return.ends": Entry(
        None,
        "{cluster} does not have the other cluster's records up to the cut-over, so those after it could not get the "
        "same offsets there: {places}",
        "save what is only there (the step stranded of a failback does), delete these topics there, create them again, "
        "and continue",
    ),
    "identical.reverse": Entry(
        None,
        "flow {back} would be started at the end, and does not keep offsets of the same topics as {flow} ({where})",
        "give both flows the same ferry.offsets and ferry.offsets.topics, or leave {back} unchanged with --no-reverse",
    ),
    "identical.late": Entry(
        None,
        "a batch with identical offsets may still come to {places} of {cluster}, after the records of clients, until "
        "{until}{because}",
        "wait until then, and continue",
    ),
    "identical.late.before": Entry(
        None,
        "a batch with identical offsets may still come to {places} of {cluster}, after the records of clients; if "
        "writers are fenced now, until {until}{because}",
        "the step stop of a switch waits as long; if the source answers, let a run copy all first",
    ),
    "identical.late.size": Entry(
        None,
        "topic {topic_there} has retention.bytes = {value}, so records of clients may push the last batch of the flow "
        "out, and brokers compare late batches with it",
        "to avoid the wait, add retention.bytes to config.properties.exclude and set it to -1 at the target, until "
        "that time is over",
    ),
    "identical.late.unbounded": Entry(
        None,
        "a batch with identical offsets may still come to {places} of {cluster}, after the records of clients, and "
        "until when is not known{because}",
        "grant DESCRIBE_CONFIGS on that cluster, and set connections.max.idle.ms of its brokers to 600000",
    ),
    "identical.late.unstamped": Entry(
        None,
        "a batch with identical offsets may still come to {places} of {cluster}, after the records of clients, and "
        "until when is not known{because}: the newest run in topic {topic} does not have the broker's time",
        "set message.timestamp.type of {topic} to LogAppendTime, and continue",
    ),
    "identical.late.none": Entry(
        None, "when the flow is drained, no batch with identical offsets can come to {cluster} any more"
    ),
    "identical.short": Entry(
        None,
        "clients would write to {places} of {cluster} at offsets that the source has used, and readers with bookmarks "
        "would skip these records",
        "write a record to each partition at the source and run the flow; or, if no reader keeps offsets there, leave "
        "the topic out of ferry.offsets.topics",
    ),
    "identical.short.begun": Entry(
        None,
        "clients would write to {places} of {cluster} at offsets that the source has used, and readers with bookmarks "
        "would skip these records",
        "abandon the switch, write a record to each partition at the source, and run the flow",
    ),
    "identical.short.lost": Entry(
        None,
        "clients will write to {places} of {cluster} at offsets that the source has used",
        "if the source answers, write a record to each partition there and run the flow first; otherwise set offsets "
        "that are kept outside of Kafka back to these ends",
    ),
    "identical.short.note": Entry(
        None,
        "nothing passes the offsets before the first record of {places}, because the source has no record to copy; a "
        "switchover is refused until then",
        "write a record to each partition at the source, or leave the topic out of ferry.offsets.topics",
    ),
    "identical.loss": Entry(
        None,
        "readers that keep offsets outside of Kafka may be past the end of the copy, and would skip the first records "
        "of clients on {cluster}",
        "set offsets past that end (`start` of a row) back to it",
    ),
    "identical.compared": Entry(
        None, "{records:count record} compared with the target's record at the same offset: all are equal"
    ),
    "identical.compared.not": Entry(
        None,
        "{records:count record} compared with the target's record at the same offset: not all are equal, or not all "
        "could be compared",
        "the section on content has what differs; ferry verify shows it, too",
    ),
    "identical.back.written": Entry(
        None,
        "no command moves clients back along flow {back}, because its lane has written identical offsets to {place}",
        "disable {back}, and use a flow with another alias for its source",
    ),
    # When a run is planned.
    "identical.lane": Entry(
        K.INVALID_CONFIG,
        "{source} would be appended after other records, so none gets the offset that it has at the source",
        f"copy the window in a lane backfill-NAME, which has topics of its own; or {_TRANSLATED}",
    ),
    "identical.heartbeats": Entry(
        None,
        "MirrorMaker 2's heartbeats ({topics}) are copied with translated offsets, because their topic is compacted",
    ),
    "identical.others": Entry(
        None, "topics that ferry.offsets.topics does not list ({topics}) are copied with translated offsets"
    ),
    "identical.transform": Entry(
        K.INVALID_CONFIG,
        "{source} gets {name}, and its records cannot have identical offsets then",
        f"leave the transform out, or {_TRANSLATED}",
    ),
    "identical.merged": Entry(
        K.INVALID_CONFIG,
        "other writers may write to {place}, so {source} cannot have identical offsets there",
        f"take it out of ferry.merge.topics, set ferry.guard.foreign.writer = fail, or {_TRANSLATED}",
    ),
    "identical.translated": Entry(
        K.INVALID_CONFIG,
        "{place} has records up to offset {offset} that were copied with translated offsets",
        f"{_TRANSLATED}, or {_ELSEWHERE}",
    ),
    "identical.stays": Entry(
        K.INVALID_CONFIG,
        "this lane may have sent records of {source} to {place} with identical offsets, and a late request could "
        "double one there",
        f"use ferry.offsets = identical for this topic, or {_ELSEWHERE}",
    ),
    "identical.passed": Entry(
        K.INVALID_CONFIG,
        "offsets of {source} near {offset} would be skipped or copied again, which identical offsets do not permit",
        f"set the guards ferry.guard.* of the topic to fail, or {_TRANSLATED}",
    ),
    "identical.gone": Entry(
        K.RETENTION_PASSED,
        "{source} begins at offset {log_start} now, and no receipt covers {place} from offset {start} on, so identical "
        "offsets cannot continue there",
        f"raise retention at the source; then {_AGAIN}",
    ),
    "identical.begins": Entry(
        K.INVALID_CONFIG,
        "{source} would be copied from offset {offset} on, and its copy {place} must continue at offset {end}",
        f"identical offsets need the source's log from there on; in a backfill, name another lane, or "
        f"{_TRANSLATED_ONCE_BEGUN}",
    ),
    "identical.first": Entry(
        K.INVALID_CONFIG,
        "the copy of {source} begins at offset {offset}, so {place} needs as many empty records (about {seconds} s, "
        "{bytes:size}). Readers see them until they are deleted",
        f"stop the readers of the copy and set ferry.offsets.may.pass = true, or {_TRANSLATED}",
    ),
    "identical.first.rest": Entry(
        K.INVALID_CONFIG,
        "the copy of {source} begins at offset {offset}, so {place} needs {offsets:count more empty record} (about "
        "{seconds} s, {bytes:size}). Readers see them until they are deleted",
        f"stop the readers of the copy and set ferry.offsets.may.pass = true, or {_ELSEWHERE}",
    ),
    "identical.first.note": Entry(
        None,
        "the copy of {partitions:count partition} begins with empty records: {offsets} offsets before the first "
        "record, about {seconds} s, and {bytes:size} until they are deleted. Until then, readers see them",
    ),
    "identical.first.other": Entry(
        K.TARGET_CHANGED,
        "{source} would be copied to {place} from offset {offset} on, and an earlier run, without receipts, may have "
        "copied it from offset {first} on",
        f"run again; if that is refused, too: {_ELSEWHERE}; in a backfill, name another lane",
    ),
    "identical.too-long": Entry(
        K.INVALID_CONFIG,
        "{source} reaches offset {offset}, and identical offsets end at {most}, Kafka's highest sequence number",
        _TRANSLATED_ONCE_BEGUN,
    ),
    "identical.compacted": Entry(
        K.INVALID_CONFIG,
        "{source} is compacted {where}, so its log has holes, and identical offsets do not pass holes yet",
        _TRANSLATED_ONCE_BEGUN,
    ),
    "identical.ahead": Entry(
        K.TARGET_CHANGED,
        "{place} ends at offset {end}, after offset {planned} where this run would end",
        "run again without a limit of records or bytes; if that is refused, too, compare both sides",
    ),
    "identical.lost": Entry(
        K.TARGET_CHANGED,
        "{place} ends at offset {end}, and receipts show records up to {stands}",
        f"its brokers lost acknowledged records: {_AGAIN}",
    ),
    "identical.unknown": Entry(
        K.NOT_AUTHORIZED,
        "the target does not show {what} for topic {topic_there}, so it is not known whether {source} can have "
        "identical offsets",
        "grant DESCRIBE_CONFIGS on the topic and on the cluster",
    ),
    "identical.too-old": Entry(
        K.INVALID_CONFIG,
        "brokers {brokers} of the target have no {setting} (new in Kafka {since}), so it is not known for how long "
        "they compare batches of {source}",
        "upgrade the target's brokers",
    ),
    "identical.not-shown": Entry(
        K.TARGET_CHANGED,
        "the target does not show topic {topic_there}, so it is not known whether {source} can have identical offsets",
        "run again; if that is refused, too, find out why its brokers do not have the topic",
    ),
    "identical.timestamps": Entry(
        K.INVALID_CONFIG,
        "topic {topic_there} of the target has message.timestamp.type = {value}, so a run after a crash cannot compare "
        "it with {source}",
        "set it to CreateTime",
    ),
    "identical.late-unbounded": Entry(
        K.INVALID_CONFIG,
        "a broker of the target has {setting} = {value}, so a request for {source} may arrive at any time",
        "set it to 600000, Kafka's default",
    ),
    "identical.state-too-short": Entry(
        K.INVALID_CONFIG,
        "the target has {setting} = {value} for the copy of {source}, and identical offsets need more than {needed}",
        "raise it",
    ),
    "identical.may-lose": Entry(
        K.INVALID_CONFIG,
        "topic {topic_there} of the target may lose acknowledged records of {source}: it has {setting} = {value} and "
        "{in_sync} replicas in sync",
        "set unclean.leader.election.enable = false and min.insync.replicas = 2 with at least 2 replicas in sync",
    ),
    # While a slot copies.
    "identical.clock": Entry(
        None,
        "the clock of this machine is {seconds} s away from a broker's, or from that of the machine where the run "
        "began; the age of records and markers would be judged wrongly",
        "set it by NTP",
    ),
    "identical.clock.unstamped": Entry(
        K.INVALID_CONFIG,
        "a marker to {place} may be late, and the clock that decides that may be wrong: records of topic {ledger} do "
        "not have the broker's time, so {source} is not copied from offset {at} on",
        "set message.timestamp.type of {ledger} to LogAppendTime",
    ),
    "identical.hole": Entry(
        K.INVALID_CONFIG,
        "offset {at} of {source} is a transaction's marker or an aborted record, and this run may not pass it by a "
        "marker at the target",
        f"grant ALTER on the target's cluster (ferry acls required), or {_TRANSLATED_ONCE_BEGUN}",
    ),
    "identical.not-quiet": Entry(
        K.NO_LEADER,
        "a marker that was sent to {place} before may arrive until {until:time}, so {source} is not copied from offset "
        "{at} on until then",
        "run again after that time",
    ),
    "identical.expires": Entry(
        K.NO_LEADER,
        "the producer state of {place} is too old, so {source} is copied from offset {at} on when it is gone: not "
        "before {until:time}",
        "run again after that time",
    ),
    "identical.absent": Entry(
        K.INVALID_CONFIG,
        "the log of {source} has no record at offset {at}: it was compacted or deleted, so another broker of the "
        "source may have it yet",
        f"identical offsets do not pass such holes; {_TRANSLATED_ONCE_BEGUN}",
    ),
    "identical.old": Entry(
        K.INVALID_CONFIG,
        "the batch at offset {at} of {source} has no timestamp after {oldest:time}, so the target's brokers may "
        "forget the producer before a late request arrives",
        "raise producer.id.expiration.ms and retention.ms at the target above the age of the oldest record",
    ),
    "identical.foreign": Entry(
        K.FOREIGN_WRITER,
        "the records before offset {end} of {place} are not those that this lane wrote for {source}",
        f"find the other producer; then {_AGAIN}",
    ),
    "identical.shifted": Entry(
        K.FOREIGN_WRITER,
        "the record of {source} at offset {at} is at offset {base} of {place}",
        f"another producer has written there: {_AGAIN}",
    ),
    "identical.shifted.empty": Entry(
        K.FOREIGN_WRITER,
        "an empty record for offset {at}, before {source} begins, is at offset {base} of {place}",
        f"another producer has written there: {_AGAIN}",
    ),
    "identical.differs": Entry(
        K.TARGET_CHANGED,
        "{place} has another record at offset {at} than {source}",
        f"compare both sides (ferry verify); then {_AGAIN}",
    ),
    "identical.unread": Entry(
        K.TARGET_CHANGED,
        "no receipt covers {place} from offset {at} up to {end}, and its log begins at {begin} now, so it cannot be "
        "compared with {source}",
        _AGAIN,
    ),
    "identical.uncompared": Entry(
        K.RETENTION_PASSED,
        "no receipt covers offset {at} of {place}, and {source} has no record there now, so they cannot be compared",
        _AGAIN,
    ),
    "identical.too-large": Entry(
        K.TOO_LARGE,
        "the batch at offset {at} of {where} is to be compared after a crash, before {place} is written, and {why}",
        "raise ferry.task.memory.bytes",
    ),
    "identical.malformed": Entry(
        K.CORRUPT,
        "the batch at offset {at} of {where} is to be compared after a crash, before {place} is written, and cannot be "
        "read: {why}",
        "restore it from a replica, and run again",
    ),
    "identical.unsettled": Entry(
        K.NO_LEADER,
        "the log of {place} reaches offset {end} at its leader and {shown} at its replicas in sync",
        "wait until its replicas have caught up, and run again",
    ),
}
