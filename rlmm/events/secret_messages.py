"""Encodes and decodes the cluster's secret as protobuf messages. Pure."""

from __future__ import annotations

from uuid import UUID

from rlmm.events.secrets import ClusterSecretSet, SigningSecret
from rlmm.proto import events_pb2 as pb
from rsm.segment.errors import CorruptError
from rsm.segment.metadata_codec import id_from_bytes


def secret_to_message(event: ClusterSecretSet) -> pb.ClusterSecretSet:
    """Encode the cluster's secret."""
    return pb.ClusterSecretSet(
        current=_to_message(event.current),
        previous=None if event.previous is None else _to_message(event.previous),
    )


def secret_from_message(event_id: UUID, message: pb.ClusterSecretSet) -> ClusterSecretSet:
    """Decode it. CorruptError, which does not show it."""
    return ClusterSecretSet(
        event_id=event_id,
        current=_from_message(message.current),
        previous=_from_message(message.previous) if message.HasField("previous") else None,
    )


def _to_message(secret: SigningSecret) -> pb.SigningSecret:
    return pb.SigningSecret(secret_id=secret.secret_id.bytes, key=secret.key)


def _from_message(message: pb.SigningSecret) -> SigningSecret:
    try:
        return SigningSecret(secret_id=id_from_bytes(message.secret_id), key=message.key)
    except ValueError as error:
        raise CorruptError("not a cluster secret", length_bytes=len(message.key)) from error
