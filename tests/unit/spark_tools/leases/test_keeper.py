"""Leases that one process sends over a real socket to the keeper of another."""

from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Client
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from types import FrameType

import pytest

from spark_tools.leases.handover import Signal, Use, batch_leases, stream_leases
from spark_tools.leases.keeper import LeaseKeeper
from spark_tools.leases.renewal import LeaseRenewal
from tests.services.waiting import wait_until
from tests.thread_starts import no_thread_starts
from tests.unit.spark_tools.leases.test_renewal import TOPIC, Written, lease


class Application:
    """A Spark application; `works`: whether one of its jobs runs."""

    works = False

    def has_work(self) -> bool:
        return self.works


@contextmanager
def keeper(written: Written, application: Application, *, idle_s: float) -> Iterator[LeaseKeeper]:
    names = (f"spark:{letter}" for letter in "abc")
    made = LeaseKeeper(
        lambda: LeaseRenewal(next(names), opened=written.open), application.has_work, idle_s=idle_s
    )
    try:
        yield made
    finally:
        made.close()


@contextmanager
def slow_accepting() -> Iterator[None]:
    """Make the thread that accepts processes pause after it has started to serve one."""

    def pause(frame: FrameType, event: str, _: object) -> None:
        is_start = event == "return" and frame.f_code is Thread.start.__code__
        if is_start and frame.f_locals["self"].name == "lease-keeper":
            Event().wait(0.3)

    threading.setprofile(pause)
    try:
        yield
    finally:
        threading.setprofile(None)


def test_leases_when_handed_over_then_renewed_while_the_application_works() -> None:
    written, application = Written(), Application()
    application.works = True
    with keeper(written, application, idle_s=0.1) as made:
        with batch_leases(made.address) as leases:
            assert leases.holder == "spark:a"
            leases.hold(TOPIC, lease(duration_ms=600))
        wait_until(lambda: len(written.leases()) >= 3, describe="two renewals and more")
        assert None not in written.leases()

        application.works = False

        wait_until(lambda: None in written.leases(), describe="the lease's end")


def test_leases_when_nothing_has_run_yet_then_kept_for_a_while() -> None:
    """The first job of a query begins after the query was planned."""
    written = Written()
    with keeper(written, Application(), idle_s=60) as made:
        with batch_leases(made.address) as leases:
            leases.hold(TOPIC, lease(duration_ms=600))
        wait_until(written.leases, describe="a renewal")
        assert None not in written.leases()
    assert written.leases()[-1] is None


def test_leases_when_another_query_is_being_planned_then_none_is_released() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=0) as made:
        with batch_leases(made.address) as leases:
            leases.hold(TOPIC, lease(duration_ms=600))
            wait_until(lambda: len(written.leases()) >= 2, describe="two renewals")
            assert None not in written.leases()
        wait_until(lambda: None in written.leases(), describe="the lease's end")


def test_leases_when_a_short_plan_follows_a_long_idle_time_then_kept_for_the_idle_time() -> None:
    """The process stays connected after its plan, so only the plan shows that it was active."""
    written, idle_s = Written(), 0.9
    with keeper(written, Application(), idle_s=idle_s) as made:
        since_s = monotonic()
        wait_until(lambda: monotonic() > since_s + idle_s, describe="the idle time")
        with Client(made.address, family="AF_UNIX") as process:
            process.send(Use.BATCH)
            process.recv()
            process.send(Signal.PLAN)
            process.recv()
            process.send((TOPIC, lease(duration_ms=60_000)))
            planned_s = monotonic()
            process.send(Signal.PLANNED)

            wait_until(lambda: None in written.leases(), describe="the lease's end")

        assert monotonic() >= planned_s + idle_s


def test_leases_when_no_thread_could_be_started_then_the_keeper_serves_the_next_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written = Written()
    with keeper(written, Application(), idle_s=60) as made:
        with no_thread_starts(), batch_leases(made.address) as leases:
            assert leases.holder != "spark:a"
        logged = "cannot receive read leases: trying again"
        wait_until(lambda: logged in caplog.text, describe="a warning")
        with batch_leases(made.address) as leases:
            assert leases.holder == "spark:a"


def test_leases_when_the_keeper_had_too_many_open_files_then_it_serves_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    written, application = Written(), Application()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with keeper(written, application, idle_s=60) as made:
        with socket.socket(socket.AF_UNIX) as process:
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
            try:
                process.connect(made.address)
                wait_until(lambda: "Too many open files" in caplog.text, describe="a warning")
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        with batch_leases(made.address) as leases:
            assert leases.holder == "spark:a"


