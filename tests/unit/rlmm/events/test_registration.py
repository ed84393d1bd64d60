"""Registrations of processes: those of version 0.1.0, and those of a newer version."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from rlmm.codec import decode, encode
from rlmm.events.registration import (
    UNREADY_REASON_MAX_CHARACTERS,
    UNREADY_REASONS_MAX_COUNT,
    FileDefault,
    ProcessReadiness,
    ProcessRegistered,
    bounded_reasons,
)
from rlmm.proto import events_pb2 as pb
from tests.metadata_builder import registration

# The fields of version 0.1.0.
_FIRST_FIELDS = {
    "process_id",
    "role",
    "broker_id",
    "http_address",
    "heartbeat_interval_ms",
    "version",
    "gateway_address",
    "applied",
}


def decoded(event: ProcessRegistered, message: pb.MetadataEvent) -> ProcessRegistered:
    found = decode(encode(event).key, message.SerializeToString())
    assert isinstance(found, ProcessRegistered)
    return found


def message_of(event: ProcessRegistered) -> pb.MetadataEvent:
    return pb.MetadataEvent.FromString(encode(event).value)


def test_registration_when_the_first_version_wrote_it_then_host_and_readiness_are_not_known() -> (
    None
):
    """Scenario 102: during an upgrade both versions register."""
    event = replace(registration(), boot_id="b", readiness=ProcessReadiness.READY)
    message = message_of(event)
    for field in pb.ProcessRegistered.DESCRIPTOR.fields:
        if field.name not in _FIRST_FIELDS:
            message.process_registered.ClearField(field.name)

    found = decoded(event, message)

    assert found == replace(registration(), event_id=event.event_id)
    assert found.readiness is ProcessReadiness.UNKNOWN
    assert (found.boot_id, found.network_namespace, found.broker_address) == ("", "", "")


def test_numbers_when_compared_then_those_of_what_topics_have_already() -> None:
    assert {each.name: each.value for each in ProcessReadiness} == {
        "UNKNOWN": 0,
        "READY": 1,
        "NOT_READY": 2,
        "STOPPED": 3,
    }
    assert (UNREADY_REASONS_MAX_COUNT, UNREADY_REASON_MAX_CHARACTERS) == (8, 500)


@pytest.mark.parametrize("incarnation", [None, UUID(int=7)])
def test_registration_when_it_has_an_incarnation_or_none_then_both_are_read(
    incarnation: UUID | None,
) -> None:
    event = replace(registration(), incarnation=incarnation)

    assert decoded(event, message_of(event)) == event


def test_registration_when_its_readiness_is_of_a_newer_version_then_the_heartbeat_counts() -> None:
    event = registration()
    message = message_of(event)
    message.process_registered.readiness = 77  # type: ignore[assignment]  # not known here

    assert decoded(event, message).readiness is ProcessReadiness.UNKNOWN


@pytest.mark.parametrize("count", [UNREADY_REASONS_MAX_COUNT, UNREADY_REASONS_MAX_COUNT + 1])
def test_registration_when_reasons_are_many_and_long_then_are_cut_off_on_both_sides(
    count: int,
) -> None:
    """A heartbeat stays small, and so does the state of a process that reads it."""
    long = tuple(f"{n}" + "x" * UNREADY_REASON_MAX_CHARACTERS for n in range(count))
    event = replace(registration(), unready_reasons=long)
    message = message_of(event)
    written = tuple(message.process_registered.unready_reasons)
    message.process_registered.ClearField("unready_reasons")
    message.process_registered.unready_reasons.extend(long)

    read = decoded(event, message).unready_reasons

    assert written == read == bounded_reasons(long)
    assert len(read) == UNREADY_REASONS_MAX_COUNT
    assert {len(reason) for reason in read} == {UNREADY_REASON_MAX_CHARACTERS}


def test_file_defaults_when_many_or_long_then_are_bounded_in_the_record_and_when_read() -> None:
    """A heartbeat of another version cannot grow without limit, either."""
    long = tuple(FileDefault(key=str(n), value="x" * 501) for n in range(33))
    event = replace(registration(), file_defaults=(FileDefault(key="a" * 501, value=None), *long))
    message = message_of(event)

    written = message.process_registered.file_defaults
    last = written[-1]
    written.extend([last] * 5)
    read = decoded(event, message).file_defaults

    assert (last.key, last.value) == ("30", "x" * 500)
    assert len(read) == 32
    first = FileDefault(key="a" * 500, value=None)
    assert read[:2] == (first, FileDefault(key="0", value="x" * 500))
