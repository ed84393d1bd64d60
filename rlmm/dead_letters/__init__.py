"""Dead letters about failed deletions and orphans: values and records. Pure."""
