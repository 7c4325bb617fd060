"""Why the offsets of a consumer group are left unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

_STANDS = "group {group} stands at {offset} of {place} on {target}, "
_KEEP = (
    "{doubt}. By {source} it would be {wanted}: keep it, or have it written over by ferry groups sync --force --group "
    "{group}"
)
_CANNOT = "and cannot be translated, for"
_START_ANEW = "start it anew at the target, or name it in groups.exclude"

GROUPS: Mapping[str, Entry] = {
    # Groups whose kind or topics do not permit a translation.
    "group.share": Entry(
        None,
        f"group {{group}} on {{source}} is a share group {_CANNOT} it has no offset, but a state of each record",
        _START_ANEW,
    ),
    "group.streams": Entry(
        None,
        f"group {{group}} on {{source}} is a Streams group {_CANNOT} its state is in topics of its own, which do not "
        "fit another cluster's offsets",
        _START_ANEW,
    ),
    "group.of-another-kind": Entry(
        None,
        "group {group} is a {type} group on {target} and another kind on {source}",
        "name it in groups.exclude, or delete one of the two",
    ),
    "group.merged": Entry(
        None,
        "group {group} is not translated in {topic} on {source}, for by ferry.merge.topics other flows write into its "
        "copy",
        "where it stands says nothing of their records; if it is to go on on {target}, set it there by hand",
    ),
    "group.not-copied": Entry(
        None,
        "group {group} stands in {place} on {source}, of which nothing is copied yet",
        "it is translated when a run has copied some of it",
    ),
    "group.deleted": Entry(
        None,
        "group {group} has no offset of {what} on {source} any more; on {target} it stands at {offset} of {place}",
        "delete it there, too, if that was meant",
    ),
    # Groups that are active on the target, or whose offsets another client moves.
    "group.active": Entry(
        None,
        "group {group} is {state} on {target}, so its offsets are its members'",
        "stop them there if it is to follow {source} again",
    ),
    "group.active.rollback": Entry(
        None, "group {group} is {state} on {target}, so its offsets are its members'", "stop them first"
    ),
    "group.pending": Entry(
        None,
        "group {group} has an offset of {place} on {target} in a transaction that is not decided",
        "stop who writes it there, or wait for it to end",
    ),
    "group.moved": Entry(None, f"{_STANDS}which is not what Ferry wrote last ({{wrote}}){_KEEP}"),
    "group.moved.unknown": Entry(
        None, f"{_STANDS}where no run put it: ferry groups rollback did, or somebody else{_KEEP}"
    ),
    "group.moved.rollback": Entry(
        None,
        f"{_STANDS}where Ferry did not put it",
        "keep it, or have it written back to {before} with --force --group {group}",
    ),
    "group.created": Entry(
        None,
        "group {group} had no offset of {place} on {target}",
        "it stays where it is; delete it by kafka-consumer-groups.sh --delete-offsets, if that is meant",
    ),
    "group.written-meanwhile": Entry(
        None, "group {group} was written by {by} while it was looked at", "the next run looks again"
    ),
    "group.changed-meanwhile": Entry(
        None,
        "the offset of group {group} in {place} on {target} changed during the look ({how}), and is left as it is",
    ),
    # Groups that --group names.
    "group.own": Entry(
        None, "group {group} holds positions of Ferry, which are of no use on another cluster", "correct --group"
    ),
    "group.left-out": Entry(
        None, "group {group} is left out by groups or groups.exclude", "correct --group, or the file"
    ),
    "group.not-there": Entry(None, "group {group} is not on {source}", "correct --group, or start it there first"),
    # Groups that this login may not read or write.
    "group.denied": Entry(
        None,
        "what group {group} has committed of {topic} on {cluster} may not be seen",
        "grant {operation} on that topic",
    ),
    "group.troubled": Entry(None, "group {group}", "{why}"),
    "groups.silent-broker": Entry(
        None, "groups of broker {broker} of {cluster} are not known, for it does not answer ({why})"
    ),
    "groups.none-translated": Entry(None, "no group was translated", "{why}"),
}
