"""Commands on rlm's own topics: metadata events, dead letters, the cluster's secret."""
