"""Two brokers that ask for everything: TLS with client certificates, every SASL mechanism, and an authorizer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from ferry.dev import ClusterSpec, Listener, RunningCluster
from ferry.jvm import FAST_START
from ferry.plan.rules.permissions import Acl
from tests.harness import wait_until
from tests.kafka.security.kdc import Realm
from tests.kafka.security.pki import Authority, pem_store
from tests.kafka.security.tokens import TokenEndpoint
from tests.tiers import ANSWER_S

PACKAGE = "org.apache.kafka.common.security"
PLAIN = f"{PACKAGE}.plain.PlainLoginModule"
SCRAM = f"{PACKAGE}.scram.ScramLoginModule"
BEARER = f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
ADDRESS = "127.0.0.1"
ACL_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """A secured cluster and all that a client needs to get in. Passwords are made up for each session."""

    name: str
    folder: Path
    authority: Authority
    realm: Realm
    endpoint: TokenEndpoint
    password: str = field(default_factory=lambda: f"{secrets.token_hex(8)}-geheim")
    running: list[RunningCluster] = field(default_factory=list)

    @property
    def cluster(self) -> RunningCluster:
        """The cluster, once it runs."""
        return self.running[0]

    def file(self, name: str) -> Path:
        """A file of this side."""
        return self.folder / name

    def prepare(self) -> ClusterSpec:
        """Certificates, keytabs and keys in files, and the cluster that uses them."""
        self.folder.mkdir()
        self.file("ca.pem").write_bytes(self.authority.own.certificate_pem)
        broker = self.authority.issue("broker", address=ADDRESS)
        pem_store(self.file("broker.pem"), broker, self.authority.own)
        elsewhere = self.authority.issue("broker", host="elsewhere.test")
        pem_store(self.file("elsewhere.pem"), elsewhere, self.authority.own)
        self.endpoint.write_keys(self.file("keys.json"))
        self.realm.keytab(self.file("kafka.keytab"), f"kafka/{ADDRESS}")
        self.realm.keytab(self.file("ferry.keytab"), "ferry")
        keys = self.file("keys.json").as_uri()
        return ClusterSpec(
            name=self.name,
            listeners=(
                Listener(name="PLAINTEXT", protocol="PLAINTEXT"),
                Listener(name="TLS", protocol="SSL"),
                Listener(name="ELSEWHERE", protocol="SSL"),
                Listener(name="LOGIN", protocol="SASL_SSL"),
                Listener(name="KERBEROS", protocol="SASL_PLAINTEXT"),
            ),
            properties={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.file("broker.pem")),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.file("ca.pem")),
                "listener.name.tls.ssl.client.auth": "required",
                "listener.name.elsewhere.ssl.client.auth": "required",
                "listener.name.elsewhere.ssl.keystore.type": "PEM",
                "listener.name.elsewhere.ssl.keystore.location": str(self.file("elsewhere.pem")),
                "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
                "listener.name.login.plain.sasl.jaas.config": f'{PLAIN} required user_plain="{self.password}";',
                "listener.name.login.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
                "listener.name.login.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
                "listener.name.login.oauthbearer.sasl.jaas.config": f"{BEARER} required;",
                "listener.name.login.oauthbearer.sasl.server.callback.handler.class": (
                    f"{PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler"
                ),
                "sasl.oauthbearer.jwks.endpoint.url": keys,
                "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
                "listener.name.kerberos.gssapi.sasl.jaas.config": (
                    f'{KRB5} required useKeyTab=true storeKey=true keyTab="{self.file("kafka.keytab")}" '
                    f'principal="kafka/{ADDRESS}@{self.realm.name}";'
                ),
                "sasl.kerberos.service.name": "kafka",
                # The realm stays in the name, so that ACLs tell the two principals called ferry apart.
                "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1.$0]",
            },
            java_options=(
                *FAST_START,
                f"-Djava.security.krb5.conf={self.realm.krb5_conf}",
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys}",
            ),
        )

    def admin(self) -> AdminClient:
        """A client of the super user."""
        return AdminClient({"bootstrap.servers": self.cluster.bootstrap})

    def add_scram_user(self, user: str, mechanism: ScramMechanism) -> None:
        """A SCRAM user with this side's password."""
        info = ScramCredentialInfo(mechanism, 4096)
        change = UserScramCredentialUpsertion(user, info, self.password.encode(), secrets.token_bytes(16))
        admin = self.admin()
        admin.alter_user_scram_credentials([change])[user].result(ANSWER_S)

    def grant(
        self, principal: str, acls: Iterable[Acl], permission: AclPermissionType = AclPermissionType.ALLOW
    ) -> None:
        """Permit, or forbid, what `acls` say, and wait until the broker knows it."""
        admin = self.admin()
        wanted = [binding(acl, principal, permission) for acl in acls]
        if not wanted:
            return
        for future in admin.create_acls(wanted).values():
            future.result(ANSWER_S)
        self._await(admin, lambda there: set(wanted) <= there)

    def _await(self, admin: AdminClient, holds: Callable[[set[AclBinding]], bool]) -> None:
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,  # type: ignore[arg-type]  # any, which its types forget
            ResourcePatternType.ANY,
            None,  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            AclOperation.ANY,
            AclPermissionType.ANY,
        )

        def known() -> bool:
            return holds(set(admin.describe_acls(everything).result(ANSWER_S)))

        wait_until(known, f"ACLs that the broker of {self.name} knows", ACL_SECONDS)


def binding(acl: Acl, principal: str, permission: AclPermissionType = AclPermissionType.ALLOW) -> AclBinding:
    """An ACL in the words of confluent-kafka."""
    kinds: Mapping[str, ResourceType] = {
        "topic": ResourceType.TOPIC,
        "group": ResourceType.GROUP,
        "transactional-id": ResourceType.TRANSACTIONAL_ID,
        "cluster": ResourceType.BROKER,
    }
    operation = "".join(f"_{letter}" if letter.isupper() else letter for letter in acl.operation).lstrip("_").upper()
    return AclBinding(
        kinds[acl.resource.kind],
        acl.resource.name,
        ResourcePatternType.PREFIXED if acl.resource.prefixed else ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[operation],
        permission,
    )
