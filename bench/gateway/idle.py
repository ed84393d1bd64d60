"""Measures the gateway's memory for idle connections, and their effect on another client.

The gateway must not have read the store before: the memory of cached chunks varies, and exceeds
that of all connections.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.gateway.relay import relay_ways
from bench.gateway.stage import GatewayStage
from bench.gateway.throughput import DEFAULT_FETCHES, Readers
from bench.gateway.wire_client import WireClient
from bench.measurement import Measurement, of_runs

_KIB = 1 << 10
_MIB = 1 << 20


def measure_idle_connections(stage: GatewayStage, readers: Readers) -> list[Measurement]:
    """Measure the gateway's memory without and with idle clients, and its throughput with them."""
    count = stage.sizes.idle_connections
    who = f"{count:,} idle clients"
    direct, relayed = relay_ways(stage, DEFAULT_FETCHES, consumers=1, who=who)
    # This allocates one consumer's memory before the first sample.
    readers.alternate(direct, relayed)
    before_bytes = stage.gateway.resident_bytes()
    with ExitStack() as clients:
        for _ in range(count):
            clients.enter_context(WireClient(stage.gateway_address))
        loaded_bytes = stage.gateway.resident_bytes()
        direct_readings, relayed_readings = readers.alternate(direct, relayed)
    return [
        of_runs("gateway memory, no client", [before_bytes / _MIB], unit="MiB"),
        of_runs(f"gateway memory, {who}", [loaded_bytes / _MIB], unit="MiB"),
        of_runs(
            "gateway memory per idle client",
            [(loaded_bytes - before_bytes) / count / _KIB],
            unit="KiB",
        ),
        *direct_readings.measurements(),
        *relayed_readings.measurements(),
        relayed_readings.ratio(direct_readings, f"relayed ÷ direct, {who}"),
    ]
