"""Programs for `spark-submit`, which requires a file with a name that ends in `.py`."""
