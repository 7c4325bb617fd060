"""What is said of ACLs that are compared before a switch."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.messages.entry import Entry

ACLS: Mapping[str, Entry] = {
    "acls.none-to-compare": Entry(None, "there are none to compare", "{why}"),
    "acls.not-compared": Entry(None, "not known", "{why}, or set sync.topic.acls.enabled = false"),
}
