"""Provides the lease keeper of a Spark application, one for all of its sessions."""

from __future__ import annotations

import atexit
import logging

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


def application_keeper(spark: SparkSession, *, idle_s: float) -> LeaseKeeper | None:
    """Return the application's keeper, and set its `idle_s`. The first call creates the keeper.

    Returns None for a Spark Connect session, because its jobs are not visible here. Also returns
    None if the keeper's socket cannot be created. If there is no keeper, leases of batch queries
    are not renewed.
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
            lambda: LeaseRenewal(new_holder()), lambda: _has_active_jobs(context), idle_s=idle_s
        )
    except OSError as error:
        _log.warning(LogLine("cannot renew read leases: no socket can be created", error=error))
        return None
    atexit.register(keeper.close)
    _keepers[application] = keeper
    return keeper


def _has_active_jobs(context: SparkContext) -> bool:
    try:
        return bool(context.statusTracker().getActiveJobsIds())
    except (Py4JError, AttributeError, OSError):  # The application has ended.
        return False
