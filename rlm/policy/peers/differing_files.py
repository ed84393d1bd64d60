"""Finds managers whose configuration files give topics other defaults than most. Pure.

The manager of a topic's first partition applies its own file to the topic's policy. Each leader's
manager uses its own file for what the policy leaves open. So if the files differ, a topic's
settings change when partitions move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rlm.policy.topic.policy_values import STREAM_BUFFER_BYTES
from rlmm.events.registration import FileDefault

_PER_HOST_KEYS = frozenset({STREAM_BUFFER_BYTES})
"""Limits that depend on a host's memory. They are not settings of topics, so they may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingFile:
    """Represents a manager whose file differs; `values` has its own and the usual value by key."""

    broker_id: int
    values: Mapping[str, tuple[str | None, str | None]]

    @property
    def reason(self) -> str:
        """Return what differs and what to do, for people."""
        keys = "; ".join(
            f"{key}={_shown(own)}, not {_shown(usual)}" for key, (own, usual) in self.values.items()
        )
        return (
            f"its configuration file gives topics other defaults than most managers: {keys}. Set "
            "the same values on every host and restart `rlm run`"
        )


def differing_files(files: Mapping[int, Iterable[FileDefault]]) -> tuple[DifferingFile, ...]:
    """Return the managers that differ from most, by ascending broker id.

    `files` are what live managers registered, by broker id. The value of most managers is the usual
    one; among equally frequent ones, that of the lowest broker id. A key that a manager's version
    does not register is not compared.
    """
    given = {
        broker_id: {each.key: each.value for each in files[broker_id]}
        for broker_id in sorted(files)
    }
    usual = usual_values(given.values())
    return tuple(
        DifferingFile(broker_id=broker_id, values=dict(found))
        for broker_id, values in given.items()
        if (found := list(_differences(values, usual)))
    )


def usual_values(files: Iterable[Mapping[str, str | None]]) -> Mapping[str, str | None]:
    """Return the most frequent value of each key; among equally frequent ones, the first."""
    counts: dict[str, Counter[str | None]] = {}
    for values in files:
        for key, value in values.items():
            counts.setdefault(key, Counter())[value] += 1
    return {key: found.most_common(1)[0][0] for key, found in counts.items()}


def _differences(
    values: Mapping[str, str | None], usual: Mapping[str, str | None]
) -> Iterator[tuple[str, tuple[str | None, str | None]]]:
    for key, value in values.items():
        if value != usual[key] and key not in _PER_HOST_KEYS:
            yield key, (value, usual[key])


def _shown(value: str | None) -> str:
    return "(not set)" if value is None else value
