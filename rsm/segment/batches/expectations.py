"""Checks the offsets and leader epochs of a log's batches. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rsm.segment.batches.batch import NO_EPOCH
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError
from rsm.segment.metadata import RemoteLogSegmentMetadata

_NO_END_OFFSET = 1 << 63


class BatchExpectation(ABC):
    """Represents the offsets and leader epochs that a log's batches may have.

    All offsets are below `end_offset`.
    """

    __slots__ = ("end_offset",)

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset

    @abstractmethod
    def enter_epoch(self, epoch: int, base_offset: int, last_offset: int, position: int) -> int:
        """Check the leader epoch of the batch at `position`; return an offset.

        Later batches of the same epoch need no check if they end below the returned offset. Raises
        CorruptError if the epoch is wrong.
        """

    @abstractmethod
    def wrong_offsets(
        self, base_offset: int, delta: int, at_least_offset: int, position: int
    ) -> CorruptError:
        """Return the error for a batch with offsets outside [`at_least_offset`, `end_offset`)."""


class SegmentExpectation(BatchExpectation):
    """Expects the offsets and epochs in a stored segment's metadata. Has no state; thread-safe.

    A batch below the first leader epoch of the metadata was below the log start at copy time. The
    epoch of such a batch is unknown, so it is not checked.
    """

    __slots__ = ("_epochs",)

    def __init__(self, metadata: RemoteLogSegmentMetadata) -> None:
        super().__init__(metadata.offsets.end_offset)
        self._epochs = metadata.segment_leader_epochs

    def enter_epoch(self, epoch: int, base_offset: int, last_offset: int, position: int) -> int:
        newest = self._epochs.entries[-1]
        if epoch == newest.epoch and base_offset >= newest.start_offset:
            return self.end_offset  # This is the case for nearly every batch.
        expected = self._epochs.epoch_for_offset(base_offset)
        if expected is None:
            return base_offset
        if epoch != expected:
            raise CorruptError(
                "the batch's leader epoch differs from the segment's",
                position=position,
                expected=expected,
                found=epoch,
            )
        end_offset = self._epochs.end_offset(epoch)
        return self.end_offset if end_offset is None else end_offset

    def wrong_offsets(
        self, base_offset: int, delta: int, at_least_offset: int, position: int
    ) -> CorruptError:
        return CorruptError(
            "the log is corrupt: the batch's offsets are outside the expected range",
            position=position,
            expected=f"{at_least_offset}..{self.end_offset - 1}",
            found=base_offset,
            last_offset=base_offset + delta,
        )


class LineageExpectation(BatchExpectation):
    """Expects the offsets and epochs of a log that is not stored yet. Not thread-safe.

    `lineage` must cover the log, but a trim may have cut a broker's lineage. So batches below the
    first entry may have the entry's epoch or any older one; their epochs must not decrease. No
    batch may reach into the epoch after its own.
    """

    __slots__ = ("_epoch", "_epoch_end_offset", "_lineage")

    def __init__(self, lineage: Lineage) -> None:
        super().__init__(_NO_END_OFFSET)
        self._lineage = lineage
        self._epoch = NO_EPOCH
        self._epoch_end_offset = 0

    def enter_epoch(self, epoch: int, base_offset: int, last_offset: int, position: int) -> int:
        if epoch == self._epoch and last_offset < self._epoch_end_offset:
            return self._epoch_end_offset
        expected = self._lineage.epoch_for_offset(base_offset)
        end_offset = self._lineage.end_offset(epoch)
        if expected is None and self._lineage:
            # Below a cut lineage, older epochs are unknown, but they end at its start.
            first = self._lineage.entries[0]
            expected = max(epoch, self._epoch) if epoch <= first.epoch else first.epoch
        if epoch != expected or epoch < 0:
            raise CorruptError(
                "the batch's leader epoch differs from the lineage's",
                position=position,
                expected=expected,
                found=epoch,
            )
        if end_offset is not None and last_offset >= end_offset:
            raise CorruptError(
                "the batch ends above the end of its leader epoch",
                position=position,
                expected=f"< {end_offset}",
                found=last_offset,
            )
        self._epoch = epoch
        self._epoch_end_offset = _NO_END_OFFSET if end_offset is None else end_offset
        return self._epoch_end_offset

    def wrong_offsets(
        self, base_offset: int, delta: int, at_least_offset: int, position: int
    ) -> CorruptError:
        return CorruptError(
            "the batches' offsets do not ascend",
            position=position,
            expected=f">= {at_least_offset}",
            found=f"{base_offset} + {delta}",
        )
