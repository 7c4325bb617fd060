"""What tests need, by the folder that they are in."""

QUICK = ("alerts", "config", "decide", "mm1", "model", "net", "policy", "protocol", "scripted", "wire")
"""Folders of the quick tier (`make quick`): no broker, Java, browser or process. Tests there that ask for brokers by a
fixture, or are marked `process`, are not of it."""

QUICK_SECONDS = 60
"""How long a test of the quick tier may take."""
