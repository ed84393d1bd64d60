"""What `spark-submit` is given: it takes a program by a file whose name ends in `.py`."""
