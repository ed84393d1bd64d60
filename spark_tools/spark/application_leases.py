"""The keeper of the leases of a Spark application: one in the driver's process for all sessions."""

from __future__ import annotations

import atexit
import logging

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_tools.leases.keeper import LeaseKeeper
from spark_tools.leases.renewal import LeaseRenewal, new_holder

_log = logging.getLogger(__name__)

LEASE_IDLE_S = 60.0
"""Between the jobs of one query nothing runs for a moment, as while Spark plans the next one."""

_keepers: dict[str, LeaseKeeper] = {}


def application_keeper(spark: SparkSession, *, idle_s: float) -> LeaseKeeper | None:
    """Make the keeper, or give it other terms if it is there.

    None for a session of Spark Connect, whose jobs are not seen from here, and where there can be
    no socket: then leases are not renewed.
    """
    try:
        context = spark.sparkContext
    except PySparkException:
        return None
    application = context.applicationId
    keeper = _keepers.get(application)
    if keeper is not None:
        keeper.idle_s = idle_s
        return keeper
    try:
        keeper = LeaseKeeper(
            LeaseRenewal(new_holder()), lambda: _has_active_jobs(context), idle_s=idle_s
        )
    except OSError as error:
        _log.warning("read leases are not renewed: no socket can be made: %s", error)
        return None
    atexit.register(keeper.close)
    _keepers[application] = keeper
    return keeper


def _has_active_jobs(context: SparkContext) -> bool:
    try:
        return bool(context.statusTracker().getActiveJobsIds())
    except (Py4JError, AttributeError, OSError):  # the application has ended
        return False
