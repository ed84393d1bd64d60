"""A stream's planning process: takes a lease, and ends when it is killed."""

from __future__ import annotations

import signal
import sys

from spark_tools.leases.handover import stream_leases
from tests.unit.spark_tools.leases.test_renewal import TOPIC, lease

if __name__ == "__main__":
    with stream_leases(sys.argv[1]) as leases:
        with leases.planning():
            leases.hold(TOPIC, lease(duration_ms=600))
        sys.stdout.write("leased\n")
        sys.stdout.flush()
        signal.pause()
