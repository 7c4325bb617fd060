"""The two secured clusters, started once for this folder with their realms and their token endpoint."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import ScramMechanism

from ferry.dev import down, up_all
from tests.kafka.security.clusters import Secured
from tests.kafka.security.kdc import realms
from tests.kafka.security.pki import Authority, pem_store
from tests.kafka.security.tokens import TokenEndpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Source and target; nothing of the one opens the other."""

    source: Secured
    target: Secured


@pytest.fixture(scope="package")
def secured(cluster_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two clusters with authorities, realms, clients and passwords of their own."""
    folder = tmp_path_factory.mktemp("security")
    kdcs = realms(folder / "kerberos", "SOURCE.TEST", "TARGET.TEST")
    sides = [
        Secured(
            name=f"secured-{word}",
            folder=folder / word,
            authority=Authority.create(f"authority of the {word}"),
            realm=kdc,
            endpoint=TokenEndpoint({f"{word}-client": f"{word}-client-geheim"}),
        )
        for word, kdc in zip(("source", "target"), kdcs, strict=True)
    ]
    for kdc in kdcs:
        kdc.create()
    processes = [kdc.start() for kdc in kdcs]
    try:
        specs = [side.prepare() for side in sides]
        identity = pem_store(folder / "endpoint.pem", sides[0].authority.issue("endpoint", address="127.0.0.1"))
        with sides[0].endpoint.serving(identity), sides[1].endpoint.serving(identity):
            for side, cluster in zip(sides, up_all(specs, home=cluster_home), strict=True):
                side.running.append(cluster)
                side.add_scram_user("scram=256,user", ScramMechanism.SCRAM_SHA_256)
                side.add_scram_user("scram512", ScramMechanism.SCRAM_SHA_512)
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("KRB5_CONFIG", str(kdcs[0].krb5_conf))
                yield Pair(source=sides[0], target=sides[1])
            down(cluster_home, [side.cluster.name for side in sides], delete=True)
    finally:
        for process in processes:
            process.kill()
            process.wait()
