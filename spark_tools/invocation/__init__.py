"""Parses the jobs' command lines, and ends the jobs with a report and an exit code."""
