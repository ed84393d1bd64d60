"""Decides on a manager's resources: concurrent copies, time until disks are full. Pure."""
