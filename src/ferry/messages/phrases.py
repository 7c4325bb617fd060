"""Halves of sentences that several entries share."""

ANEW = "exclude the topic here (topics.exclude), and copy it again under another alias of the source cluster"
"""The remedy when earlier copies and present records do not belong together: nothing is mixed or overwritten."""

UNCLEAN = "unclean leader election?"
BROKERS = "bring its brokers back; the next run copies it"
