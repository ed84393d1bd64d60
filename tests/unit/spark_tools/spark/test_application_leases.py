"""The keepers of applications that one process runs one after the other; a stand-in names them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import cast
from uuid import uuid4

from pyspark.sql import SparkSession

from spark_tools.leases.handover import batch_leases
from spark_tools.leases.keeper import LeaseKeeper
from spark_tools.spark.application_leases import application_keeper
from tests.services.waiting import wait_until
from tests.unit.spark_tools.leases.test_renewal import TOPIC, lease


class Application:
    """The context of a session, and of an application that runs no job."""

    def __init__(self) -> None:
        self.applicationId = f"local-{uuid4()}"  # Spark's name

    def statusTracker(self) -> Application:  # noqa: N802 - Spark's name
        return self

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802 - Spark's name
        return []


class Session:
    """A session of an application."""

    def __init__(self, application: Application) -> None:
        self.sparkContext = application  # Spark's name


def made_keeper(application: Application, *, idle_s: float = 60) -> LeaseKeeper:
    made = application_keeper(cast("SparkSession", Session(application)), idle_s=idle_s)
    assert made is not None
    return made


@contextmanager
def last_keeper(application: Application) -> Iterator[LeaseKeeper]:
    """Yield a keeper that no later application closes."""
    made = made_keeper(application)
    try:
        yield made
    finally:
        made.close()


def test_keeper_when_another_session_of_the_application_asks_then_the_same() -> None:
    application = Application()
    with last_keeper(application) as first:
        assert made_keeper(application, idle_s=7) is first
        assert first.idle_s == 7


def test_keeper_when_sessions_ask_at_once_then_all_have_one() -> None:
    application, sessions_count = Application(), 8
    barrier = Barrier(sessions_count)

    def ask(_: int) -> LeaseKeeper:
        barrier.wait()
        return made_keeper(application)

    with ThreadPoolExecutor(sessions_count) as sessions:
        found = set(sessions.map(ask, range(sessions_count)))
    for each in found:
        each.close()

    assert len(found) == 1


def test_keeper_when_another_application_begins_then_the_ended_ones_is_closed() -> None:
    before = set(threading.enumerate())
    ended = made_keeper(Application())
    own = set(threading.enumerate()) - before
    assert own

    with last_keeper(Application()) as made:
        assert made is not ended
        assert not Path(ended.address).parent.exists()
        assert Path(made.address).exists()
        wait_until(lambda: not own & set(threading.enumerate()), describe="the threads' end")


def test_keeper_when_another_application_begins_while_a_query_is_planned_then_the_plan_ends() -> (
    None
):
    ended = made_keeper(Application())
    with batch_leases(ended.address) as leases:
        holder = leases.holder
        with last_keeper(Application()) as made:
            leases.hold(TOPIC, lease(duration_ms=60_000))
            with batch_leases(made.address) as later:
                assert later.holder != holder
