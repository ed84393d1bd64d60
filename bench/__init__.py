"""`make bench`: the product beside its peers, measured in the same run."""
