"""Provides the lease keeper of a Spark application, one for all of its sessions."""

from __future__ import annotations

import atexit
import logging
from threading import Lock

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rsm.segment.log_line import LogLine
from spark_tools.leases.keeper import LeaseKeeper
from spark_tools.leases.renewal import LeaseRenewal, new_holder

_log = logging.getLogger(__name__)

LEASE_IDLE_S = 60.0
"""The idle time before leases are released.

It must exceed the time between two jobs of one query, for example while Spark plans.
"""

_keepers: dict[str, LeaseKeeper] = {}
_keepers_lock = Lock()


def application_keeper(spark: SparkSession, *, idle_s: float) -> LeaseKeeper | None:
    """Return the application's keeper, and set its `idle_s`. The first call creates the keeper.

    Closes the keepers of other applications: a process runs one application after the other, so
    these have ended. Waits until their leases are released, or cannot be. Thread-safe.

    Returns None for a Spark Connect session, because its jobs are not visible here. Also returns
    None if the keeper's socket cannot be created. If there is no keeper, leases of batch queries
    are not renewed.
    """
    try:
        context = spark.sparkContext
    except PySparkException:
        return None
    with _keepers_lock:
        # Read within the lock: an application that has just ended must not close its successor's.
        application = context.applicationId
        ended = [_keepers.pop(each) for each in list(_keepers) if each != application]
        keeper = _keepers.get(application) or _new_keeper(context, idle_s=idle_s)
        if keeper is not None:
            keeper.idle_s = idle_s
            _keepers[application] = keeper
    for each in ended:
        each.close()
        atexit.unregister(each.close)
    return keeper


def _new_keeper(context: SparkContext, *, idle_s: float) -> LeaseKeeper | None:
    try:
        keeper = LeaseKeeper(
            lambda: LeaseRenewal(new_holder()), lambda: _has_active_jobs(context), idle_s=idle_s
        )
    except OSError as error:
        _log.warning(LogLine("cannot renew read leases: no socket can be created", error=error))
        return None
    atexit.register(keeper.close)
    return keeper


def _has_active_jobs(context: SparkContext) -> bool:
    try:
        return bool(context.statusTracker().getActiveJobsIds())
    except (Py4JError, AttributeError, OSError):  # The application has ended.
        return False
