"""Commands on the topics of `rlm`: metadata events, dead letters, the cluster's secret."""
