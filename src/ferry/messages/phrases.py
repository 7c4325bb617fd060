"""Halves of sentences that several entries share."""

ANEW = "leave the topic out here (topics.exclude), and copy it anew under another alias of the source cluster"
"""The remedy when earlier copies and present records do not belong together: nothing is mixed or overwritten."""

UNCLEAN = "unclean leader election?"
BROKERS = "bring its brokers back, the next run copies it"
