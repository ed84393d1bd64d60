"""What carries decisions out: copying, expiring, trimming, claiming. One order of effects a file.

Objects with steps; threads, pools and intervals belong to rlm.app.manager.
"""
