"""Mutants: simulated managers that lack one guard, and the actions that reveal it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rsm.storage.memory import MemoryChunkStorage
from tests.fakes.unfinished_uploads import UnfinishedStorage
from tests.simulation.actions import (
    Action,
    cut_off,
    delete_records,
    elect_clean,
    elect_unclean,
    fill_segment,
    land_late,
    pass_time,
    run_job,
    start_another,
    toggle_store,
    toggle_topic,
    work,
)
from tests.simulation.damaged_objects import damage_object
from tests.simulation.merging import read_through_gateway, stream_small
from tests.simulation.other_users import read_in_share_group, take_lease, take_records
from tests.simulation.processes import SimulatedProcess
from tests.simulation.streaming import stream
from tests.simulation.topic_deletion import delete_topic
from tests.simulation.unguarded_managers import (
    WithAnyLineage,
    WithHolesCounting,
    WithoutDeadline,
    WithoutEpochCheck,
    WithoutExpectedState,
    WithoutFencing,
    WithoutGaps,
    WithoutHold,
    WithoutIncarnation,
    WithoutLeases,
    WithoutOwnLook,
    WithoutReadingPast,
    WithoutRecord,
    WithoutRemovalSweep,
    WithoutRemovalWait,
    WithoutReplacement,
    WithoutSecondSweep,
    WithoutShareGroups,
    WithoutWholeTopic,
    WithUnfinishedCounting,
)
from tests.simulation.unguarded_streams import (
    WithFirstLedgerDeleting,
    WithOpenStreamsCounting,
    WithoutFences,
    WithoutGateways,
    WithPartsDeletedEarly,
    WithStreamsAfterAnyHistory,
    WithStreamsAtOnce,
    WithUnlimitedReuse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A manager without a guard, and the actions that the guard is for.

    The search begins with `seed`, which found the mutant the last time. Without a `storage_type`,
    favored actions have a store that keeps no parts of uploads.
    """

    process_type: type[SimulatedProcess]
    favored: Mapping[Action, float] | None = None
    seed: int = 0
    storage_type: type[MemoryChunkStorage] | None = None


_OFTEN: Mapping[Action, float] = {land_late: 4, start_another: 4, work: 40}
_LATE_UPLOADS = {**_OFTEN, delete_topic: 3, pass_time: 0.3}

MUTANTS = (
    Mutant(process_type=WithUnfinishedCounting, seed=1),
    Mutant(process_type=WithHolesCounting, seed=4),
    Mutant(process_type=WithAnyLineage, seed=3, favored={cut_off: 10, elect_unclean: 10, work: 40}),
    Mutant(process_type=WithoutIncarnation, favored={start_another: 10}),
    Mutant(process_type=WithoutFencing, favored={start_another: 10, elect_clean: 5}),
    Mutant(process_type=WithoutExpectedState, seed=559, favored={start_another: 10, run_job: 25}),
    Mutant(process_type=WithoutReadingPast, seed=2),
    Mutant(
        process_type=WithoutDeadline, seed=63, favored={pass_time: 60, work: 60, elect_clean: 10}
    ),
    Mutant(process_type=WithoutEpochCheck, seed=33, favored={start_another: 10, elect_clean: 10}),
    Mutant(process_type=WithoutSecondSweep, seed=166, favored={start_another: 8, toggle_topic: 8}),
    Mutant(process_type=WithoutRemovalSweep, seed=194, favored=_LATE_UPLOADS),
    Mutant(process_type=WithoutRemovalWait, seed=194, favored=_LATE_UPLOADS),
    Mutant(process_type=WithoutRecord),
    Mutant(process_type=WithoutLeases, seed=56, favored={take_lease: 10, pass_time: 10}),
    Mutant(process_type=WithoutShareGroups, seed=1, favored={read_in_share_group: 2}),
    Mutant(process_type=WithoutGaps, seed=1, favored={take_records: 4}),
    Mutant(
        process_type=WithoutWholeTopic,
        seed=129,
        favored={delete_topic: 4, start_another: 4, run_job: 25},
    ),
    Mutant(process_type=WithoutOwnLook, seed=180, favored={damage_object: 20}),
    Mutant(process_type=WithoutReplacement, seed=19, favored={damage_object: 8}),
    Mutant(process_type=WithoutHold, favored={toggle_store: 8}),
    Mutant(process_type=WithStreamsAtOnce, seed=42, favored={stream: 30, run_job: 30}),
    Mutant(
        process_type=WithoutFences,
        seed=956,
        favored={stream: 30, run_job: 30, elect_clean: 20},
    ),
    Mutant(
        process_type=WithStreamsAfterAnyHistory,
        seed=3,
        favored={stream: 30, run_job: 20, cut_off: 10, elect_unclean: 10},
    ),
    Mutant(
        process_type=WithUnlimitedReuse,
        seed=34,
        favored={stream_small: 40, cut_off: 15, elect_unclean: 15, work: 10},
        storage_type=UnfinishedStorage,
    ),
    Mutant(process_type=WithOpenStreamsCounting, seed=0, favored={stream: 30, run_job: 20}),
    Mutant(
        process_type=WithFirstLedgerDeleting,
        seed=194,
        favored={stream: 30, work: 40, delete_records: 20},
    ),
    Mutant(
        process_type=WithPartsDeletedEarly,
        seed=450,
        favored={stream_small: 40, work: 20, run_job: 10, fill_segment: 1},
    ),
    Mutant(
        process_type=WithoutGateways,
        seed=8,
        favored={stream_small: 40, work: 20, read_through_gateway: 20, fill_segment: 1},
    ),
)
