"""Random interleavings of the protocol on the modelled cluster."""

from __future__ import annotations

from tests.protocol.machine import ProtocolMachine

TestProtocol = ProtocolMachine.TestCase
