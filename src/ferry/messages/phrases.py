"""Halves of sentences that several entries share."""

ANEW = "leave the topic out here (topics.exclude), and copy it anew under another alias of the source cluster"
"""The way out when what was copied and what is there now do not belong together: nothing is mixed or overwritten."""

UNCLEAN = "unclean leader election?"
BROKERS = "bring its brokers back, the next run copies it"
