"""Finds managers whose configuration files give topics unusual defaults. Pure.

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
    """Represents a manager whose file differs.

    `values` maps each differing key to the manager's value and the usual value.
    """

    broker_id: int
    values: Mapping[str, tuple[str | None, str | None]]

    @property
    def reason(self) -> str:
        """Return a description of the difference and the remedy, for operators."""
        keys = "; ".join(
            f"{key}={_shown(own)}, not {_shown(usual)}" for key, (own, usual) in self.values.items()
        )
        return (
            "its configuration file gives topics defaults that differ from most managers' "
            f"defaults: {keys}. Set the same values on every host and restart `rlm run`"
        )


def differing_files(files: Mapping[int, Iterable[FileDefault]]) -> tuple[DifferingFile, ...]:
    """Return the managers whose files differ from most files, by ascending broker id.

    `files` maps broker ids to the defaults that live managers registered. The most frequent value
    of a key is the usual one; if several are equally frequent, that of the lowest broker id. A key
    that a manager did not register is not compared.
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
    """Return the most frequent value of each key; the first one if several are equally frequent."""
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
