from __future__ import annotations

import pytest

from rsm.segment.errors import CorruptError, NotFoundError, RetriableError, TieredStorageError
from spark_tools.reading.options import Mode
from spark_tools.reading.unreadable import may_be_left_out


@pytest.mark.parametrize(
    ("error", "mode", "expected"),
    [
        (NotFoundError("gone"), Mode.FAILFAST, False),
        (NotFoundError("gone"), Mode.DROPMALFORMED, True),
        (CorruptError("damaged"), Mode.DROPMALFORMED, True),
        (RetriableError("the store does not answer"), Mode.DROPMALFORMED, False),
        (RetriableError("the store does not answer"), Mode.PERMISSIVE, True),
    ],
)
def test_error_when_the_mode_is_to_continue_then_only_what_is_lost_is_left_out_in_silence(
    error: TieredStorageError, mode: Mode, *, expected: bool
) -> None:
    """A short outage of the store must not lead to missing rows."""
    assert may_be_left_out(error, mode) is expected
