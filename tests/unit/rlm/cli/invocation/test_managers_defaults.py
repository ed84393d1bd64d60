"""The topic defaults of managers: from their registrations, else from the command's own file."""

from __future__ import annotations

from dataclasses import replace

from rlm.cli.invocation.managers import defaults_with
from rlm.config.load import client_command_config
from rlm.config.offloading import TopicDefaultsConfig
from rlmm.events.policy import PolicySetting
from rlmm.events.registration import FileDefault, ProcessRegistered
from rsm.segment.offload_settings import OffloadMode
from tests.metadata_builder import registration

COMMAND = replace(
    client_command_config("broker:9092", None, lambda _: None),
    topic_defaults=TopicDefaultsConfig(local_retention_ms=1),
)


def manager(broker_id: int, retention_ms: str | None) -> ProcessRegistered:
    default = FileDefault(key="log.retention.ms", value=retention_ms)
    other = FileDefault(key="offload.mode", value="stream")
    return replace(registration(), broker_id=broker_id, file_defaults=(other, default))


def test_defaults_when_managers_registered_theirs_then_those_of_the_lowest_broker_id() -> None:
    found = defaults_with(COMMAND, [manager(2, "20"), manager(1, "10")])

    assert found.values == {PolicySetting.RETENTION_MS: 10}
    assert found.offload.mode is OffloadMode.STREAM


def test_defaults_when_managers_have_no_defaults_then_the_commands_own_do_not_apply() -> None:
    assert defaults_with(COMMAND, [manager(1, None)]).values == {}


def test_defaults_when_no_manager_registered_any_then_those_of_the_commands_file() -> None:
    older = registration()

    assert defaults_with(COMMAND, [older]).values == {PolicySetting.LOCAL_RETENTION_MS: 1}


def test_defaults_when_managers_stream_buffers_differ_then_the_smallest_limits_batches() -> None:
    """A partition may move to the manager with the smallest buffer."""
    managers = [
        replace(
            registration(),
            broker_id=broker_id,
            file_defaults=(FileDefault(key="offload.stream.buffer.bytes", value=value),),
        )
        for broker_id, value in ((1, "33554432"), (2, "16777216"))
    ]

    assert defaults_with(COMMAND, managers).stream_buffer_bytes == 16 << 20