def test_keeper_when_its_socket_cannot_be_opened_then_leaves_no_directory(tmp_path: Path) -> None:
    directory = tmp_path / ("a" * 100)  # a path longer than the address of a socket may be
    directory.mkdir()
    program = (
        "from spark_tools.leases.keeper import LeaseKeeper\n"
        "LeaseKeeper(lambda: None, lambda: False, idle_s=60)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "AF_UNIX path too long" in done.stderr
    assert not list(directory.iterdir())


def test_leases_when_the_keeper_is_gone_then_a_plan_continues_without() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=60) as made:
        address = made.address
        with batch_leases(address) as leases:
            made.close()
            leases.hold(TOPIC, lease(duration_ms=60_000))
    assert not Path(address).parent.exists()
    with batch_leases(address) as leases:
        leases.hold(TOPIC, lease(duration_ms=60_000))
        assert leases.holder.startswith("spark:")
    with batch_leases(None) as leases:
        assert leases.holder.startswith("spark:")


def test_socket_when_made_then_only_its_user_can_reach_it() -> None:
    with keeper(Written(), Application(), idle_s=60) as made:
        mode = stat.S_IMODE(Path(made.address).parent.stat().st_mode)
    assert mode == stat.S_IRWXU


def test_stream_when_it_runs_then_its_leases_are_renewed_until_it_releases_them() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=0) as made, stream_leases(made.address) as leases:
        assert leases.holder == "spark:b"
        with leases.planning():
            leases.hold(TOPIC, lease(duration_ms=600))
        wait_until(lambda: len(written.leases()) >= 2, describe="renewals without any job")
        assert None not in written.leases()

        leases.release()

        wait_until(lambda: None in written.leases(), describe="the lease's end")
        with leases.planning():
            leases.hold(TOPIC, lease(duration_ms=60_000))
        assert written.leases()[-1] is None
    assert written.leases()[-2:] == [None, None]


def test_stream_when_its_process_is_killed_then_its_leases_are_released() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=60) as made:
        program = [sys.executable, "-m", "tests.unit.spark_tools.leases.leasing", made.address]
        with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"leased\n"
            wait_until(written.leases, describe="a renewal")

            process.kill()

        wait_until(lambda: written.leases()[-1] is None, describe="the lease's end")


def test_stream_when_it_plans_then_no_earlier_lease_is_renewed() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=60) as made, stream_leases(made.address) as leases:
        leases.hold(TOPIC, lease(duration_ms=3_000))
        since_s = monotonic()
        with leases.planning():
            wait_until(lambda: monotonic() > since_s + 1.2, describe="the renewal is due")
            leases.hold(TOPIC, lease(duration_ms=3_000, offsets=(0, 100)))
        wait_until(written.leases, describe="a lease")

    first = written.leases()[0]
    assert first is not None
    assert first.offsets.end_offset == 100


def test_stream_when_the_keeper_is_gone_then_it_continues_unrenewed() -> None:
    written = Written()
    with keeper(written, Application(), idle_s=60) as made, stream_leases(made.address) as leases:
        leases.hold(TOPIC, lease(duration_ms=60_000))
        with leases.planning():
            made.close()
            assert written.leases() == [None]
        with leases.planning():
            leases.hold(TOPIC, lease(duration_ms=60_000))
        leases.release()
    assert written.leases() == [None]


def test_keeper_when_closed_then_none_of_its_threads_is_left() -> None:
    before = set(threading.enumerate())
    with keeper(Written(), Application(), idle_s=60) as made, stream_leases(made.address) as leases:
        leases.hold(TOPIC, lease(duration_ms=60_000))
        made.close()
    wait_until(lambda: set(threading.enumerate()) <= before, describe="the threads' end")


def test_keeper_when_closed_while_a_process_connects_then_waits_for_its_leases() -> None:
    written = Written()
    with (
        slow_accepting(),
        keeper(written, Application(), idle_s=60) as made,
        stream_leases(made.address) as leases,
    ):
        leases.hold(TOPIC, lease(duration_ms=60_000))
        with leases.planning():
            made.close()
            assert written.leases() == [None]


def test_stream_when_there_is_no_keeper_then_it_has_a_holder_of_its_own() -> None:
    with stream_leases(None) as leases:
        assert leases.holder.startswith("spark:")
