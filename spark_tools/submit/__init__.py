"""The programs of the jobs. `spark-submit` requires a file with a name that ends in `.py`."""
