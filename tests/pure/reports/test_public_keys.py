"""Public keys that reports are checked with: what is none is named, with the option and the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferry.errors import BadInput
from ferry.features.evidence.acts.signing import public_keys
from tests.kafka.security import pki

OWN = pki.Authority.create("ferry test authority").own


@pytest.mark.parametrize(
    "content",
    [b"", b"no key", OWN.certificate_pem[:-40], pki.of_version_19(OWN)],
    ids=["empty", "text", "cut off", "a version that X.509 does not have"],
)
def test_what_is_no_public_key_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "signer.pem"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=f"^--key {file}: "):
        public_keys([file])
