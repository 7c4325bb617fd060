"""Halves of sentences that several entries share."""

ANEW = "exclude the topic here (topics.exclude), and copy it again under another alias of the source cluster"
"""The remedy when earlier copies and present records do not belong together: nothing is mixed or overwritten."""

WORTH = "which is worth as much as Ferry's own rights on what the flow copies"
"""What the right to write to a ledger is."""

UNCLEAN = "unclean leader election?"
BROKERS = "bring its brokers back; the next run copies it"
