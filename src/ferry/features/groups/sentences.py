"""Why the offsets of a consumer group are left unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

_STANDS = "group {group} is at {offset} of {place} on {target}, "
_KEEP = (
    "{doubt}. According to {source} it would be {wanted}: keep it if its members use {target} now, or overwrite it "
    "with ferry groups sync --force --group {group}"
)
_CANNOT = "and cannot be translated, because"
_START_ANEW = "start it as a new group on the target, or name it in groups.exclude"

GROUPS: Mapping[str, Entry] = {
    # Groups whose kind or topics do not permit a translation.
    "group.share": Entry(
        None,
        f"group {{group}} on {{source}} is a share group {_CANNOT} it has no offset, only a state of each record",
        _START_ANEW,
    ),
    "group.streams": Entry(
        None,
        f"group {{group}} on {{source}} is a Streams group {_CANNOT} its state is in topics of its own, which do not "
        "match another cluster's offsets",
        _START_ANEW,
    ),
    "group.of-another-kind": Entry(
        None,
        "group {group} is a {type} group on {target} but of another type on {source}",
        "name it in groups.exclude, or delete one of the two",
    ),
    "group.merged": Entry(
        None,
        "group {group} is not translated in {topic} on {source}, because other flows also write into its copy "
        "(ferry.merge.topics)",
        "its offset does not cover their records; to continue the group on {target}, set its offset there by hand",
    ),
    "group.not-copied": Entry(
        None,
        "group {group} has an offset in {place} on {source}, of which nothing is copied yet",
        "it is translated once a run has copied some of it",
    ),
    "group.deleted": Entry(
        None,
        "group {group} no longer has an offset of {what} on {source}; on {target} it is at {offset} of {place}",
        "delete it there, too, if that was intended",
    ),
    # Groups that are active on the target, or whose offsets another client moves.
    "group.active": Entry(
        None,
        "group {group} is {state} on {target}, so its members own its offsets",
        "stop the members there to let it follow {source} again",
    ),
    "group.active.rollback": Entry(
        None, "group {group} is {state} on {target}, so its members own its offsets", "stop the members first"
    ),
    "group.pending": Entry(
        None,
        "group {group} has an offset of {place} on {target} in a transaction that is still open",
        "stop the client that writes it, or wait for the transaction to end",
    ),
    "group.moved": Entry(None, f"{_STANDS}which is not what Ferry wrote last ({{wrote}}){_KEEP}"),
    "group.moved.unknown": Entry(
        None, f"{_STANDS}which no run wrote: ferry groups rollback did, or another client{_KEEP}"
    ),
    "group.moved.rollback": Entry(
        None,
        f"{_STANDS}which Ferry did not write",
        "keep it, or write it back to {before} with --force --group {group}",
    ),
    "group.created": Entry(
        None,
        "group {group} had no offset of {place} on {target}",
        "its offset stays; delete it with kafka-consumer-groups.sh --delete-offsets, if that is intended",
    ),
    "group.written-meanwhile": Entry(
        None, "group {group} was written by {by} while it was checked", "the next run checks again"
    ),
    "group.changed-meanwhile": Entry(
        None,
        "the offset of group {group} in {place} on {target} changed during the check ({how}), and stays unchanged",
    ),
    # Groups that --group names.
    "group.own": Entry(
        None, "group {group} holds Ferry's own positions, which have no meaning on another cluster", "correct --group"
    ),
    "group.left-out": Entry(
        None, "group {group} is excluded by groups or groups.exclude", "correct --group, or the file"
    ),
    "group.not-there": Entry(None, "group {group} is not on {source}", "correct --group, or start it there first"),
    # Groups that this login may not read or write.
    "group.denied": Entry(
        None,
        "the committed offsets of group {group} in {topic} on {cluster} are hidden from this login",
        "grant {operation} on that topic",
    ),
    "group.troubled": Entry(None, "group {group}", "{why}"),
    "groups.silent-broker": Entry(
        None, "groups of broker {broker} of {cluster} are not known, because it does not answer ({why})"
    ),
    "groups.none-translated": Entry(None, "no group was translated", "{why}"),
    # A schedule of syncs in a file that writes no offsets.
    "line.no-effect.groups": Entry(
        None,
        "has no effect while {why}; remove the line, or correct the other one",
    ),
    # Why a sync that no operator has asked for leaves all groups alone.
    "groups.unsynced": Entry(
        None, "groups of {flow} are left alone, because {why}", "correct that line, if they are to be written"
    ),
    "groups.not-begun": Entry(
        None,
        "groups of {flow} are left alone, because the ledger on {target} has no run of lane {lane}",
        "they follow after its first run",
    ),
    "groups.paused": Entry(
        None, "groups of {flow} are left alone, because {who} paused the flow ({why})", "they follow when it is resumed"
    ),
    "groups.unplanned": Entry(
        None,
        "groups of {flow} are left alone, because run {run} has begun and has no plan yet",
        "they follow when it, or a newer run, is planned",
    ),
}
