"""Which managers' configuration files give topics other defaults than most."""

from __future__ import annotations

from rlm.policy.peers.differing_files import DifferingFile, differing_files
from rlmm.events.registration import FileDefault

MODE, KEEP = "offload.mode", "log.retention.ms"


def file(mode: str | None = None, keep: str | None = None) -> tuple[FileDefault, ...]:
    return (FileDefault(key=MODE, value=mode), FileDefault(key=KEEP, value=keep))


def test_files_when_all_are_alike_then_none_differs() -> None:
    assert differing_files({1: file("stream"), 2: file("stream")}) == ()
    assert differing_files({}) == ()


def test_file_when_it_differs_from_most_then_is_named_with_its_values_and_theirs() -> None:
    found = differing_files({3: file("stream", "7"), 2: file("segment"), 1: file("segment")})

    assert found == (
        DifferingFile(broker_id=3, values={MODE: ("stream", "segment"), KEEP: ("7", None)}),
    )


def test_file_when_that_of_the_lowest_broker_id_is_alone_then_it_differs() -> None:
    found = differing_files({1: file("stream"), 2: file("segment"), 3: file("segment")})

    assert found == (DifferingFile(broker_id=1, values={MODE: ("stream", "segment")}),)


def test_files_when_no_value_is_more_frequent_then_that_of_the_lowest_broker_id_is_usual() -> None:
    found = differing_files({2: file("segment"), 1: file("stream")})

    assert found == (DifferingFile(broker_id=2, values={MODE: ("segment", "stream")}),)


def test_file_when_its_manager_registered_fewer_keys_then_only_those_are_compared() -> None:
    """Another version of `rlm` registers other keys, or none."""
    older = (FileDefault(key=MODE, value="stream"),)

    assert differing_files({1: file("stream", "7"), 2: older, 3: ()}) == ()


def test_reason_when_a_file_differs_then_names_the_keys_and_what_to_do() -> None:
    found = DifferingFile(broker_id=2, values={MODE: ("segment", "stream"), KEEP: ("7", None)})

    assert found.reason == (
        "its configuration file gives topics defaults that differ from most managers' defaults: "
        "offload.mode=segment, not stream; log.retention.ms=7, not (not set). Set the same values "
        "on every host and restart `rlm run`"
    )


def test_files_when_their_stream_buffers_differ_then_no_file_differs() -> None:
    """A host's memory decides on its buffer; commands check batches with the smallest one."""
    files = {
        broker_id: (*file(), FileDefault(key="offload.stream.buffer.bytes", value=value))
        for broker_id, value in enumerate(("8388608", "16777216"))
    }

    assert differing_files(files) == ()
