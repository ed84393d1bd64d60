"""A lasting state is logged when it changes, for the subjects that still exist."""

from __future__ import annotations

from rlm.tasks.context.log_once import LogOnce


def test_keys_when_their_subject_is_gone_then_are_forgotten_with_all_its_aspects() -> None:
    log = LogOnce()
    keys = ("kept", ("kept", "waits"), "gone", ("gone", "waits"))
    for key in keys:
        log.changed(key, "text")

    log.retain({"kept", "new"})

    assert [log.changed(key, "text") for key in keys] == [False, False, True, True]
