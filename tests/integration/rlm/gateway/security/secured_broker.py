"""A broker with a listener for each security protocol, and the settings of clients of each.

Listener         protocol         who the client is
PLAINTEXT        plain text       ANONYMOUS, who may do everything
LOGIN            SASL_PLAINTEXT   alice
LOGINTLS         SASL_SSL         alice
TLS              SSL              the subject of a certificate, which is required
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.services.certificates import Certificate, CertificateAuthority
from tests.services.kafka import KafkaCluster, admin_client
from tests.services.ports import free_ports
from tests.services.provider import ServiceProvider

USER = "alice"
PASSWORD = "hunter2, with = and ,"  # noqa: S105 - guards nothing
SESSION_MS = 5_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_PROTOCOLS = {"LOGIN": "SASL_PLAINTEXT", "LOGINTLS": "SASL_SSL", "TLS": "SSL"}
_JAAS = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f'{_JAAS}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": f"{_JAAS}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_JAAS}.scram.ScramLoginModule required;",
    "OAUTHBEARER": f"{_JAAS}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredBroker:
    """A broker and its `ports` by listener; `own` is its certificate; all trust `authority`."""

    cluster: KafkaCluster
    ports: dict[str, int]
    authority: CertificateAuthority
    own: Certificate

    @contextmanager
    def without_reading(self, topic: str, *, principal: str = f"User:{USER}") -> Iterator[None]:
        """Let `principal` describe this topic but not read it, until the block ends."""
        described = acl(topic, AclOperation.DESCRIBE, AclPermissionType.ALLOW, principal=principal)
        denied = acl(topic, AclOperation.READ, AclPermissionType.DENY, principal=principal)
        with self.with_acls(described, denied):
            yield

    @contextmanager
    def with_acls(self, *bindings: AclBinding) -> Iterator[None]:
        """Add these ACLs until the block ends."""
        admin = admin_client(self.cluster.bootstrap_servers)
        for made in admin.create_acls(list(bindings)).values():
            made.result(30.0)
        yield
        filters = [_filter_of(binding) for binding in bindings]
        for deleted in admin.delete_acls(filters).values():
            deleted.result(30.0)


def acl(
    topic: str,
    operation: AclOperation,
    kind: AclPermissionType,
    *,
    principal: str = f"User:{USER}",
    host: str = "*",
) -> AclBinding:
    """Return an ACL on a topic."""
    literal = ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, topic, literal, principal, host, operation, kind)


def describe_denied(kind: ResourceType, name: str) -> AclBinding:
    """Return an ACL that denies USER Describe on a group, or on the cluster."""
    return AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.DENY,
    )


def allowed_on_cluster() -> AclBinding:
    """Return an ACL that allows USER every operation on the cluster that no other ACL denies."""
    return AclBinding(
        ResourceType.BROKER,
        "kafka-cluster",
        ResourcePatternType.LITERAL,
        f"User:{USER}",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )


def _filter_of(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission_type,
    )


@contextmanager
def secured_broker(services: ServiceProvider, directory: Path) -> Iterator[SecuredBroker]:
    """Run such a broker until the block ends."""
    ports = dict(zip(_PROTOCOLS, free_ports(len(_PROTOCOLS)), strict=True))
    cluster = services.kafka(directory / "cluster")
    authority = CertificateAuthority(cluster.broker.directory)
    own = authority.issue("broker")
    properties = cluster.broker.properties
    extra = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    properties["listeners"] += "," + extra
    properties["advertised.listeners"] += "," + extra
    properties["listener.security.protocol.map"] += "".join(
        f",{name}:{protocol}" for name, protocol in _PROTOCOLS.items()
    )
    properties.update(_security(authority, own))
    with cluster:
        _add_scram_user(cluster)
        yield SecuredBroker(cluster=cluster, ports=ports, authority=authority, own=own)


def _security(authority: CertificateAuthority, own: Certificate) -> dict[str, str]:
    properties = {
        "allow.everyone.if.no.acl.found": "true",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "listener.name.login.plain.connections.max.reauth.ms": str(SESSION_MS),
        "listener.name.tls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.location": str(own.keystore),
        "ssl.keystore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.truststore.type": "PEM",
        "super.users": "User:ANONYMOUS",
    }
    for listener in ("login", "logintls"):
        for mechanism, module in _MODULES.items():
            key = f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"
            properties[key] = module
    return properties


def _add_scram_user(cluster: KafkaCluster) -> None:
    admin = admin_client(cluster.bootstrap_servers)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        credential = ScramCredentialInfo(mechanism, 4096)
        change = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[USER].result(30.0)


def login(mechanism: str, *, password: str = PASSWORD) -> dict[str, str]:
    """Return the client settings that log in as USER."""
    if mechanism == "OAUTHBEARER":
        return {
            "sasl.mechanism": mechanism,
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": f"principal={USER} lifeSeconds=3600",
        }
    return {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": password}
